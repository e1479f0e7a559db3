constants { A = 0x1.8p1, B = -3 }
tables { T = { "f32", 1, 2, 4, 8 }, U = { "u64", 1, 0xffffffffffffffff } }
func "acme_part" { args = "f32 x, i32 k", result = "f32", body = [[ lookup(T, k) * x + A ]] }
func "acme_both" { f32 = [[ acme_part(x, (i32)x) ]], f64 = [[ x * B ]] }
unary "acme.parts" {
  doc = "d", dtypes = floating,
  body = [[ T t = acme_both(x); // locals
            bool far = abs(t) > 1e10;
            rare (far) { t = t * 0.5; }
            return t + as_f32(as_u32((f32)x) ^ 0x80000000); ]],
}
