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
-- Where |x| is so small that x rounds to the result, f is x, and the last sum gives it; -0 alone needs its sign again.
--
-- f64 goes by the tables of log.lua: 1 + x and what its rounding lost are scaled by 2^-e.

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

func "log1p_beyond" {
  doc  = "log(1 + x) for x = -1, for x that are so large that it is log x, and for those without a logarithm.",
  args = "x",
  body = [[
    T y = x < INFINITY ? log_by_table(log_table_exponent(x), x) : x;
    return x > 0.0 ? y : (x == -1.0 ? -INFINITY : NAN); ]],
}

func "log1p" {
  doc  = "log(1 + x).",
  args = "x",
  -- What is rare: all u but the positive numbers below 2^127 (f64: 2^1023).
  f32  = [[
    f32 u = 1.0 + x;
    f32 y = copysign(log_table_sum(u, log_table_exponent(u), (x - (u - 1.0)) * log_table_scale(u)), x);
    rare (raw_u32(u) - 1 >= 0x7effffff) { y = log1p_beyond(x); }
    return y; ]],
  f64  = [[
    f64 u = 1.0 + x;
    f64 y = copysign(log_table_sum(u, log_table_exponent(u), (x - (u - 1.0)) * log_table_scale(u)), x);
    rare (raw_u64(u) - 1 >= 0x7fdfffffffffffff) { y = log1p_beyond(x); }
    return y; ]],
  ulp = { f32 = 0.76, f64 = 0.76 },    -- f32: over all arguments, 0.750, where x is lost in 1 + x; f64: 0.53 measured elsewhere
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
