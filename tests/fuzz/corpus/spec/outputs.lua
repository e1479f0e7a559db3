op "acme.split" {
  doc     = "the nearest whole number, what is left, and a sign",
  inputs  = "x",
  params  = { scale = 2.0 },
  outputs = "whole, rest, i32 sign",
  dtypes  = floating,
  body    = { floating = [[ whole = rint(x * scale); f32 t = 1; rest = x - whole; i32 sign = x < 0; ]],
              f16 = [[ whole = x; rest = 0; sign = (i32)frexp.exponent(x); ]] },
}
unary "acme.count" { doc = "d", dtypes = "f64", result = "u8", body = [[ (u8)x ]] }
