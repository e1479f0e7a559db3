constants {
  EXPM1_SHIFT_F32 = 0x1.8p23 + 126,
  EXPM1_SHIFT_F64 = 0x1.8p52 + 1022,
  EXPM1_LN2_HI_F32 =  0x1.62e43p-1,
  EXPM1_LN2_LO_F32 = -0x1.05c61p-29,
  EXPM1_LN2_HI_F64 =  0x1.62e42fefa39efp-1,
  EXPM1_LN2_LO_F64 =  0x1.abc9e3b39803fp-56,
  EXPM1_F32_C2 = 0x1p-1,
  EXPM1_F32_C3 = 0x1.555554p-3,
  EXPM1_F32_C4 = 0x1.5554fp-5,
  EXPM1_F32_C5 = 0x1.111306p-7,
  EXPM1_F32_C6 = 0x1.6d4372p-10,
  EXPM1_F32_C7 = 0x1.9e0c28p-13,
  EXPM1_F64_C2  = 0x1p-1,
  EXPM1_F64_C3  = 0x1.5555555555559p-3,
  EXPM1_F64_C4  = 0x1.555555555554dp-5,
  EXPM1_F64_C5  = 0x1.111111110f655p-7,
  EXPM1_F64_C6  = 0x1.6c16c16c1aafep-10,
  EXPM1_F64_C7  = 0x1.a01a01b0036d9p-13,
  EXPM1_F64_C8  = 0x1.a01a018e0f1d8p-16,
  EXPM1_F64_C9  = 0x1.71ddf80f86bfep-19,
  EXPM1_F64_C10 = 0x1.27e51339881a6p-22,
  EXPM1_F64_C11 = 0x1.af5f2c464c9c2p-26,
  EXPM1_F64_C12 = 0x1.1f1a36b0a9e8ap-29,
}
func "expm1" {
  args = "x",
  f32 = [[
    f32 a = x < -20.0 ? -20.0 : x;
    f32 b = a > 89.0 ? 89.0 : a;
    f32 t = fma(b, LOG2E, EXPM1_SHIFT_F32);
    f32 k = t - EXPM1_SHIFT_F32;
    f32 s = as_f32(raw_u32(t) << 23);
    f32 h = fma(k, -EXPM1_LN2_HI_F32, b);
    f32 l = k * -EXPM1_LN2_LO_F32;
    f32 r = h + l;
    f32 q5 = fma(fma(EXPM1_F32_C7, r, EXPM1_F32_C6), r, EXPM1_F32_C5);
    f32 q = fma(fma(fma(q5, r, EXPM1_F32_C4), r, EXPM1_F32_C3), r, EXPM1_F32_C2);
    f32 g = fma(q, r * r, l);
    f32 m = s - 0.5;
    f32 v = fma(s, h, m);
    f32 e = fma(s, h, m - v) + ((s - m) - 0.5);
    f32 y = 2 * (v + fma(s, g, e));
    return abs(x) < 0x1p-25 ? x : y;
  ]],
  f64 = [[
    f64 a = x < -40.0 ? -40.0 : x;
    f64 b = a > 710.0 ? 710.0 : a;
    f64 t = fma(b, LOG2E, EXPM1_SHIFT_F64);
    f64 k = t - EXPM1_SHIFT_F64;
    f64 s = as_f64(raw_u64(t) << 52);
    f64 h = fma(k, -EXPM1_LN2_HI_F64, b);
    f64 l = k * -EXPM1_LN2_LO_F64;
    f64 q8 = fma(fma(fma(fma(EXPM1_F64_C12, h, EXPM1_F64_C11), h, EXPM1_F64_C10), h, EXPM1_F64_C9), h, EXPM1_F64_C8);
    f64 q5 = fma(fma(fma(q8, h, EXPM1_F64_C7), h, EXPM1_F64_C6), h, EXPM1_F64_C5);
    f64 q = fma(fma(fma(q5, h, EXPM1_F64_C4), h, EXPM1_F64_C3), h, EXPM1_F64_C2);
    f64 u = q * (h * h);
    f64 g = fma(l, h + u, u + l);
    f64 m = s - 0.5;
    f64 v = fma(s, h, m);
    f64 e = fma(s, h, m - v) + ((s - m) - 0.5);
    f64 y = 2 * (v + fma(s, g, e));
    return abs(x) < 0x1p-54 ? x : y;
  ]],
}
