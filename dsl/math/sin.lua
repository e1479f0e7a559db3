-- SPDX-License-Identifier: Apache-2.0
--
-- sin and cos, by quarter turns: see angle.lua for |x| = n pi/2 + r, r = hi + lo.
--
--     sin r = hi + (hi z S(z) + lo)              cos r = 1 + z (z C(z) - 1/2)              z = (hi + lo)^2, rounded once
--
-- In both the largest part is added last, with the only rounding that shows. z includes lo, too, or both would miss up to
-- 0.3 ULP.
--
-- n picks one of the two and the sign: sin |x| = sin r, cos r, -sin r, -cos r for n = 0, 1, 2, 3 mod 4, and cos is sin a
-- quarter turn later. sin takes the sign of x in the same exclusive or, so sin(-0) is -0.
--
-- Error budget, in ULP: 0.5 the last rounding; sin: 0.15 the products in hi z S(z), f32 0.1 its fit; cos: 0.25 the rounding of z,
-- 0.15 that of z C(z) - 1/2.

constants {
  -- |r| <= 0.7871. Relative error of sin r 2^-27.8, of cos r 2^-32.9.
  SIN_F32_S0 = -0x1.555544p-3,
  SIN_F32_S1 =  0x1.1106ep-7,
  SIN_F32_S2 = -0x1.9929c2p-13,
  SIN_F32_C0 =  0x1.55554ap-5,
  SIN_F32_C1 = -0x1.6c0c26p-10,
  SIN_F32_C2 =  0x1.99e718p-16,

  -- The same for f64: 2^-57.8, 2^-63.8.
  SIN_F64_S0 = -0x1.5555555555548p-3,
  SIN_F64_S1 =  0x1.111111110f736p-7,
  SIN_F64_S2 = -0x1.a01a019bea507p-13,
  SIN_F64_S3 =  0x1.71de355673419p-19,
  SIN_F64_S4 = -0x1.ae5e4caaa2893p-26,
  SIN_F64_S5 =  0x1.5d8bb3be9e696p-33,
  SIN_F64_C0 =  0x1.555555555554ap-5,
  SIN_F64_C1 = -0x1.6c16c16c14e2fp-10,
  SIN_F64_C2 =  0x1.a01a019c640a5p-16,
  SIN_F64_C3 = -0x1.27e4f7d4992e3p-22,
  SIN_F64_C4 =  0x1.1ee9c92fc545dp-29,
  SIN_F64_C5 = -0x1.8f9d4a5c404p-37,
}

func "sin_square" {
  doc  = "r^2 for r = hi + lo, rounded once.",
  args = "hi, lo",
  body = [[ fma(hi, hi, (hi + hi) * lo) ]],
}

func "sin_of" {
  doc  = "sin r for r = hi + lo, |r| <= 0.7871.",
  args = "hi, lo",
  f32  = [[
    f32 z = sin_square(hi, lo);
    f32 s = fma(z, fma(z, SIN_F32_S2, SIN_F32_S1), SIN_F32_S0);
    return hi + fma(z * hi, s, lo); ]],
  f64  = [[
    f64 z = sin_square(hi, lo);
    f64 s3 = fma(z, fma(z, SIN_F64_S5, SIN_F64_S4), SIN_F64_S3);
    f64 s = fma(z, fma(z, fma(z, s3, SIN_F64_S2), SIN_F64_S1), SIN_F64_S0);
    return hi + fma(z * hi, s, lo); ]],
  derivation = "tools/fit/sin.sollya",
}

func "cos_of" {
  doc  = "cos r for r = hi + lo, |r| <= 0.7871.",
  args = "hi, lo",
  f32  = [[
    f32 z = sin_square(hi, lo);
    f32 c = fma(z, fma(z, SIN_F32_C2, SIN_F32_C1), SIN_F32_C0);
    return fma(z, fma(z, c, -0.5), 1.0); ]],
  f64  = [[
    f64 z = sin_square(hi, lo);
    f64 c3 = fma(z, fma(z, SIN_F64_C5, SIN_F64_C4), SIN_F64_C3);
    f64 c = fma(z, fma(z, fma(z, c3, SIN_F64_C2), SIN_F64_C1), SIN_F64_C0);
    return fma(z, fma(z, c, -0.5), 1.0); ]],
  derivation = "tools/fit/sin.sollya",
}

func "sin" {
  doc  = "The sine of an angle in radians.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 hi = angle_hi(a);
    f32 lo = angle_lo(a);
    u32 n = raw_u32(angle_turns(a));
    bool turned = (n & 1) != 0;
    f32 y = turned ? cos_of(hi, lo) : sin_of(hi, lo);
    return canonical(as_f32(raw_u32(y) ^ ((raw_u32(x) ^ (n << 30)) & 0x80000000))); ]],
  f64  = [[
    f64 a = abs(x);
    f64 hi = angle_hi(a);
    f64 lo = angle_lo(a);
    u64 n = raw_u64(angle_turns(a));
    bool turned = (n & 1) != 0;
    f64 y = turned ? cos_of(hi, lo) : sin_of(hi, lo);
    return canonical(as_f64(raw_u64(y) ^ ((raw_u64(x) ^ (n << 62)) & 0x8000000000000000))); ]],
  derivation = "tools/fit/sin.sollya",
}

func "cos" {
  doc  = "The cosine of an angle in radians.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 hi = angle_hi(a);
    f32 lo = angle_lo(a);
    u32 n = raw_u32(angle_turns(a));
    bool turned = (n & 1) != 0;
    f32 y = turned ? sin_of(hi, lo) : cos_of(hi, lo);
    return canonical(as_f32(raw_u32(y) ^ (((n + 1) << 30) & 0x80000000))); ]],
  f64  = [[
    f64 a = abs(x);
    f64 hi = angle_hi(a);
    f64 lo = angle_lo(a);
    u64 n = raw_u64(angle_turns(a));
    bool turned = (n & 1) != 0;
    f64 y = turned ? sin_of(hi, lo) : cos_of(hi, lo);
    return canonical(as_f64(raw_u64(y) ^ (((n + 1) << 62) & 0x8000000000000000))); ]],
  derivation = "tools/fit/sin.sollya",
}
