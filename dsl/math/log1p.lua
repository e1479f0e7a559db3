-- SPDX-License-Identifier: Apache-2.0
--
-- log(1 + x), accurate near 0.
--
--     1 + x = 2^e (1 + f),      log(1 + x) = e ln2 + log(1 + f)
--
-- with 1 + f in [sqrt(1/2), sqrt(2)) in f64; in f32 [2/3, 4/3), where f^2 is smaller at the upper end, so that the sum
-- f^2 (-1/2 + ...) may be rounded as a whole (log_hi and log_lo form it in two parts, and f64 does here).
--
-- e is that of the rounded 1 + x, but f comes from x itself: f = 2^-e x + (2^-e - 1), both terms exact (for e up to 24;
-- beyond, what is lost does not show in the result). For e = 0 it is x, else the terms are within a factor of 2 and the sum
-- is exact, but for e = 1 with x < 1/2, where f_lo has the rest, 0.5 ULP.
--
-- Where |x| is so small that x rounds to the result, it is: that keeps -0 and the last bit of subnormals.

constants {
  -- The lowest 1 + f: the bits of 2/3 (f32), sqrt(1/2) (f64), rounded down.
  LOG1P_LOW_BITS_F32 = 0x3f2aaaaa,
  LOG1P_LOW_BITS_F64 = 0x3fe6a09e667f3bcc,

  -- ln2 = HI + LO, e HI exact.
  LOG1P_LN2_HI_F32 = 0x1.62e4p-1,
  LOG1P_LN2_LO_F32 = 0x1.7f7d1cp-20,

  -- log(1+f) = f - f^2/2 + f^3 (C3 + C4 f + ...): relative error 2^-30.0.
  LOG1P_F32_C3  =  0x1.555556p-2,
  LOG1P_F32_C4  = -0x1.ffff0ep-3,
  LOG1P_F32_C5  =  0x1.999808p-3,
  LOG1P_F32_C6  = -0x1.559928p-3,
  LOG1P_F32_C7  =  0x1.24e784p-3,
  LOG1P_F32_C8  = -0x1.f38698p-4,
  LOG1P_F32_C9  =  0x1.b97f2ap-4,
  LOG1P_F32_C10 = -0x1.07183ep-3,
  LOG1P_F32_C11 =  0x1.e854f6p-4,
}

func "log1p_sum" {
  doc  = "e ln2 + log(1 + f + f_lo), 1 + f in [2/3, 4/3) (f32), [sqrt(1/2), sqrt(2)) (f64), |f_lo| <= ULP(f).",
  args = "e, f, f_lo",
  -- f_lo / (1 + f) = f_lo (1 - f + ...)
  f32  = [[
    f32 f2 = f * f;
    f32 a = fma(f, LOG1P_F32_C4, LOG1P_F32_C3);
    f32 b = fma(f, LOG1P_F32_C6, LOG1P_F32_C5);
    f32 c = fma(f, LOG1P_F32_C8, LOG1P_F32_C7);
    f32 d = fma(f, LOG1P_F32_C10, LOG1P_F32_C9);
    f32 g = fma(f2, fma(f2, LOG1P_F32_C11, d), c);
    f32 q = fma(f, fma(f2 * f2, g, fma(f2, b, a)), -0.5);
    f32 u = fma(e, LOG1P_LN2_HI_F32, f);
    f32 ul = f - fma(e, -LOG1P_LN2_HI_F32, u);
    f32 l = fma(e, LOG1P_LN2_LO_F32, ul + fma(-f_lo, f, f_lo));
    return u + fma(f2, q, l); ]],
  f64  = [[ log_hi(e, f) + (log_lo(e, f) + fma(-f_lo, f, f_lo)) ]],
  derivation = "tools/fit/log1p.sollya",
}

func "log1p" {
  doc  = "log(1 + x).",
  args = "x",
  -- k is e in the exponent field. 2^-e may be 2^-128 (f64: 2^-1024): what would be a field of -1 becomes 0. The last
  -- comparison finds all u but the positive and finite.
  f32  = [[
    f32 u = 1.0 + x;
    i32 k = (raw_i32(u) - LOG1P_LOW_BITS_F32) & 0xff800000;
    f32 s = as_f32(raw_i32(x) - k);
    f32 m = as_f32(maximum(0x3f800000 - k, 0)) - 1.0;
    f32 f = s + m;
    f32 f_lo = s - (f - m);
    f32 y = log1p_sum((f32)k * 0x1p-23, f, f_lo);
    rare (raw_u32(u) - 1 >= 0x7f7fffff) { y = x == -1.0 ? -INFINITY : (x > 0.0 ? x : NAN); }
    return abs(x) < 0x1p-25 ? x : y; ]],
  f64  = [[
    f64 u = 1.0 + x;
    u64 b = raw_u64(u) + (0x3ff0000000000000 - LOG1P_LOW_BITS_F64);
    f64 e = as_f64((b >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
    i64 k = (i64)((b & 0xfff0000000000000) - 0x3ff0000000000000);
    f64 s = as_f64(raw_i64(x) - k);
    f64 m = as_f64(maximum(0x3ff0000000000000 - k, 0)) - 1.0;
    f64 f = s + m;
    f64 f_lo = s - (f - m);
    f64 y = log1p_sum(e, f, f_lo);
    rare (raw_u64(u) - 1 >= 0x7fefffffffffffff) { y = x == -1.0 ? -INFINITY : (x > 0.0 ? x : NAN); }
    return abs(x) < 0x1p-54 ? x : y; ]],
  ulp = { f32 = 0.91, f64 = 0.69 },    -- f32: over all arguments, 0.900; f64: 0.667 measured
  derivation = "tools/fit/log1p.sollya",
}

func "log1p_join" {
  doc  = "The v beyond which 1 + v is halved by log1p_unit, in v's type.",
  args = "v",
  f32  = [[ 0x1.555554p-2 ]],
  f64  = [[ 0x1.a827999fcef34p-2 ]],
}

func "log1p_unit" {
  doc  = "log(1 + v) for 0 <= v <= 1: e is 0 or 1.",
  args = "v",
  body = [[
    bool far = v > log1p_join(v);
    T f = far ? fma(v, 0.5, -0.5) : v;
    return log1p_sum(far ? 1.0 : 0.0, f, far ? fma(v, 0.5, -0.5 - f) : 0); ]],
}
