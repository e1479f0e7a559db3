constants {
  TANH_SHIFT_F32 = 0x1.8p23 + 127,
  TANH_SHIFT_F64 = 0x1.8p52 + 1023,
  TANH_MAX_F32 = 9.1,
  TANH_MAX_F64 = 19.2,
  TANH_LN2_2_F32    = 0x1.62e43p-2,
  TANH_LN2_2_HI_F64 = 0x1.62e42fefa39efp-2,
  TANH_LN2_2_LO_F64 = 0x1.abc9e3b39803fp-57,
  TANH_F32_C3 = -0x1.55554ep-2,
  TANH_F32_C5 = 0x1.1105a2p-3,
  TANH_F32_C7 = -0x1.afe178p-5,
  TANH_F64_C3  = -0x1.55555555554bcp-2,
  TANH_F64_C5  = 0x1.11111110e08c8p-3,
  TANH_F64_C7  = -0x1.ba1ba1168ae77p-5,
  TANH_F64_C9  = 0x1.664ec9ac573dfp-6,
  TANH_F64_C11 = -0x1.223c66f2dc477p-7,
  TANH_F64_C13 = 0x1.c3810f48391c7p-9,
}

func "tanh" {
  args = "x",
  f32 = [[
    f32 a = abs(x);
    f32 b = a > TANH_MAX_F32 ? TANH_MAX_F32 : a;
    f32 t = fma(b, -2 * LOG2E, TANH_SHIFT_F32);
    f32 k = t - TANH_SHIFT_F32;
    f32 s = as_f32(raw_u32(t) << 23);
    f32 r = fma(k, TANH_LN2_2_F32, b);
    f32 z = r * r;
    f32 p = fma(fma(TANH_F32_C7, z, TANH_F32_C5), z, TANH_F32_C3);
    f32 g = z * r * p;
    f32 u = r + g;
    f32 c = 1 + s;
    f32 d = fma(s, -2, c);
    f32 w = 1 / fma(u, d, c);
    f32 y = as_f32(raw_u32(fma(u, c, d) * w) & 0xfffff000);
    f32 f = fma(-y, d, c);
    f32 e = fma(g, f, fma(r, f, fma(-y, c, d)));
    return copysign(fma(e, w, y), x);
  ]],
  f64 = [[
    f64 a = abs(x);
    f64 b = a > TANH_MAX_F64 ? TANH_MAX_F64 : a;
    f64 t = fma(b, -2 * LOG2E, TANH_SHIFT_F64);
    f64 k = t - TANH_SHIFT_F64;
    f64 s = as_f64(raw_u64(t) << 52);
    f64 r = fma(k, TANH_LN2_2_HI_F64, b);
    f64 z = r * r;
    f64 p9 = fma(fma(TANH_F64_C13, z, TANH_F64_C11), z, TANH_F64_C9);
    f64 p = fma(fma(fma(p9, z, TANH_F64_C7), z, TANH_F64_C5), z, TANH_F64_C3);
    f64 g = fma(z * r, p, k * TANH_LN2_2_LO_F64);
    f64 u = r + g;
    f64 c = 1 + s;
    f64 d = fma(s, -2, c);
    f64 w = 1 / fma(u, d, c);
    f64 y = as_f64(raw_u64(fma(u, c, d) * w) & 0xfffffffff8000000);
    f64 f = fma(-y, d, c);
    f64 e = fma(g, f, fma(r, f, fma(-y, c, d)));
    return copysign(fma(e, w, y), x);
  ]],
}
