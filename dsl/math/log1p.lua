-- log(1 + x), accurate near 0.
--
--     1 + x = 2^e (1 + f),  1 + f in [sqrt(1/2), sqrt(2)),      log(1 + x) = e ln2 + log(1 + f)
--
-- e is that of the rounded 1 + x, but f comes from x itself: f = 2^-e x + (2^-e - 1), both terms exact (for e up to 24;
-- beyond, what is lost does not show in the result). For e = 0 it is x, else the terms are within a factor of 2 and the sum
-- is exact, but for e = 1 with x < 1/2, where f_lo has the rest, 0.25 ULP. What follows is log's.
--
-- Where |x| is so small that x rounds to the result, it is: that keeps -0 and the last bit of subnormals.

constants {
  -- The bits of sqrt(1/2), rounded down, as in log.lua.
  LOG1P_SQRT1_2_BITS_F32 = 0x3f3504f3,
  LOG1P_SQRT1_2_BITS_F64 = 0x3fe6a09e667f3bcc,
}

func "log1p_sum" {
  doc  = "e ln2 + log(1 + f + f_lo), 1 + f in [sqrt(1/2), sqrt(2)), |f_lo| <= ULP(f).",
  args = "e, f, f_lo",
  -- f_lo / (1 + f) = f_lo (1 - f + ...)
  body = [[ log_hi(e, f) + (log_lo(e, f) + fma(-f_lo, f, f_lo)) ]],
}

func "log1p" {
  doc  = "log(1 + x).",
  args = "x",
  -- k is e in the exponent field. 2^-e may be 2^-128 (f64: 2^-1024): what would be a field of -1 becomes 0.
  f32  = [[
    f32 u = 1.0 + x;
    i32 k = (raw_i32(u) - LOG1P_SQRT1_2_BITS_F32) & 0xff800000;
    f32 s = as_f32(raw_i32(x) - k);
    f32 m = as_f32(maximum(0x3f800000 - k, 0)) - 1.0;
    f32 f = s + m;
    f32 f_lo = s - (f - m);
    f32 y = log1p_sum((f32)k * 0x1p-23, f, f_lo);
    rare (!(x > -1.0 && x < INFINITY)) { y = x == -1.0 ? -INFINITY : (x > 0.0 ? x : NAN); }
    return abs(x) < 0x1p-25 ? x : y; ]],
  f64  = [[
    f64 u = 1.0 + x;
    u64 b = raw_u64(u) + (0x3ff0000000000000 - LOG1P_SQRT1_2_BITS_F64);
    f64 e = as_f64((b >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0);
    i64 k = (i64)((b & 0xfff0000000000000) - 0x3ff0000000000000);
    f64 s = as_f64(raw_i64(x) - k);
    f64 m = as_f64(maximum(0x3ff0000000000000 - k, 0)) - 1.0;
    f64 f = s + m;
    f64 f_lo = s - (f - m);
    f64 y = log1p_sum(e, f, f_lo);
    rare (!(x > -1.0 && x < INFINITY)) { y = x == -1.0 ? -INFINITY : (x > 0.0 ? x : NAN); }
    return abs(x) < 0x1p-54 ? x : y; ]],
  ulp = { f32 = 0.9, f64 = 0.9 },
  derivation = "tools/fit/log.sollya",
}
