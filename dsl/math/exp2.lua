-- SPDX-License-Identifier: Apache-2.0
--
-- 2 to the x.
--
--     x = n + r,  n = round(x),  |r| <= 1/2,     2^x = 2^n (1 + r P(r))
--
-- n is found by adding a large constant, see exp.lua; x - n is exact, so there is nothing to carry in two parts. The last
-- operation but the scaling is an fma: what is rounded before it is P, worth 0.25 ULP of the result at worst (r = -1/2).
-- 2^n is two factors, as in exp.lua: the product of the second one makes subnormals, zero and infinity, with one rounding.

constants {
  -- exp.lua's shifters: 3/2 * 2^23 (f64: 2^52) and two exponent biases.
  EXP2_SHIFT_F32 = 0x1.8p23 + 254,
  EXP2_SHIFT_F64 = 0x1.8p52 + 2046,

  -- 2^r = 1 + r (C1 + C2 r + ...), |r| <= 1/2: relative error of 2^r 2^-28.0, 0.06 ULP.
  EXP2_F32_C1 = 0x1.62e43p-1,
  EXP2_F32_C2 = 0x1.ebfbd8p-3,
  EXP2_F32_C3 = 0x1.c6af76p-5,
  EXP2_F32_C4 = 0x1.3b30ap-7,
  EXP2_F32_C5 = 0x1.5f0b82p-10,
  EXP2_F32_C6 = 0x1.3fa206p-13,

  -- The same for f64: relative error 2^-57.2, 0.05 ULP.
  EXP2_F64_C1  = 0x1.62e42fefa39efp-1,
  EXP2_F64_C2  = 0x1.ebfbdff82c5a6p-3,
  EXP2_F64_C3  = 0x1.c6b08d704a12cp-5,
  EXP2_F64_C4  = 0x1.3b2ab6fb9fda6p-7,
  EXP2_F64_C5  = 0x1.5d87fe789e96fp-10,
  EXP2_F64_C6  = 0x1.4309130f6cbdbp-13,
  EXP2_F64_C7  = 0x1.ffcbfc6685f06p-17,
  EXP2_F64_C8  = 0x1.62bfc6596be12p-20,
  EXP2_F64_C9  = 0x1.b52522bc15f8fp-24,
  EXP2_F64_C10 = 0x1.e61d43321746dp-28,
  EXP2_F64_C11 = 0x1.e973179a994acp-32,
}

func "exp2_rest" {
  doc  = "P(r), where 2^r = 1 + r P(r), |r| <= 1/2.",
  args = "r",
  f32  = [[
    f32 p5 = fma(r, EXP2_F32_C6, EXP2_F32_C5);
    f32 p4 = fma(r, p5, EXP2_F32_C4);
    f32 p3 = fma(r, p4, EXP2_F32_C3);
    f32 p2 = fma(r, p3, EXP2_F32_C2);
    return fma(r, p2, EXP2_F32_C1); ]],
  f64  = [[
    f64 r2 = r * r;
    f64 a = fma(r, EXP2_F64_C11, EXP2_F64_C10);
    f64 b = fma(r, EXP2_F64_C9, EXP2_F64_C8);
    f64 c = fma(r, EXP2_F64_C7, EXP2_F64_C6);
    f64 d = fma(r, EXP2_F64_C5, EXP2_F64_C4);
    f64 e = fma(r, EXP2_F64_C3, EXP2_F64_C2);
    f64 g = fma(r2, a, b);
    f64 h = fma(r2, c, d);
    return fma(r, fma(r2, fma(r2 * r2, g, h), e), EXP2_F64_C1); ]],
  derivation = "tools/fit/exp2.sollya",
}

func "exp2" {
  doc  = "2 to the x.",
  args = "x",
  -- From the first bound down all results round to 0 (2^-150 is a tie, and 0 is even), from the second up all are inf;
  -- between them no factor overflows.
  f32  = [[
    f32 a = x < -150.0 ? -150.0 : x;    // a NaN stays
    f32 t = a + EXP2_SHIFT_F32;
    f32 r = a - (t - EXP2_SHIFT_F32);
    f32 s = exp_scale_a(t);
    f32 y = fma(r * s, exp2_rest(r), s) * exp_scale_b(t);
    return x >= 128.0 ? INFINITY : y; ]],
  f64  = [[
    f64 a = x < -1075.0 ? -1075.0 : x;
    f64 t = a + EXP2_SHIFT_F64;
    f64 r = a - (t - EXP2_SHIFT_F64);
    f64 s = exp_scale_a(t);
    f64 y = fma(r * s, exp2_rest(r), s) * exp_scale_b(t);
    return x >= 1024.0 ? INFINITY : y; ]],
  ulp = { f32 = 0.88, f64 = 0.83 },    -- f32: over all arguments, 0.879, in subnormal results; f64: 0.807 measured
  derivation = "tools/fit/exp2.sollya",
}

func "exp2_near" {
  doc  = "The same bits, quicker: where the result is well within the normal range n is added to its exponent field.",
  args = "x",
  f32  = [[
    f32 t = x + 0x1.8p23;
    f32 r = x - (t - 0x1.8p23);
    f32 y = canonical(exp_raised(fma(r, exp2_rest(r), 1), t));
    rare (!(abs(x) < 125.0)) { y = exp2(x); }
    return y; ]],
  f64  = [[
    f64 t = x + 0x1.8p52;
    f64 r = x - (t - 0x1.8p52);
    f64 y = canonical(exp_raised(fma(r, exp2_rest(r), 1), t));
    rare (!(abs(x) < 1021.0)) { y = exp2(x); }
    return y; ]],
}
