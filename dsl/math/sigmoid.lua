-- SPDX-License-Identifier: Apache-2.0
--
-- The logistic sigmoid 1 / (1 + e^-x), over the whole range: for very negative x it is e^x, down to the subnormals.
--
--     -x = k ln2 - r,  |r| <= ln2 / 2,    e^-x = s (1 - p),  s = 2^k,  p = 1 - e^-r,    sigmoid(x) = 1 / (1 + s (1 - p))
--
-- Rounding 1 - p, the sum and the quotient one by one would cost 2.5 ULP: each loses the low bits of its smaller part.
-- So w = 1 / (1 + s (1 - p)) is only an estimate; with z = s w (exact: s is a power of two) its residual is
--
--     e = 1 - w (1 + s (1 - p)) = (1 - w - z) + z p,         sigmoid(x) = w + w e
--
-- One of w and z is about 1/2 or more. 1/2 - w and 1/2 - z are exact where the two are comparable; where one is
-- small, its difference is rounded at 2^-26 (f64: 2^-55): up to 0.25 ULP of the result. e is a few ULP in size.
--
-- p enters as h + g, unrounded. The reduced argument is h + l: h = x + k LN2_HI is exact, l = k LN2_LO matters since
-- |k| reaches 150 (f64: 1076) and l then 5 ULP of the result. Their rounded sum r is used only where it is squared:
--
--     p = h + l + r^2 (C2 + C3 r + ...),     g = p - h
--
-- Where s would be no normal number, for |x| of 87 (f64: 708) and more, the result is 1 or e^x: these are rare.
--
-- Budget where it is worst, x = -1.1 (the result is 0.25-, r = 0.29), in ULP of the result: last rounding 0.5; 1/2 - w 0.25;
-- square, polynomial and product in g 0.08 together; r 0.04; e^-r 0.04. Sum 0.91.

constants {
  -- 3/2 * 2^23 (f64: 2^52): adding it rounds to integer, see exp.lua. With the exponent bias added, the low bits of the sum are
  -- the exponent field of 2^k.
  SIGMOID_SHIFT_F32 = 0x1.8p23 + 127,
  SIGMOID_SHIFT_F64 = 0x1.8p52 + 1023,

  -- ln2 = HI + LO: HI is ln2 rounded to the type, and x + k HI is exact all the same, see exp.lua.
  SIGMOID_LN2_HI_F32 =  0x1.62e43p-1,
  SIGMOID_LN2_LO_F32 = -0x1.05c61p-29,
  SIGMOID_LN2_HI_F64 =  0x1.62e42fefa39efp-1,
  SIGMOID_LN2_LO_F64 =  0x1.abc9e3b39803fp-56,

  -- 1 - e^-r = r + r^2 (C2 + C3 r + ...), |r| <= 0.3467: relative error of e^-r 2^-28.2, 0.03 to 0.06 ULP.
  SIGMOID_F32_C2 = -0x1.fffffap-2,
  SIGMOID_F32_C3 =  0x1.555492p-3,
  SIGMOID_F32_C4 = -0x1.555a26p-5,
  SIGMOID_F32_C5 =  0x1.123988p-7,
  SIGMOID_F32_C6 = -0x1.694cd2p-10,

  -- The same for f64: relative error 2^-57.9, 0.02 to 0.04 ULP.
  SIGMOID_F64_C2  = -0x1.000000000000ap-1,
  SIGMOID_F64_C3  =  0x1.55555555554fep-3,
  SIGMOID_F64_C4  = -0x1.55555555506acp-5,
  SIGMOID_F64_C5  =  0x1.1111111126b2fp-7,
  SIGMOID_F64_C6  = -0x1.6c16c1847c949p-10,
  SIGMOID_F64_C7  =  0x1.a01a012ff9a84p-13,
  SIGMOID_F64_C8  = -0x1.a019994c1369bp-16,
  SIGMOID_F64_C9  =  0x1.71df18bb20fafp-19,
  SIGMOID_F64_C10 = -0x1.28ae10fc324e4p-22,
  SIGMOID_F64_C11 =  0x1.ad936f59743f3p-26,
}

