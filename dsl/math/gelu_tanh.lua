-- SPDX-License-Identifier: Apache-2.0
--
-- The approximation of gelu by tanh:  x/2 (1 + tanh u) = x sigmoid(2 u),   2 u = x (A + B x^2),
--
--     A = 2 sqrt(2/pi),  B = 0.044715 A
--
-- An error of 2 u counts as such in e^(2u), and |2 u| reaches 100 (f64: 750): so 2 u is in two parts, z + z_lo, and sigmoid takes
-- both. See silu.lua for what it costs. Beyond 22 the result is x or -0.

constants {
  -- A and B, HI + LO. HI of A has so few bits that HI - w is exact below.
  GELU_TANH_A_F32    =  0x1.98845p0,
  GELU_TANH_A_LO_F32 =  0x1.9ea1b2p-23,
  GELU_TANH_B_F32    =  0x1.2444f2p-4,
  GELU_TANH_B_LO_F32 =  0x1.49b16ap-29,
  GELU_TANH_A_F64    =  0x1.9884533d4366p0,
  GELU_TANH_A_LO_F64 = -0x1.ee5e069875fe9p-49,
  GELU_TANH_B_F64    =  0x1.2444f2a4d8b4bp-4,
  GELU_TANH_B_LO_F64 = -0x1.6c843a29d1c7p-61,
}

func "gelu_tanh_a" { doc = "A, in x's type.", args = "x", f32 = [[ GELU_TANH_A_F32 ]], f64 = [[ GELU_TANH_A_F64 ]] }
func "gelu_tanh_b" { doc = "B, in x's type.", args = "x", f32 = [[ GELU_TANH_B_F32 ]], f64 = [[ GELU_TANH_B_F64 ]] }
func "gelu_tanh_a_lo" { doc = "What A lacks.", args = "x", f32 = [[ GELU_TANH_A_LO_F32 ]], f64 = [[ GELU_TANH_A_LO_F64 ]] }
func "gelu_tanh_b_lo" { doc = "What B lacks.", args = "x", f32 = [[ GELU_TANH_B_LO_F32 ]], f64 = [[ GELU_TANH_B_LO_F64 ]] }

func "gelu_tanh_bounded" {
  doc  = "x, or the bound beyond which the result is x or -0.",
  args = "x",
  body = [[
    T b = x < -22 ? -22 : x;
    return b > 22 ? 22 : b; ]],
}

func "gelu_tanh_factor" {
  doc  = "w = A + B x^2, rounded.",
  args = "x",
  body = [[ fma(gelu_tanh_b(x), x * x, gelu_tanh_a(x)) ]],
}

func "gelu_tanh_factor_lo" {
  doc  = "What gelu_tanh_factor leaves out, where that is at most 16 (f32), 64 (f64).",
  args = "x",
  body = [[
    T u = x * x;
    T u_lo = fma(x, x, -u);
    T w_lo = fma(gelu_tanh_b(x), u, gelu_tanh_a(x) - gelu_tanh_factor(x));
    return w_lo + fma(gelu_tanh_b(x), u_lo, fma(gelu_tanh_b_lo(x), u, gelu_tanh_a_lo(x))); ]],
}

func "gelu_tanh_exponent" {
  doc  = "2 u, rounded.",
  args = "x",
  body = [[ x * gelu_tanh_factor(x) ]],
}

func "gelu_tanh_exponent_lo" {
  doc  = "What gelu_tanh_exponent leaves out.",
  args = "x",
  body = [[
    T w = gelu_tanh_factor(x);
    return fma(x, w, -(x * w)) + x * gelu_tanh_factor_lo(x); ]],
}

func "gelu_tanh" {
  doc  = "x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); its limit at -infinity is -0.",
  args = "x",
  body = [[
    T z = gelu_tanh_exponent(x);
    T y = canonical(times_sigmoid_near(x, z, gelu_tanh_exponent_lo(x)));
    rare (!(abs(z) < silu_near(z))) {
      T b = gelu_tanh_bounded(x);
      y = times_sigmoid_far(x < -22 ? -22 : x, gelu_tanh_exponent(b), gelu_tanh_exponent_lo(b));
    }
    return y; ]],
  ulp  = { f32 = 0.8, f64 = 0.8 },
  derivation = "tools/fit/gelu_tanh.py",
}

func "gelu_tanh_slope" {
  doc  = "The derivative of gelu_tanh: s + x s (1 - s) (A + 3 B x^2), s = sigmoid(2 u); its limits are 1 and -0.",
  args = "x",
  body = [[
    T b = gelu_tanh_bounded(x);
    T z = gelu_tanh_exponent(b);
    T rounded = exp(-abs(z));
    T e = fma(rounded, z < 0 ? gelu_tanh_exponent_lo(b) : -gelu_tanh_exponent_lo(b), rounded);
    T d = 1 + e;
    T i = quotient_by_sum(1, d, (1 - d) + e);
    T w = fma(3 * gelu_tanh_b(x) * b, b, gelu_tanh_a(x) + gelu_tanh_a_lo(x));
    T f = i * fma(b * w * e, i, x < 0 ? e : 1);
    return abs(x) < 22 ? f : x > 0 ? 1 : x < 0 ? -0.0 : x; ]],
}
