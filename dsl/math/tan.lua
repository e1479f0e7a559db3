-- SPDX-License-Identifier: Apache-2.0
--
-- tan, by quarter turns: see angle.lua for |x| = n pi/2 + r, r = hi + lo. tan x is tan r for even n, -1 / tan r for odd n.
--
--     tan r = hi + (hi^3 T(hi^2) + d) = h + l
--
-- d is what lo and the rounding of hi^2 are worth, each times a factor near the derivative. The reciprocal w = -1/h is corrected
-- by what it misses: with v = hi^3 T + d, w (hi + v) is -1 + e, e small, and the result w + w e.
--
-- Error budget, in ULP: 0.5 the last rounding, 0.4 the products in hi^3 T(hi^2), 0.05 its fit.

constants {
  -- |r| <= 0.7871: relative error of tan r 2^-29.4.
  TAN_F32_T0 = 0x1.55556p-2,
  TAN_F32_T1 = 0x1.110d98p-3,
  TAN_F32_T2 = 0x1.badb8ap-5,
  TAN_F32_T3 = 0x1.5ca8ep-6,
  TAN_F32_T4 = 0x1.635e6p-7,
  TAN_F32_T5 = 0x1.3296eap-14,
  TAN_F32_T6 = 0x1.1f768ap-8,

  -- The same for f64: 2^-59.8.
  TAN_F64_T0  = 0x1.555555555555ep-2,
  TAN_F64_T1  = 0x1.11111111105c9p-3,
  TAN_F64_T2  = 0x1.ba1ba1babff0ep-5,
  TAN_F64_T3  = 0x1.664f485cf3927p-6,
  TAN_F64_T4  = 0x1.226e3a887fd4cp-7,
  TAN_F64_T5  = 0x1.d6d2e66e1caf4p-9,
  TAN_F64_T6  = 0x1.7db1a1c57d243p-10,
  TAN_F64_T7  = 0x1.34bb56c9c4607p-11,
  TAN_F64_T8  = 0x1.ff39d49533257p-13,
  TAN_F64_T9  = 0x1.5e3d6183e0c73p-14,
  TAN_F64_T10 = 0x1.1a64bf22f5e1dp-14,
  TAN_F64_T11 = -0x1.b06bf5e966f42p-16,
  TAN_F64_T12 = 0x1.990421ee94dp-15,
  TAN_F64_T13 = -0x1.984f51a2a0786p-16,
  TAN_F64_T14 = 0x1.494aaea4b0822p-17,
}

func "tan_series" {
  doc  = "T(z), where tan r = r + r^3 T(r^2), |r| <= 0.7871.",
  args = "z",
  f32  = [[
    f32 t5 = fma(z, TAN_F32_T6, TAN_F32_T5);
    f32 t3 = fma(z, fma(z, t5, TAN_F32_T4), TAN_F32_T3);
    return fma(z, fma(z, fma(z, t3, TAN_F32_T2), TAN_F32_T1), TAN_F32_T0); ]],
  f64  = [[
    f64 w = z * z;
    f64 t9 = fma(w, fma(w, TAN_F64_T13, TAN_F64_T11), TAN_F64_T9);
    f64 t10 = fma(w, fma(w, TAN_F64_T14, TAN_F64_T12), TAN_F64_T10);
    f64 t3 = fma(w, fma(w, fma(w, t9, TAN_F64_T7), TAN_F64_T5), TAN_F64_T3);
    f64 t4 = fma(w, fma(w, fma(w, t10, TAN_F64_T8), TAN_F64_T6), TAN_F64_T4);
    return fma(z, fma(z, fma(z, fma(z, t4, t3), TAN_F64_T2), TAN_F64_T1), TAN_F64_T0); ]],
  derivation = "tools/fit/tan.sollya",
}

func "tan_tail" {
  doc  = "tan r - hi for r = hi + lo, |r| <= 0.7871.",
  args = "hi, lo",
  body = [[
    T z = hi * hi;
    T d = fma(lo, fma(z, 1.6, 1.0), 0.5 * hi * fma(hi, hi, -z));
    return fma(z * hi, tan_series(z), d); ]],
}

func "tan_reciprocal" {
  doc  = "-1 / (hi + v), |v| < 0.3 |hi|.",
  args = "hi, v",
  body = [[
    T w = -1.0 / (hi + v);
    T e = fma(w, v, fma(w, hi, 1.0));
    return fma(w, e, w); ]],
}

func "tan" {
  doc  = "The tangent of an angle in radians.",
  args = "x",
  f32  = [[
    f32 hi = angle_hi(abs(x));
    f32 v = tan_tail(hi, angle_lo(abs(x)));
    f32 y = (raw_u32(angle_turns(abs(x))) & 1) != 0 ? tan_reciprocal(hi, v) : hi + v;
    return canonical(as_f32(raw_u32(y) ^ (raw_u32(x) & 0x80000000))); ]],
  f64  = [[
    f64 hi = angle_hi(abs(x));
    f64 v = tan_tail(hi, angle_lo(abs(x)));
    f64 y = (raw_u64(angle_turns(abs(x))) & 1) != 0 ? tan_reciprocal(hi, v) : hi + v;
    return canonical(as_f64(raw_u64(y) ^ (raw_u64(x) & 0x8000000000000000))); ]],
  derivation = "tools/fit/tan.sollya",
}
