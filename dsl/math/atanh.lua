-- SPDX-License-Identifier: Apache-2.0
--
-- The inverse hyperbolic tangent: tanh.lua the other way round.
--
--     atanh|x| = 1/2 log((1 + |x|) / (1 - |x|)),     g = 1 + |x|,  b = 1 - |x|
--
--     g / b = 2^e (1 + s) / (1 - s),     s = (g - 2^e b) / (g + 2^e b),     atanh|x| = e ln2 / 2 + atanh(s)
--
-- e is rounded from the difference of the bits of g and b, which is their quotient's logarithm but for 0.09; so |s| <= 0.2 and
-- a short odd polynomial with the leading term s does. e becomes 1 at |x| = 1/6 and 2 at 1/2.
--
-- s must not cost a rounding at e = 1, where ln2/2 + s cancels to 0.17: g and b have a low part (b from |x| = 1/2 on none), their
-- difference is exact (they are within a factor of 2), and the quotient is corrected by what is left of the division. For
-- e = 0 all this gives s = |x|, in two parts.

constants {
  -- ln2 / 2 = HI + LO, HI short (16 and 42 bits) so that e HI is exact.
  ATANH_LN2_2_HI_F32 = 0x1.62e4p-2,
  ATANH_LN2_2_LO_F32 = 0x1.7f7d1cp-21,
  ATANH_LN2_2_HI_F64 = 0x1.62e42fefa38p-2,
  ATANH_LN2_2_LO_F64 = 0x1.ef35793c7673p-46,

  -- atanh(s) = s + C3 s^3 + C5 s^5 + ..., |s| <= 0.2002: relative error 2^-28.3, 0.04 ULP (f64: 2^-55.8).
  ATANH_F32_C3  =  0x1.5555b4p-2,
  ATANH_F32_C5  =  0x1.992aaap-3,
  ATANH_F32_C7  =  0x1.36eca2p-3,

  ATANH_F64_C3  =  0x1.555555555577bp-2,
  ATANH_F64_C5  =  0x1.99999998ef534p-3,
  ATANH_F64_C7  =  0x1.249249b32cb52p-3,
  ATANH_F64_C9  =  0x1.c71c00b573c0dp-4,
  ATANH_F64_C11 =  0x1.7474ff638996ap-4,
  ATANH_F64_C13 =  0x1.38508dfa83493p-4,
  ATANH_F64_C15 =  0x1.3ad03c6be8f07p-4,
}

func "atanh" {
  doc  = "Inverse hyperbolic tangent.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 g = 1 + a;
    f32 b = 1 - a;
    f32 g_lo = a - (g - 1);
    f32 b_lo = (1 - b) - a;
    i32 k = (raw_i32(g) - raw_i32(b) + 0x400000) & 0xff800000;
    f32 e = (f32)k * 0x1p-23;
    f32 q = as_f32(0x3f800000 + k);
    f32 c = b * q;
    f32 n = g - c;
    f32 n_lo = fma(-b_lo, q, g_lo);
    f32 d = g + c;
    f32 d_lo = c - (d - g) + g_lo;
    f32 w = 1 / d;
    f32 s = n * w;
    f32 s_lo = w * (fma(-s, d_lo, n_lo) + fma(-s, d, n));
    f32 z = s * s;
    f32 p = fma(fma(ATANH_F32_C7, z, ATANH_F32_C5), z, ATANH_F32_C3);
    f32 u = fma(e, ATANH_LN2_2_HI_F32, s);
    f32 u_lo = s - fma(e, -ATANH_LN2_2_HI_F32, u);
    f32 y = canonical(copysign(u + fma(s * z, p, fma(e, ATANH_LN2_2_LO_F32, u_lo + s_lo)), x));
    rare (!(a < 1)) { y = a == 1 ? copysign(INFINITY, x) : NAN; }
    return y; ]],
  f64  = [[
    f64 a = abs(x);
    f64 g = 1 + a;
    f64 b = 1 - a;
    f64 g_lo = a - (g - 1);
    f64 b_lo = (1 - b) - a;
    u64 k = (raw_u64(g) - raw_u64(b) + 0x8000000000000) >> 52;
    f64 e = as_f64(k | 0x4330000000000000) - 0x1p52;
    f64 q = as_f64((k << 52) + 0x3ff0000000000000);
    f64 c = b * q;
    f64 n = g - c;
    f64 n_lo = fma(-b_lo, q, g_lo);
    f64 d = g + c;
    f64 d_lo = c - (d - g) + g_lo;
    f64 w = 1 / d;
    f64 s = n * w;
    f64 s_lo = w * (fma(-s, d_lo, n_lo) + fma(-s, d, n));
    f64 z = s * s;
    f64 z2 = z * z;
    f64 p9 = fma(fma(fma(ATANH_F64_C15, z, ATANH_F64_C13), z, ATANH_F64_C11), z, ATANH_F64_C9);
    f64 p5 = fma(ATANH_F64_C7, z, ATANH_F64_C5);
    f64 p = fma(fma(p9, z2, p5), z, ATANH_F64_C3);
    f64 u = fma(e, ATANH_LN2_2_HI_F64, s);
    f64 u_lo = s - fma(e, -ATANH_LN2_2_HI_F64, u);
    f64 y = canonical(copysign(u + fma(s * z, p, fma(e, ATANH_LN2_2_LO_F64, u_lo + s_lo)), x));
    rare (!(a < 1)) { y = a == 1 ? copysign(INFINITY, x) : NAN; }
    return y; ]],
  ulp = { f32 = 0.88, f64 = 0.92 },    -- f32: over all arguments, 0.85; f64: 0.894 measured
  derivation = "tools/fit/atanh.sollya",
}
