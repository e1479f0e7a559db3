-- SPDX-License-Identifier: Apache-2.0
--
-- Functions of the numbers of bf16, computed in f32 and rounded to bf16: `narrow` bodies, as those of f16 in half.lua. Rounded, the
-- results are those of the bodies for f32, for all 65,536 numbers.
--
-- exp, with x cut to 104 in size, beyond which the result is 0 or infinity:
--
--     e^x = (2^k 2^r)^2,   k + r = x log2(e) / 2,   2^r = 1 + C1 r + ... + C4 r^4,   |r| <= 1/2
--
-- 2^k is normal wherever its square is not; the square is rounded once.
--
-- gelu, with z = |x| <= 13.75, beyond which the result is x or -0:
--
--     gelu(x) = base - z Q,   base = x, but -0 for x < 0,   Q = Phi(-z) = 2^k 2^r P(z) / D(z),   k + r = -z^2 / (2 ln2)
--
-- z has 8 bits, so z^2 is exact. P is 1/2 + P1 z + P2 z^2 + P3 z^3, D is 1 + D1 z + ... + D4 z^4: at z = 0 the quotient is 1/2, so that
-- half a subnormal number is exact, a tie. 2^k comes times 2^16, and so does D: 2^k is normal where Q is not.

constants {
  BF16_EXP_END_BITS = 0x42d00000, -- of 104
  BF16_EXP_LOG2E_2 = 0x1.715476p-1,
  -- 3/2 * 2^23 + 16: what is added to it is rounded to an integer k; k + 16 is in the low bits.
  BF16_GELU_SHIFT = 0x1.8p23 + 16,
  BF16_GELU_END_BITS = 0x415c0000, -- of 13.75
  BF16_GELU_LOG2E_2 = -0x1.715476p-1,

  BF16_EXP_C1 = 0x1.62e12ap-1,
  BF16_EXP_C2 = 0x1.ec038p-3,
  BF16_EXP_C3 = 0x1.c9fdecp-5,
  BF16_EXP_C4 = 0x1.3a0228p-7,

  BF16_GELU_E1 = 0x1.62e12ap-1,
  BF16_GELU_E2 = 0x1.ec038p-3,
  BF16_GELU_E3 = 0x1.c9f51ep-5,
  BF16_GELU_E4 = 0x1.3980b2p-7,

  BF16_GELU_P1 = 0x1.712242p-2,
  BF16_GELU_P2 = 0x1.e5f088p-4,
  BF16_GELU_P3 = 0x1.139076p-6,
  BF16_GELU_D1 = 0x1.84d28ap16,
  BF16_GELU_D2 = 0x1.e60564p15,
  BF16_GELU_D3 = 0x1.304cccp14,
  BF16_GELU_D4 = 0x1.59697ep11,
}

func "exp_bf16" {
  doc  = "e to a number of bf16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 z = cut_to(x, BF16_EXP_END_BITS);
    f32 t = fma(z, BF16_EXP_LOG2E_2, 0x1.8p23);
    f32 r = fma(z, BF16_EXP_LOG2E_2, -exp_steps_count(t));
    f32 y = fma(fma(fma(fma(BF16_EXP_C4, r, BF16_EXP_C3), r, BF16_EXP_C2), r, BF16_EXP_C1), r, 1.0);
    f32 w = exp_raised(y, t);
    return canonical(x != x ? NAN : w * w); ]],
  derivation = "tools/fit/bf16.py",
}

func "gelu_bf16" {
  doc  = "gelu of a number of bf16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 z = size_to(x, BF16_GELU_END_BITS);
    f32 s = z * z;
    f32 n = fma(s, BF16_GELU_LOG2E_2, BF16_GELU_SHIFT);
    f32 r = fma(s, BF16_GELU_LOG2E_2, -(n - BF16_GELU_SHIFT));
    f32 e = fma(fma(fma(fma(BF16_GELU_E4, r, BF16_GELU_E3), r, BF16_GELU_E2), r, BF16_GELU_E1), r, 1.0);
    f32 power = exp_raised(e, n);
    f32 p = fma(fma(fma(BF16_GELU_P3, z, BF16_GELU_P2), z, BF16_GELU_P1), z, 0.5);
    f32 d3 = fma(fma(BF16_GELU_D4, z, BF16_GELU_D3), z, BF16_GELU_D2);
    f32 d = fma(fma(d3, z, BF16_GELU_D1), z, 0x1p16);
    f32 base = x < 0 ? -0.0 : x;
    return fma(-z, power * p / d, base); ]],
  derivation = "tools/fit/bf16.py",
}
