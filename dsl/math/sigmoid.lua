constants {
  SIGMOID_SHIFT_F32 = 0x1.8p23 + 127 - 32,
  SIGMOID_SHIFT_F64 = 0x1.8p52 + 1023 - 64,
  SIGMOID_LN2_HI_F32 =  0x1.62e43p-1,
  SIGMOID_LN2_LO_F32 = -0x1.05c61p-29,
  SIGMOID_LN2_HI_F64 =  0x1.62e42fefa39efp-1,
  SIGMOID_LN2_LO_F64 =  0x1.abc9e3b39803fp-56,
  SIGMOID_F32_C2 =  0x1.fffffap-2,
  SIGMOID_F32_C3 = -0x1.555492p-3,
  SIGMOID_F32_C4 =  0x1.555a26p-5,
  SIGMOID_F32_C5 = -0x1.123988p-7,
  SIGMOID_F32_C6 =  0x1.694cd2p-10,
  SIGMOID_F64_C2  =  0x1.000000000000ap-1,
  SIGMOID_F64_C3  = -0x1.55555555554fep-3,
  SIGMOID_F64_C4  =  0x1.55555555506acp-5,
  SIGMOID_F64_C5  = -0x1.1111111126b2fp-7,
  SIGMOID_F64_C6  =  0x1.6c16c1847c949p-10,
  SIGMOID_F64_C7  = -0x1.a01a012ff9a84p-13,
  SIGMOID_F64_C8  =  0x1.a019994c1369bp-16,
  SIGMOID_F64_C9  = -0x1.71df18bb20fafp-19,
  SIGMOID_F64_C10 =  0x1.28ae10fc324e4p-22,
  SIGMOID_F64_C11 = -0x1.ad936f59743f3p-26,
}
func "sigmoid" {
  args = "x",
  f32 = [[
    f32 a = x < -104.0 ? -104.0 : x;
    f32 b = a > 20.0 ? 20.0 : a;
    f32 t = fma(b, -LOG2E, SIGMOID_SHIFT_F32);
    f32 k = t - SIGMOID_SHIFT_F32;
    f32 s = as_f32(raw_u32(t) << 23);
    f32 h = fma(k, SIGMOID_LN2_HI_F32, b);
    f32 l = k * SIGMOID_LN2_LO_F32;
    f32 r = h + l;
    f32 q = fma(fma(fma(fma(SIGMOID_F32_C6, r, SIGMOID_F32_C5), r, SIGMOID_F32_C4), r, SIGMOID_F32_C3), r, SIGMOID_F32_C2);
    f32 g = fma(q, r * r, -l);
    f32 w = 1 / fma(s, g - h, s + 0x1p-32);
    f32 z = w * s;
    f32 d = fma(w, -0x1p-32, 0.5) + (0.5 - z);
    f32 e = fma(-z, g, fma(z, h, d));
    return fma(e, w, w) * 0x1p-32;
  ]],
  f64 = [[
    f64 a = x < -746.0 ? -746.0 : x;
    f64 b = a > 40.0 ? 40.0 : a;
    f64 t = fma(b, -LOG2E, SIGMOID_SHIFT_F64);
    f64 k = t - SIGMOID_SHIFT_F64;
    f64 s = as_f64(raw_u64(t) << 52);
    f64 h = fma(k, SIGMOID_LN2_HI_F64, b);
    f64 l = k * SIGMOID_LN2_LO_F64;
    f64 r = h + l;
    f64 q7 = fma(fma(fma(fma(SIGMOID_F64_C11, r, SIGMOID_F64_C10), r, SIGMOID_F64_C9), r, SIGMOID_F64_C8), r, SIGMOID_F64_C7);
    f64 q = fma(fma(fma(fma(fma(q7, r, SIGMOID_F64_C6), r, SIGMOID_F64_C5), r, SIGMOID_F64_C4), r, SIGMOID_F64_C3), r, SIGMOID_F64_C2);
    f64 g = fma(q, r * r, -l);
    f64 w = 1 / fma(s, g - h, s + 0x1p-64);
    f64 z = w * s;
    f64 d = fma(w, -0x1p-64, 0.5) + (0.5 - z);
    f64 e = fma(-z, g, fma(z, h, d));
    return fma(e, w, w) * 0x1p-64;
  ]],
}
