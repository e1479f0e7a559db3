-- SPDX-License-Identifier: Apache-2.0
--
-- y sigmoid(z), with one rounding that shows: silu is x sigmoid(x), gelu_tanh x sigmoid(z), and derivatives are grad sigmoid(z).
--
--     sigmoid(z) = w + w e      (see sigmoid.lua)
--
-- The correction is not added to w, but enters the last operation: y w + y (w e). What is left is the error of e, as sigmoid's;
-- near the subnormals, where y (w e) loses bits, up to half a ULP more.
--
-- Where |z| is large, 2^n is no normal number. There sigmoid(z) is 1 or e^z, and y e^z may be a normal number though e^z is not.
-- So 2^n is multiplied by in four steps. z may have a low part: gelu_tanh's is not known well enough by its rounded value.

constants {
  -- Up to here e^-|z| is a normal number, and its rounded parts are.
  SILU_NEAR_F32 = 86.0,
  SILU_NEAR_F64 = 707.0,

  -- y e^z rounds to 0 below, whatever y is.
  SILU_LEAST_F32 = -230.0,
  SILU_LEAST_F64 = -1500.0,
}

func "silu_near" {
  doc  = "The size below which e^-|z| is a normal number, in z's type.",
  args = "z",
  f32  = [[ SILU_NEAR_F32 ]],
  f64  = [[ SILU_NEAR_F64 ]],
}

func "silu_least" {
  doc  = "The z below which y e^z rounds to 0, in z's type.",
  args = "z",
  f32  = [[ SILU_LEAST_F32 ]],
  f64  = [[ SILU_LEAST_F64 ]],
}

func "silu_bounded" {
  doc  = "x, or silu_least, where that is more: of it silu is -0, as of -infinity.",
  args = "x",
  body = [[ x < silu_least(x) ? silu_least(x) : x ]],
}

func "silu_power" {
  doc  = "2^k for a whole number k, a normal number.",
  args = "k",
  f32  = [[ as_f32(raw_u32(k + (0x1.8p23 + 127)) << 23) ]],
  f64  = [[ as_f64(raw_u64(k + (0x1.8p52 + 1023)) << 52) ]],
}

func "times_exp" {
  doc  = "y e^(z + z_lo) for z < -1, also where e^z is no normal number but the product is.",
  args = "y, z, z_lo",
  body = [[
    T n = exp_steps_count(exp_steps(z));
    T h = exp_sum_hi(z, n);
    T l = exp_sum_lo(z, z_lo, n);
    T k = rint(0.25 * n);
    T s = silu_power(k);
    T v = y * silu_power(fma(k, -3, n));
    T w = abs(v) < INFINITY && v != 0 ? fma(v, h, v * l) : v * h;
    return z < silu_least(z) ? y * 0 : w * s * s * s; ]],
}

func "times_sigmoid_near" {
  doc  = "y sigmoid(z + z_lo) for |z| < silu_near and finite y.",
  args = "y, z, z_lo",
  body = [[
    T w = sigmoid_rough(z, z_lo);
    return fma(y, w, y * (w * sigmoid_missing(z, z_lo))); ]],
}

func "times_sigmoid_far" {
  doc  = "y sigmoid(z + z_lo) for |z| >= silu_near, or NaN.",
  args = "y, z, z_lo",
  body = [[ z > 0 ? y : times_exp(y, z, z_lo) ]],
}

func "times_sigmoid" {
  doc  = "y sigmoid(z + z_lo) for all y and z.",
  args = "y, z, z_lo",
  body = [[
    T near = times_sigmoid_near(y, z, z_lo);
    T p = abs(y) < INFINITY && y != 0 ? near : y;
    rare (!(abs(z) < silu_near(z))) { p = times_sigmoid_far(y, z, z_lo); }
    return p; ]],
}

func "silu" {
  doc  = "x sigmoid(x); its limit at -infinity is -0.",
  args = "x",
  body = [[
    T y = canonical(times_sigmoid_near(x, x, 0));
    rare (!(abs(x) < silu_near(x))) { y = times_sigmoid_far(silu_bounded(x), x, 0); }
    return y; ]],
  ulp  = { f32 = 0.89, f64 = 0.89 },
}

func "silu_slope" {
  doc  = "The derivative of silu, sigmoid(x) (1 + x sigmoid(-x)); its limits are 1 and -0.",
  args = "x",
  body = [[
    T a = abs(x);
    T e = exp(-a);
    T d = 1 + e;
    T i = quotient_by_sum(1, d, (1 - d) + e);
    T f = i * fma(x * e, i, x < 0 ? e : 1);
    return a < 800 ? f : x > 0 ? 1 : x < 0 ? -0.0 : x; ]],
}
