-- SPDX-License-Identifier: Apache-2.0
--
-- e^x - 1, accurate for small x, where e^x rounds to 1.
--
--     x = k ln2 + h + l,   |h| <= ln2 / 2,     e^x - 1 = (s - 1) + s h + s (e^(h + l) - 1 - h),     s = 2^k
--
-- h = x - k LN2_HI is exact, l = -k LN2_LO is small. The last bracket, g, is below 0.07: all that is rounded on the way
-- is in it. The worst case is x just above ln2/2, where k = 1 and 1 + 2 h cancels to a third of 1. So the sum is made as
--
--     v = (s - 1) + s h rounded,    e = its rounding error (an exact subtraction and an fma),     result = v + (e + s g)
--
-- To e belongs also what s - 1 loses: at k = 25 (f64: 54) up to half an ULP of the result.
--
-- k reaches 128 (f64: 1024), and 2^k would overflow before the result does: the s of the body is 2^(k-1) and the last
-- operation doubles. Halving loses the last bit of a subnormal x (and v the sign of -0): tiny x is returned as it is.
--
-- The two types differ in l. In f32, at k = 1, it is an eighth of half the last bit of h, so r = h + l may be rounded where
-- it is squared. In f64 it is all of it, so the polynomial sees h alone, and l enters as n = l e^h, kept apart from g.
--
-- Budget at k = 1, h = -0.346 (the result is 0.41), in ULP of the result: last rounding 0.5; square, polynomial and
-- product in g 0.12 each; r (f32) 0.02. f64 has one rounding more, and keeps the leading term of g, h^2 / 2, out of the
-- polynomial's. Together 0.90 and 0.95. For other k below 0.85, for x > 1 below 0.7.

constants {
  -- 3/2 * 2^23 (f64: 2^52): adding it rounds to integer, see exp.lua. With the exponent bias less one added, the low
  -- bits of the sum are the exponent field of 2^(k-1).
  EXPM1_SHIFT_F32 = 0x1.8p23 + 126,
  EXPM1_SHIFT_F64 = 0x1.8p52 + 1022,

  -- The result rounds to -1 below -17.33 (f64: -37.43) and is infinite above 88.73 (f64: 709.79).
  EXPM1_MIN_F32 = -20.0,
  EXPM1_MIN_F64 = -40.0,
  EXPM1_MAX_F32 =  89.0,
  EXPM1_MAX_F64 =  710.0,

  -- ln2 = HI + LO: HI is ln2 rounded to the type, and x - k HI is exact all the same, see exp.lua.
  EXPM1_LN2_HI_F32 =  0x1.62e43p-1,
  EXPM1_LN2_LO_F32 = -0x1.05c61p-29,
  EXPM1_LN2_HI_F64 =  0x1.62e42fefa39efp-1,
  EXPM1_LN2_LO_F64 =  0x1.abc9e3b39803fp-56,

  -- e^r - 1 = r + r^2 (C2 + C3 r + ...), |r| <= 0.3467: relative error of e^r - 1 2^-31.0, 0.01 ULP.
  EXPM1_F32_C2 = 0x1p-1,
  EXPM1_F32_C3 = 0x1.555554p-3,
  EXPM1_F32_C4 = 0x1.5554fp-5,
  EXPM1_F32_C5 = 0x1.111306p-7,
  EXPM1_F32_C6 = 0x1.6d4372p-10,
  EXPM1_F32_C7 = 0x1.9e0c28p-13,

  -- The same for f64: relative error 2^-61.5, 0.003 ULP. C2 comes out as 1/2; the body relies on it.
  EXPM1_F64_C3  = 0x1.5555555555559p-3,
  EXPM1_F64_C4  = 0x1.555555555554dp-5,
  EXPM1_F64_C5  = 0x1.111111110f655p-7,
  EXPM1_F64_C6  = 0x1.6c16c16c1aafep-10,
  EXPM1_F64_C7  = 0x1.a01a01b0036d9p-13,
  EXPM1_F64_C8  = 0x1.a01a018e0f1d8p-16,
  EXPM1_F64_C9  = 0x1.71ddf80f86bfep-19,
  EXPM1_F64_C10 = 0x1.27e51339881a6p-22,
  EXPM1_F64_C11 = 0x1.af5f2c464c9c2p-26,
  EXPM1_F64_C12 = 0x1.1f1a36b0a9e8ap-29,
}

