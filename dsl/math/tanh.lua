-- tanh, by exponent splitting, the addition theorem, and one division that is corrected.
--
-- The argument is cut at multiples of ln2/2 (k <= 0 is an integer, s = 2^k):
--
--     |x| = -k ln2/2 + r,   |r| <= ln2/4 = 0.1733,      tanh(-k ln2/2) = (1 - s) / (1 + s),    u = tanh(r)
--
--                (1 - s) + u (1 + s)      d + u c
--     tanh|x| = --------------------- =  ---------     c = 1 + s,  d = 1 - s
--                (1 + s) + u (1 - s)      c + u d
--
-- This beats (e^2x - 1) / (e^2x + 1): tanh(r) is odd and |r| small, so a polynomial of three (f64: six) terms does,
-- its leading term is r itself, without error, and for small x (k = 0, s = 1) the quotient is 2u / 2 = u.
--
-- Rounding numerator, denominator and quotient one by one would cost 2 ULP, worst at |x| = 0.174, where d and u c have
-- opposite signs. So the quotient is only an estimate y, cut to its upper half of mantissa bits, and is corrected:
--
--     tanh|x| = y + e / (c + u d),     e = (d + u c) - y (c + u d) = (d - y c) + u (c - y d),    u = r + g
--
-- c and d have few bits and y half a mantissa, so both brackets are exact, each a single fma (for k < -11, f64: -26, they
-- are rounded, but small by then). e is at most 2^-11 (f64: 2^-25) of the result, so its rounding and that of
-- 1 / (c + u d) do not show; u enters unrounded, as r + g. What is left is the last addition, 0.5 ULP, and the error of
-- g = tanh(r) - r, which is at most 1% of u.
--
-- For s = 2^-24 and less (f64: 2^-53) c rounds to 1; d = c - 2s rather than 1 - s keeps the distance to 1, 2s. In the
-- last piece, |x| > 8.83 (f64: 18.88), d becomes 1 too and the result is 1, at most 0.71 ULP above the true value.
--
-- Other libraries take tanh f32 from tables. With 30 values of b and tanh b, T + (1 - T^2) u / (1 + T u) needs 22 operations in
-- place of 30: 0.77 of the time where AVX-512 looks up in registers, which C cannot say, but 1.6 times on AVX2, and with AVX-512
-- 1.14 times by Clang's gathers and 3.6 times by GCC's loads. The bits have to be the same everywhere, so there are none here.

constants {
  -- 3/2 * 2^23 (f64: 2^52): adding it rounds to integer, see exp.lua. With the exponent bias added, the low bits of
  -- the sum are the exponent field of 2^k.
  TANH_SHIFT_F32 = 0x1.8p23 + 127,
  TANH_SHIFT_F64 = 0x1.8p52 + 1023,

  -- tanh rounds to 1 from 9.011 (f64: 19.062) on; larger arguments would only overflow the exponent field of s.
  TANH_MAX_BITS_F32 = 0x4111999a, -- 9.1
  TANH_MAX_F64 = 19.2,

  -- ln2/2. r = |x| + k HI is exact: for k != 0, |x| and k HI are multiples of 2^-26 (f64: 2^-55) and r fits the mantissa.
  -- The low part adds |k| s 2^-30 to the result, 0.06 ULP, in f32; in f64 it would be 0.4 ULP and is kept.
  TANH_LN2_2_F32    = 0x1.62e43p-2,
  TANH_LN2_2_HI_F64 = 0x1.62e42fefa39efp-2,
  TANH_LN2_2_LO_F64 = 0x1.abc9e3b39803fp-57,

  -- tanh(r) = r + C3 r^3 + C5 r^5 + ..., |r| <= 0.1734: relative error 2^-32.5, 0.002 ULP.
  TANH_F32_C3 = -0x1.55554ep-2,
  TANH_F32_C5 =  0x1.1105a2p-3,
  TANH_F32_C7 = -0x1.afe178p-5,

  -- The same for f64: relative error 2^-57.7, 0.04 ULP.
  TANH_F64_C3  = -0x1.55555555554bcp-2,
  TANH_F64_C5  =  0x1.11111110e08c8p-3,
  TANH_F64_C7  = -0x1.ba1ba1168ae77p-5,
  TANH_F64_C9  =  0x1.664ec9ac573dfp-6,
  TANH_F64_C11 = -0x1.223c66f2dc477p-7,
  TANH_F64_C13 =  0x1.c3810f48391c7p-9,
}

func "tanh" {
  doc  = "Hyperbolic tangent.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 b = as_f32(minimum(raw_i32(a), TANH_MAX_BITS_F32));   // a NaN becomes 9.1; the last line brings it back

    f32 t = fma(b, -2 * LOG2E, TANH_SHIFT_F32);
    f32 k = t - TANH_SHIFT_F32;
    f32 s = as_f32(raw_u32(t) << 23);               // 2^k
    f32 r = fma(k, TANH_LN2_2_F32, b);

    f32 z = r * r;                                  // g = tanh(r) - r
    f32 p = fma(fma(TANH_F32_C7, z, TANH_F32_C5), z, TANH_F32_C3);
    f32 g = z * r * p;
    f32 u = r + g;

    f32 c = 1 + s;
    f32 d = fma(s, -2, c);
    f32 w = -1 / fma(u, d, c);                      // y and the result come out negative: that saves negations, and ...
    f32 y = as_f32(raw_u32(fma(u, c, d) * w) & 0xfffff000);

    f32 f = fma(y, d, c);
    f32 e = fma(g, f, fma(r, f, fma(y, c, d)));
    f32 v = as_f32(raw_u32(fma(e, w, y)) & (raw_u32(x) | 0x7fffffff));    // ... keeps the sign bit where x has it
    return canonical(x == x ? v : NAN);
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
  ulp        = { f32 = 0.71, f64 = 0.71 },          -- f32: all 2^32 arguments; 0.58 (f64: 0.55) below the last piece
  derivation = "tools/fit/tanh.sollya",
}
