-- SPDX-License-Identifier: Apache-2.0
--
-- tanh, by the addition theorem.
--
-- f32: b in place of |x|, of a table by the exponent and two more bits of |x| (0 below 2^-4), h = tanh b and u = |x| - b, exact:
--
--     tanh|x| = h + (1 - h^2) t / (1 + h t),     t = tanh u = u + C3 u^3 + C5 u^5 + C7 u^7,   |u| <= 0.1251 |x|
--
-- b lies near the middle of its interval where tanh b is within 2^-8.7 ULP of a float, mostly 2^-11. What is added to it is at
-- most an eighth of it, with three roundings and the error of t: 0.2 ULP, and the last addition 0.5. Below 2^-4 b = h = 0, and
-- the result is t. From 9.011 on the result is 1. Tables of 32 items are looked up in registers
-- (templates/c/headers/kernel_strips.h).
--
-- f64: by exponent splitting, and one division that is corrected. The argument is cut at multiples of ln2/2 (k <= 0 is an
-- integer, s = 2^k):
--
--     |x| = -k ln2/2 + r,   |r| <= ln2/4 = 0.1733,      tanh(-k ln2/2) = (1 - s) / (1 + s),    u = tanh(r)
--
--                (1 - s) + u (1 + s)      d + u c
--     tanh|x| = --------------------- =  ---------     c = 1 + s,  d = 1 - s
--                (1 + s) + u (1 - s)      c + u d
--
-- This beats (e^2x - 1) / (e^2x + 1): tanh(r) is odd and |r| small, so a polynomial of six terms does,
-- its leading term is r itself, without error, and for small x (k = 0, s = 1) the quotient is 2u / 2 = u.
--
-- Rounding numerator, denominator and quotient one by one would cost 2 ULP, worst at |x| = 0.174, where d and u c have
-- opposite signs. So the quotient is only an estimate y, cut to its upper half of mantissa bits, and is corrected:
--
--     tanh|x| = y + e / (c + u d),     e = (d + u c) - y (c + u d) = (d - y c) + u (c - y d),    u = r + g
--
-- c and d have few bits and y half a mantissa, so both brackets are exact, each a single fma (for k < -26 they are rounded, but
-- small by then). e is at most 2^-25 of the result, so its rounding and that of 1 / (c + u d) do not show; u enters unrounded,
-- as r + g. What is left is the last addition, 0.5 ULP, and the error of g = tanh(r) - r, which is at most 1% of u.
--
-- For s = 2^-53 and less c rounds to 1; d = c - 2s rather than 1 - s keeps the distance to 1, 2s. In the last piece,
-- |x| > 18.88, d becomes 1 too and the result is 1, at most 0.71 ULP above the true value.

constants {
  -- f32 tanh rounds to 1 from 9.011 on; the tables' last interval ends at 10. Below 2^-4 all have one place in the tables.
  TANH_MAX_BITS_F32 = 0x4111999a, -- 9.1
  TANH_LOW_BITS_F32 = 0x3d7fffff,

  -- f64 tanh rounds to 1 from 19.062 on; much larger arguments would overflow the exponent of s.
  TANH_MAX_F64 = 19.2,

  -- The error of tanh u is at most 2^-27.8 of h / (1 - h^2), 0.07 ULP of the result, worst where an interval of 2^k begins; below
  -- 2^-4, where tanh u is the result, 2^-32 of it.
  TANH_F32_C3 = -0x1.555542p-2,
  TANH_F32_C5 =  0x1.10d876p-3,
  TANH_F32_C7 = -0x1.9517e4p-5,

  -- 3/2 * 2^52: adding it rounds to integer, see exp.lua. With the exponent bias added, the low bits of the sum are the exponent
  -- field of 2^k.
  TANH_SHIFT_F64 = 0x1.8p52 + 1023,

  -- ln2/2. r = |x| + k HI is exact: for k != 0, |x| and k HI are multiples of 2^-55 and r fits the mantissa.
  TANH_LN2_2_HI_F64 = 0x1.62e42fefa39efp-2,
  TANH_LN2_2_LO_F64 = 0x1.abc9e3b39803fp-57,

  -- tanh(r) = r + C3 r^3 + C5 r^5 + ..., |r| <= 0.1734: relative error 2^-57.7, 0.04 ULP.
  TANH_F64_C3  = -0x1.55555555554bcp-2,
  TANH_F64_C5  =  0x1.11111110e08c8p-3,
  TANH_F64_C7  = -0x1.ba1ba1168ae77p-5,
  TANH_F64_C9  =  0x1.664ec9ac573dfp-6,
  TANH_F64_C11 = -0x1.223c66f2dc477p-7,
  TANH_F64_C13 =  0x1.c3810f48391c7p-9,
}

