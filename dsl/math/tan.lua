-- tan, by quarter turns: see angle.lua for |x| = n pi/2 + r, r = hi + lo. tan x is tan r for even n, -1 / tan r for odd n.
--
-- f32: tan r = hi + (hi^3 T(hi^2) + d) = h + l. d is what lo and the rounding of hi^2 are worth, each times a factor near the
-- derivative. The reciprocal w = -1/h is corrected by what it misses: w (h + l) is -1 + e, e small and nearly exact (an fma), and
-- the result w + w e.
--
-- f64: T would have 14 terms. tan r is sin r / cos r, each of them a sum of two parts, p + pl and q + ql, by the polynomials of
-- sin.lua; for odd n the two change places. The quotient y = p (1/q) is corrected by its remainder: ((p + pl) - y (q + ql)) / q.
--
-- Error budget, in ULP: 0.5 the last rounding; f32: 0.4 the products in hi^3 T(hi^2), 0.05 its fit; f64: 0.1 the products of
-- sin_tail and cos_tail.

constants {
  -- |r| <= 0.7871: relative error of tan r 2^-29.4.
  TAN_F32_T0 = 0x1.55556p-2,
  TAN_F32_T1 = 0x1.110d98p-3,
  TAN_F32_T2 = 0x1.badb8ap-5,
  TAN_F32_T3 = 0x1.5ca8ep-6,
  TAN_F32_T4 = 0x1.635e6p-7,
  TAN_F32_T5 = 0x1.3296eap-14,
  TAN_F32_T6 = 0x1.1f768ap-8,
}

func "tan" {
  doc  = "The tangent of an angle in radians.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 hi = angle_hi(a);
    f32 z = hi * hi;
    f32 t5 = fma(z, TAN_F32_T6, TAN_F32_T5);
    f32 t3 = fma(z, fma(z, t5, TAN_F32_T4), TAN_F32_T3);
    f32 t0 = fma(z, fma(z, fma(z, t3, TAN_F32_T2), TAN_F32_T1), TAN_F32_T0);
    f32 d = fma(angle_lo(a), fma(z, 1.6, 1.0), 0.5 * hi * fma(hi, hi, -z));
    f32 v = fma(z * hi, t0, d);
    f32 h = hi + v;
    f32 l = v - (h - hi);
    f32 w = -1 / h;
    f32 e = fma(w, l, fma(w, h, 1.0));
    f32 y = (raw_u32(angle_turns(a)) & 1) != 0 ? fma(w, e, w) : h;
    return as_f32(raw_u32(y) ^ (raw_u32(x) & 0x80000000)); ]],
  f64  = [[
    f64 a = abs(x);
    f64 hi = angle_hi(a);
    f64 lo = angle_lo(a);
    u64 n = raw_u64(angle_turns(a));
    bool turned = (n & 1) != 0;
    f64 st = sin_tail(hi, lo);
    f64 s = hi + st;
    f64 sl = st - (s - hi);
    f64 w = cos_head(hi);
    f64 ct = fma(fma(hi, hi, -(hi * hi)), -0.5, cos_tail(hi, lo));    // with what hi^2 lost
    f64 c = w + ct;
    f64 cl = ct - (c - w);
    f64 p = turned ? c : s;
    f64 q = turned ? s : c;
    f64 i = 1 / q;
    f64 y = p * i;
    f64 e = fma(-y, turned ? sl : cl, fma(-y, q, p) + (turned ? cl : sl));
    return as_f64(raw_u64(fma(e, i, y)) ^ ((raw_u64(x) ^ (n << 63)) & 0x8000000000000000)); ]],
  derivation = "tools/fit/tan.sollya",
}