func "sigmoid_power_lo" {
  doc  = "g, where 1 - e^-(h + l) = h + g, |h + l| <= 0.3467.",
  args = "h, l",
  f32  = [[
    f32 r = h + l;
    f32 r2 = r * r;
    f32 c4 = fma(SIGMOID_F32_C6, r2, fma(SIGMOID_F32_C5, r, SIGMOID_F32_C4));
    return fma(fma(c4, r2, fma(SIGMOID_F32_C3, r, SIGMOID_F32_C2)), r2, l); ]],
  f64  = [[
    f64 r = h + l;
    f64 r2 = r * r;
    f64 r4 = r2 * r2;
    f64 c10 = fma(SIGMOID_F64_C11, r, SIGMOID_F64_C10);
    f64 c6 = fma(fma(SIGMOID_F64_C9, r, SIGMOID_F64_C8), r2, fma(SIGMOID_F64_C7, r, SIGMOID_F64_C6));
    f64 c2 = fma(fma(SIGMOID_F64_C5, r, SIGMOID_F64_C4), r2, fma(SIGMOID_F64_C3, r, SIGMOID_F64_C2));
    return fma(fma(fma(c10, r4, c6), r4, c2), r2, l); ]],
  derivation = "tools/fit/sigmoid.sollya",
}

func "sigmoid_rough" {
  doc  = "w, and by sigmoid_missing what it misses: sigmoid(x + lo) = w + w e. |x| <= 87 (f32), 708 (f64), |lo| <= ULP(x).",
  args = "x, lo",
  f32  = [[
    f32 t = fma(x, -LOG2E, SIGMOID_SHIFT_F32);
    f32 s = as_f32(raw_u32(t) << 23);                     // 2^k
    f32 k = t - SIGMOID_SHIFT_F32;
    f32 h = fma(k, SIGMOID_LN2_HI_F32, x);
    return 1 / fma(s, 1 - (h + sigmoid_power_lo(h, fma(k, SIGMOID_LN2_LO_F32, lo))), 1); ]],
  f64  = [[
    f64 t = fma(x, -LOG2E, SIGMOID_SHIFT_F64);
    f64 s = as_f64(raw_u64(t) << 52);
    f64 k = t - SIGMOID_SHIFT_F64;
    f64 h = fma(k, SIGMOID_LN2_HI_F64, x);
    return 1 / fma(s, 1 - (h + sigmoid_power_lo(h, fma(k, SIGMOID_LN2_LO_F64, lo))), 1); ]],
}

func "sigmoid_missing" {
  doc  = "e, see sigmoid_rough.",
  args = "x, lo",
  f32  = [[
    f32 t = fma(x, -LOG2E, SIGMOID_SHIFT_F32);
    f32 k = t - SIGMOID_SHIFT_F32;
    f32 h = fma(k, SIGMOID_LN2_HI_F32, x);
    f32 w = sigmoid_rough(x, lo);
    f32 z = as_f32(raw_u32(t) << 23) * w;
    return fma(z, sigmoid_power_lo(h, fma(k, SIGMOID_LN2_LO_F32, lo)), fma(z, h, (0.5 - w) + (0.5 - z))); ]],
  f64  = [[
    f64 t = fma(x, -LOG2E, SIGMOID_SHIFT_F64);
    f64 k = t - SIGMOID_SHIFT_F64;
    f64 h = fma(k, SIGMOID_LN2_HI_F64, x);
    f64 w = sigmoid_rough(x, lo);
    f64 z = as_f64(raw_u64(t) << 52) * w;
    return fma(z, sigmoid_power_lo(h, fma(k, SIGMOID_LN2_LO_F64, lo)), fma(z, h, (0.5 - w) + (0.5 - z))); ]],
}

func "sigmoid" {
  doc  = "Logistic sigmoid, 1 / (1 + e^-x).",
  args = "x",
  f32  = [[
    f32 w = sigmoid_rough(x, 0);
    f32 y = canonical(fma(sigmoid_missing(x, 0), w, w));
    rare (!(abs(x) < 87.0)) { y = x > 0 ? 1 : exp_any(x); }
    return y; ]],
  f64  = [[
    f64 w = sigmoid_rough(x, 0);
    f64 y = canonical(fma(sigmoid_missing(x, 0), w, w));
    rare (!(abs(x) < 708.0)) { y = x > 0 ? 1 : exp_any(x); }
    return y; ]],
  ulp        = { f32 = 0.84, f64 = 0.91 },
  derivation = "tools/fit/sigmoid.sollya",
}

func "sigmoid_slope" {
  doc  = "The derivative of sigmoid by e = e^-|x|: e / (1 + e)^2, of which all but e is right to half a ULP and a little.",
  args = "e",
  body = [[
    T d = 1 + e;
    T dl = (1 - d) + e;
    T w = d * d;
    return quotient_by_sum(e, w, fma(d, d, -w) + 2 * d * dl); ]],
}