-- b and tanh b at index exponent * 4 + the two highest bits of the mantissa, mod 32.
tables {
  TANH_AT = { "f32",
    0x1.200394p1, 0x1.60023p1, 0x1.9ffd2cp1, 0x1.e002cep1, 0x1.2004d2p2, 0x1.6005f2p2, 0x1.9fef28p2, 0x1.e0d5c4p2,
    0x1.154246p3, 0x0p0, 0x0p0, 0x0p0, 0x1.1ffc58p-4, 0x1.5ffee6p-4, 0x1.9ffde6p-4, 0x1.e00434p-4,
    0x1.200278p-3, 0x1.5ffecep-3, 0x1.a003bp-3, 0x1.dfff3p-3, 0x1.1ffe3ap-2, 0x1.600068p-2, 0x1.a0044cp-2, 0x1.e00444p-2,
    0x1.1ffcecp-1, 0x1.5ffc7cp-1, 0x1.a00322p-1, 0x1.dffc92p-1, 0x1.20038p0, 0x1.6002bp0, 0x1.9fff1p0, 0x1.e00076p0,
  },
  TANH_OF = { "f32",
    0x1.f4c076p-1, 0x1.fbd52ep-1, 0x1.fe7668p-1, 0x1.ff6f1ep-1, 0x1.ffdfacp-1, 0x1.fffbap-1, 0x1.ffff68p-1, 0x1.ffffecp-1,
    0x1.fffffep-1, 0x0p0, 0x0p0, 0x0p0, 0x1.1f831ap-4, 0x1.5f21bap-4, 0x1.9e9142p-4, 0x1.ddd4b8p-4,
    0x1.1e203cp-3, 0x1.5c91dep-3, 0x1.9a62a6p-3, 0x1.d76598p-3, 0x1.18a1f6p-2, 0x1.52c322p-2, 0x1.8a8b8ap-2, 0x1.bfb1dep-2,
    0x1.050628p-1, 0x1.31559cp-1, 0x1.578ab8p-1, 0x1.77d6a4p-1, 0x1.9e5f2p-1, 0x1.c279dcp-1, 0x1.d9c6b6p-1, 0x1.e878b4p-1,
  },
}

func "tanh" {
  doc  = "Hyperbolic tangent.",
  args = "x",
  f32  = [[
    i32 bits = minimum(raw_i32(abs(x)), TANH_MAX_BITS_F32);   // a NaN becomes 9.1; the last line brings it back
    u32 i = (u32)maximum(bits, TANH_LOW_BITS_F32) >> 21;
    f32 b = lookup(TANH_AT, i);
    f32 h = lookup(TANH_OF, i);

    f32 u = as_f32(bits) - b;
    f32 z = u * u;
    f32 t = fma(z * u, fma(fma(TANH_F32_C7, z, TANH_F32_C5), z, TANH_F32_C3), u);
    f32 y = fma(fma(-h, h, 1.0) / fma(h, t, 1.0), t, h);
    return canonical(x == x ? as_f32(raw_u32(y) | (raw_u32(x) & 0x80000000)) : NAN);
  ]],
  f64  = [[
    f64 a = abs(x);
    f64 b = a > TANH_MAX_F64 ? TANH_MAX_F64 : a;

    f64 t = fma(b, -2 * LOG2E, TANH_SHIFT_F64);
    f64 k = t - TANH_SHIFT_F64;
    f64 s = as_f64(raw_u64(t) << 52);
    f64 r = fma(k, TANH_LN2_2_HI_F64, b);

    f64 z = r * r;
    f64 p7 = fma(fma(fma(TANH_F64_C13, z, TANH_F64_C11), z, TANH_F64_C9), z, TANH_F64_C7);
    f64 p = fma(fma(p7, z, TANH_F64_C5), z, TANH_F64_C3);
    f64 g = fma(z * r, p, k * TANH_LN2_2_LO_F64);
    f64 u = r + g;

    f64 c = 1 + s;
    f64 d = fma(s, -2, c);
    f64 w = -1 / fma(u, d, c);
    f64 y = as_f64(raw_u64(fma(u, c, d) * w) & 0xfffffffff8000000);

    f64 f = fma(y, d, c);
    f64 e = fma(g, f, fma(r, f, fma(y, c, d)));
    return as_f64(raw_u64(fma(e, w, y)) & (raw_u64(x) | 0x7fffffffffffffff));
  ]],
  ulp        = { f32 = 0.71, f64 = 0.71 },          -- f32: over all arguments 0.695; f64: 0.55 below the last piece
  derivation = "tools/fit/tanh.sollya",
}
