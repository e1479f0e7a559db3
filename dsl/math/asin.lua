-- SPDX-License-Identifier: Apache-2.0
--
-- The arc sine and the arc cosine.
--
--     |x| <= 1/2:  asin(x) = x + x^3 R(x^2),          acos(x) = pi/2 - asin(x)
--     beyond:      asin(x) = pi/2 - 2 asin(z),        acos(x) = 2 asin(z),   x < 0: pi - 2 asin(z);     z = sqrt((1 - |x|) / 2)
--
-- so all of them are c + t + t u R(u): c = 0, pi/2 or pi, t = x or 2 z with a sign, u = t^2 or z^2, |t| <= 1/2 or 2 * 1/2.
-- u is exact beyond 1/2, where it counts most; where x is not within [-1, 1] it is negative, and its root NaN.
--
-- The rounding of the root would be half an ULP: it is made good by z_lo = (u - z^2) / (2 z). The difference is exact, an
-- fma; of 1/z a rough value will do, which is had from the bits of u: halving and negating the exponent makes 1/sqrt(u), the
-- mantissa comes along as a line between the powers, and the constant is the one that keeps the error below 3.5%
-- (C. Lomont, Fast inverse square root, 2003).
--
-- c is HI + LO, and HI + t is summed exactly, as hi + lo, so that the rest is small when it is added.
--
-- Errors, in ULP: 0.5 the last rounding, 0.1 t u R, 0.13 the fit, 0.03 z_lo.

constants {
  ASIN_ROOT_BITS_F32 = 0x5f375a86,
  ASIN_ROOT_BITS_F64 = 0x5fe6eb50c7b537a9,

  ASIN_PI_2_HI_F32 =  0x1.921fb6p0,
  ASIN_PI_2_LO_F32 = -0x1.777a5cp-25,
  ASIN_PI_2_HI_F64 =  0x1.921fb54442d18p0,
  ASIN_PI_2_LO_F64 =  0x1.1a62633145c07p-54,

  -- asin(t) = t + C3 t^3 + C5 t^5 + ..., |t| <= 1/2: relative error 2^-27.6, 0.04 to 0.08 ULP.
  ASIN_F32_C3  = 0x1.5555c8p-3,
  ASIN_F32_C5  = 0x1.330206p-4,
  ASIN_F32_C7  = 0x1.747b72p-5,
  ASIN_F32_C9  = 0x1.8c415ap-6,
  ASIN_F32_C11 = 0x1.5959aap-5,

  -- The same for f64: relative error 2^-55.9, 0.07 to 0.13 ULP.
  ASIN_F64_C3  =  0x1.555555555539p-3,
  ASIN_F64_C5  =  0x1.333333336e80fp-4,
  ASIN_F64_C7  =  0x1.6db6db427a4f8p-5,
  ASIN_F64_C9  =  0x1.f1c72c38fb342p-6,
  ASIN_F64_C11 =  0x1.6e89f440197a8p-6,
  ASIN_F64_C13 =  0x1.1c6be1a68770cp-6,
  ASIN_F64_C15 =  0x1.c6fdc1aaa597cp-7,
  ASIN_F64_C17 =  0x1.8ec2fca60060dp-7,
  ASIN_F64_C19 =  0x1.abcf5cd7f156ep-8,
  ASIN_F64_C21 =  0x1.3ff4a9908c2fbp-6,
  ASIN_F64_C23 = -0x1.09d3283359a11p-6,
  ASIN_F64_C25 =  0x1.056d6c811e11dp-5,
}

func "asin_rest" {
  doc  = "R(u), where asin(t) = t + t^3 R(t^2), |t| <= 1/2.",
  args = "u",
  f32  = [[
    f32 p9 = fma(ASIN_F32_C11, u, ASIN_F32_C9);
    f32 p7 = fma(p9, u, ASIN_F32_C7);
    f32 p5 = fma(p7, u, ASIN_F32_C5);
    return fma(p5, u, ASIN_F32_C3); ]],
  f64  = [[
    f64 u2 = u * u;
    f64 a21 = fma(ASIN_F64_C25, u2, ASIN_F64_C21);
    f64 a17 = fma(a21, u2, ASIN_F64_C17);
    f64 a13 = fma(a17, u2, ASIN_F64_C13);
    f64 a9 = fma(a13, u2, ASIN_F64_C9);
    f64 a5 = fma(a9, u2, ASIN_F64_C5);
    f64 b19 = fma(ASIN_F64_C23, u2, ASIN_F64_C19);
    f64 b15 = fma(b19, u2, ASIN_F64_C15);
    f64 b11 = fma(b15, u2, ASIN_F64_C11);
    f64 b7 = fma(b11, u2, ASIN_F64_C7);
    f64 b3 = fma(b7, u2, ASIN_F64_C3);
    return fma(a5, u, b3); ]],
  derivation = "tools/fit/asin.sollya",
}

