-- SPDX-License-Identifier: Apache-2.0
--
-- The inverse hyperbolic sine and cosine, as logarithms of a sum in two parts.
--
--     asinh|x| = log(|x| + s),  s = sqrt(x^2 + 1)          acosh x = log(x + s),  s = sqrt(x^2 - 1)
--
-- The sum is v + v_lo to twice the precision, so that nothing is lost where it is near 1; log_table_sum of log.lua takes it:
--
--     w = x^2 + 1,  w_lo what its rounding lost (an fma);  acosh has z = x - 1, exact, and w = z^2 + 2 z,
--     s = sqrt(w),  s_lo = (w - s^2 + w_lo) / (2 s), for which 1 / s need only be good to 1%: no division is made.
--
-- That 1% of s_lo is 0.1 ULP of asinh at |x| = 1/16; below, a polynomial. Where x^2 would overflow s is |x|, log(2 |x|) is the
-- result, and it is rare.

constants {
  ASINH_SMALL = 0x1p-4,
  ASINH_LARGE_F32 = 0x1p60,
  ASINH_LARGE_F64 = 0x1p500,
  -- Their bits less those of 1: of acosh, x from 1 to there are not rare.
  ACOSH_RANGE_BITS_F32 = 0x1e000000,
  ACOSH_RANGE_BITS_F64 = 0x1f40000000000000,

  -- Less the bits of s: those of 1 / s to 12%, for positive normal s. Larger than the best by what one step of Newton's method
  -- takes away on average.
  ASINH_RECIPROCAL_F32 = 0x7ef311c7,
  ASINH_RECIPROCAL_F64 = 0x7fde6238502484ba,

  -- The lowest mantissa, as in log1p.lua.
  ASINH_LOW_BITS_F32 = 0x3f2aaaaa,
  ASINH_LOW_BITS_F64 = 0x3fe6a09e667f3bcc,

  -- asinh(x) = x + C3 x^3 + C5 x^5 + ..., |x| <= 1/16: relative error 2^-33.1 (f64: 2^-64.6).
  ASINH_F32_C3  = -0x1.55552ep-3,
  ASINH_F32_C5  =  0x1.32352p-4,
  ASINH_F64_C3  = -0x1.5555555555547p-3,
  ASINH_F64_C5  =  0x1.333333331a23ep-4,
  ASINH_F64_C7  = -0x1.6db6da88995a7p-5,
  ASINH_F64_C9  =  0x1.f1c387612400fp-6,
  ASINH_F64_C11 = -0x1.6b4876406e95ap-6,
}

func "asinh_root_lo" {
  doc  = "What s, the rounded square root of w + w_lo, leaves out.",
  args = "w, w_lo, s",
  -- i (1 - s i / 2) = 1 / (2 s): Newton's step and the half together.
  f32  = [[
    f32 i = as_f32(ASINH_RECIPROCAL_F32 - raw_u32(s));
    return (fma(-s, s, w) + w_lo) * (i * fma(-0.5 * s, i, 1)); ]],
  f64  = [[
    f64 i = as_f64(ASINH_RECIPROCAL_F64 - raw_u64(s));
    return (fma(-s, s, w) + w_lo) * (i * fma(-0.5 * s, i, 1)); ]],
}

func "asinh_exponent" {
  doc  = "e of v = 2^e m, m in the interval of log1p_sum, as a float. For positive normal v.",
  args = "v",
  f32  = [[ (f32)((raw_i32(v) - ASINH_LOW_BITS_F32) & 0xff800000) * 0x1p-23 ]],
  f64  = [[
    u64 b = raw_u64(v) + (0x3ff0000000000000 - ASINH_LOW_BITS_F64);
    return as_f64((b >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0); ]],
}

func "asinh_log" {
  doc  = "log(v + v_lo), |v_lo| <= ULP(v), for v from 1 to the square root of the largest number.",
  args = "v, v_lo",
  body = [[ log_table_sum(v, log_table_exponent(v), v_lo * log_table_scale(v)) ]],
}

func "asinh_large" {
  doc  = "log(2 a), or a where that is infinite or NaN.",
  args = "a",
  f32  = [[
    i32 k = (raw_i32(a) - ASINH_LOW_BITS_F32) & 0xff800000;
    f32 y = log1p_sum(asinh_exponent(a) + 1, as_f32(raw_i32(a) - k) - 1, 0);
    return a < INFINITY ? y : a; ]],
  f64  = [[
    u64 b = raw_u64(a) + (0x3ff0000000000000 - ASINH_LOW_BITS_F64);
    f64 y = log1p_sum(asinh_exponent(a) + 1, as_f64((b & 0x000fffffffffffff) + ASINH_LOW_BITS_F64) - 1, 0);
    return a < INFINITY ? y : a; ]],
}

func "asinh" {
  doc  = "Inverse hyperbolic sine.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 w = fma(a, a, 1);
    f32 s = sqrt(w);
    f32 v = s + a;
    f32 l = asinh_log(v, (s - v) + a + asinh_root_lo(w, fma(a, a, 1 - w), s));
    f32 z = a * a;
    f32 p = fma(a * z, fma(ASINH_F32_C5, z, ASINH_F32_C3), a);
    f32 y = a < ASINH_SMALL ? p : l;
    rare (!(a < ASINH_LARGE_F32)) { y = asinh_large(a); }
    return copysign(y, x); ]],
  f64  = [[
    f64 a = abs(x);
    f64 w = fma(a, a, 1);
    f64 s = sqrt(w);
    f64 v = s + a;
    f64 l = asinh_log(v, (s - v) + a + asinh_root_lo(w, fma(a, a, 1 - w), s));
    f64 z = a * a;
    f64 p7 = fma(fma(ASINH_F64_C11, z, ASINH_F64_C9), z, ASINH_F64_C7);
    f64 p = fma(a * z, fma(fma(p7, z, ASINH_F64_C5), z, ASINH_F64_C3), a);
    f64 y = a < ASINH_SMALL ? p : l;
    rare (!(a < ASINH_LARGE_F64)) { y = asinh_large(a); }
    return copysign(y, x); ]],
  ulp = { f32 = 0.6, f64 = 0.6 },      -- f32: over all arguments, 0.53; f64: 0.525 measured
  derivation = "tools/fit/asinh.sollya",
}

func "acosh" {
  doc  = "Inverse hyperbolic cosine.",
  args = "x",
  f32  = [[
    f32 z = x - 1;
    f32 w = fma(z, z, z + z);
    f32 s = sqrt(w);
    f32 v = x + s;
    f32 y = asinh_log(v, (x - v) + s + asinh_root_lo(w, fma(z, z, z + z - w), s));
    rare (raw_u32(x) - 0x3f800000 >= ACOSH_RANGE_BITS_F32) { y = x < 1 ? NAN : asinh_large(x); }
    return y; ]],
  f64  = [[
    f64 z = x - 1;
    f64 w = fma(z, z, z + z);
    f64 s = sqrt(w);
    f64 v = x + s;
    f64 y = asinh_log(v, (x - v) + s + asinh_root_lo(w, fma(z, z, z + z - w), s));
    rare (raw_u64(x) - 0x3ff0000000000000 >= ACOSH_RANGE_BITS_F64) { y = x < 1 ? NAN : asinh_large(x); }
    return y; ]],
  ulp = { f32 = 0.6, f64 = 0.6 },      -- f32: over all arguments, 0.553; f64: 0.556 measured
  derivation = "tools/fit/asinh.sollya",
}