func "expm1" {
  doc  = "e to the x, minus 1.",
  args = "x",
  f32  = [[
    f32 a = x < EXPM1_MIN_F32 ? EXPM1_MIN_F32 : x;    // a NaN stays
    f32 b = a > EXPM1_MAX_F32 ? EXPM1_MAX_F32 : a;

    f32 t = fma(b, LOG2E, EXPM1_SHIFT_F32);
    f32 k = t - EXPM1_SHIFT_F32;
    f32 s = as_f32(raw_u32(t) << 23);                 // 2^(k-1)
    f32 h = fma(k, -EXPM1_LN2_HI_F32, b);
    f32 l = k * -EXPM1_LN2_LO_F32;

    f32 r = h + l;
    f32 c5 = fma(fma(EXPM1_F32_C7, r, EXPM1_F32_C6), r, EXPM1_F32_C5);
    f32 c2 = fma(fma(fma(c5, r, EXPM1_F32_C4), r, EXPM1_F32_C3), r, EXPM1_F32_C2);
    f32 g = fma(c2, r * r, l);

    f32 m = s - 0.5;
    f32 v = fma(s, h, m);
    f32 e = fma(s, h, m - v) + ((s - m) - 0.5);
    f32 y = 2 * (v + fma(s, g, e));
    return abs(x) < 0x1p-25 ? x : y;
  ]],
  f64  = [[
    f64 a = x < EXPM1_MIN_F64 ? EXPM1_MIN_F64 : x;
    f64 b = a > EXPM1_MAX_F64 ? EXPM1_MAX_F64 : a;

    f64 t = fma(b, LOG2E, EXPM1_SHIFT_F64);
    f64 k = t - EXPM1_SHIFT_F64;
    f64 s = as_f64(raw_u64(t) << 52);                 // 2^(k-1)
    f64 h = fma(k, -EXPM1_LN2_HI_F64, b);
    f64 l = k * -EXPM1_LN2_LO_F64;

    f64 c9 = fma(fma(fma(EXPM1_F64_C12, h, EXPM1_F64_C11), h, EXPM1_F64_C10), h, EXPM1_F64_C9);
    f64 c6 = fma(fma(fma(c9, h, EXPM1_F64_C8), h, EXPM1_F64_C7), h, EXPM1_F64_C6);
    f64 c3 = fma(fma(fma(c6, h, EXPM1_F64_C5), h, EXPM1_F64_C4), h, EXPM1_F64_C3);
    f64 z = h * h;
    f64 g = fma(z, 0.5, z * h * c3);
    f64 n = fma(l, h + g, l);

    f64 m = s - 0.5;
    f64 v = fma(s, h, m);
    f64 e = fma(s, h, m - v) + ((s - m) - 0.5);
    f64 y = 2 * (v + fma(s, g, fma(s, n, e)));
    return abs(x) < 0x1p-54 ? x : y;
  ]],
  ulp        = { f32 = 0.90, f64 = 0.95 },            -- f32: all arguments, 0.890; f64: the budget above, 0.897 measured
  derivation = "tools/fit/expm1.sollya",
}

func "expm1_near" {
  doc  = "The same bits, quicker: where 2^k is a normal number and the result finite, neither x is bounded nor s halved.",
  args = "x",
  f32  = [[
    f32 t = fma(x, LOG2E, EXPM1_SHIFT_F32 + 1);
    f32 k = t - (EXPM1_SHIFT_F32 + 1);
    f32 s = as_f32(raw_u32(t) << 23);
    f32 h = fma(k, -EXPM1_LN2_HI_F32, x);
    f32 l = k * -EXPM1_LN2_LO_F32;

    f32 r = h + l;
    f32 c5 = fma(fma(EXPM1_F32_C7, r, EXPM1_F32_C6), r, EXPM1_F32_C5);
    f32 c2 = fma(fma(fma(c5, r, EXPM1_F32_C4), r, EXPM1_F32_C3), r, EXPM1_F32_C2);
    f32 g = fma(c2, r * r, l);

    f32 m = s - 1;
    f32 v = fma(s, h, m);
    f32 e = fma(s, h, m - v) + ((s - m) - 1);
    f32 y = canonical(copysign(v + fma(s, g, e), x));
    rare (!(abs(x) < 87.0)) { y = expm1(x); }
    return y; ]],
}