func "asin_root_lo" {
  doc  = "2 (sqrt(u) - z), where z = sqrt(u) rounded: what the rounding lost, to 4%.",
  args = "u, z",
  f32  = [[ fma(-z, z, u) * as_f32(ASIN_ROOT_BITS_F32 - (raw_u32(u) >> 1)) ]],
  f64  = [[ fma(-z, z, u) * as_f64(ASIN_ROOT_BITS_F64 - (raw_u64(u) >> 1)) ]],
}

func "asin" {
  doc  = "The arc sine, in [-pi/2, pi/2]; NaN outside [-1, 1].",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    bool far = a > 0.5;
    f32 u = far ? fma(-0.5, a, 0.5) : a * a;
    f32 z = sqrt(u);
    f32 t = far ? -2 * z : a;                             // a NaN stays
    f32 t_lo = far ? ASIN_PI_2_LO_F32 - asin_root_lo(u, z) : 0;
    f32 c = far ? ASIN_PI_2_HI_F32 : 0;
    f32 hi = c + t;
    f32 lo = t - (hi - c);
    f32 y = hi + fma(t * u, asin_rest(u), lo + t_lo);
    return as_f32(raw_u32(y) | (raw_u32(x) & 0x80000000)); ]],
  f64  = [[
    f64 a = abs(x);
    bool far = a > 0.5;
    f64 u = far ? fma(-0.5, a, 0.5) : a * a;
    f64 z = sqrt(u);
    f64 t = far ? -2 * z : a;
    f64 t_lo = far ? ASIN_PI_2_LO_F64 - asin_root_lo(u, z) : 0;
    f64 c = far ? ASIN_PI_2_HI_F64 : 0;
    f64 hi = c + t;
    f64 lo = t - (hi - c);
    f64 y = hi + fma(t * u, asin_rest(u), lo + t_lo);
    return as_f64(raw_u64(y) | (raw_u64(x) & 0x8000000000000000)); ]],
  -- f32: over all arguments, 0.690. f64: over 3 * 10^7, 0.770.
  ulp = { f32 = 0.7, f64 = 0.8 },
  derivation = "tools/fit/asin.sollya",
}

func "acos" {
  doc  = "The arc cosine, in [0, pi]; NaN outside [-1, 1].",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    bool far = a > 0.5;
    u32 minus = raw_u32(x) & 0x80000000;
    f32 u = far ? fma(-0.5, a, 0.5) : a * a;
    f32 z = sqrt(u);
    f32 t = far ? as_f32(raw_u32(z + z) ^ minus) : -x;    // a NaN stays
    f32 t_lo = far ? as_f32(raw_u32(asin_root_lo(u, z)) ^ minus) : ASIN_PI_2_LO_F32;
    f32 c = far ? (minus != 0 ? 2 * ASIN_PI_2_HI_F32 : 0) : ASIN_PI_2_HI_F32;
    f32 c_lo = far && minus != 0 ? 2 * ASIN_PI_2_LO_F32 : 0;
    f32 hi = c + t;
    f32 lo = t - (hi - c);
    return hi + fma(t * u, asin_rest(u), lo + (t_lo + c_lo)); ]],
  f64  = [[
    f64 a = abs(x);
    bool far = a > 0.5;
    u64 minus = raw_u64(x) & 0x8000000000000000;
    f64 u = far ? fma(-0.5, a, 0.5) : a * a;
    f64 z = sqrt(u);
    f64 t = far ? as_f64(raw_u64(z + z) ^ minus) : -x;
    f64 t_lo = far ? as_f64(raw_u64(asin_root_lo(u, z)) ^ minus) : ASIN_PI_2_LO_F64;
    f64 c = far ? (minus != 0 ? 2 * ASIN_PI_2_HI_F64 : 0) : ASIN_PI_2_HI_F64;
    f64 c_lo = far && minus != 0 ? 2 * ASIN_PI_2_LO_F64 : 0;
    f64 hi = c + t;
    f64 lo = t - (hi - c);
    return hi + fma(t * u, asin_rest(u), lo + (t_lo + c_lo)); ]],
  -- f32: over all arguments, 0.681. f64: over 3 * 10^7, 0.733.
  ulp = { f32 = 0.7, f64 = 0.8 },
  derivation = "tools/fit/asin.sollya",
}
