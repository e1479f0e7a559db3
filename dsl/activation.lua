-- SPDX-License-Identifier: Apache-2.0
--
-- Activations beside sigmoid, tanh, relu, leaky_relu and gelu, one entry each. Names, parameters and defaults as in PyTorch, but
-- for thresholded_relu, which is ONNX's. Where x has a limit at an infinity, that is the result, not the NaN of 0 times infinity.

unary "silu" {
  doc    = "The sigmoid linear unit, also called swish: x times sigmoid(x); its limit at -inf is -0.",
  dtypes = floating,
  body   = [[ silu(x) ]],
  narrow = { f16 = [[ silu_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -30, 30 },
  grad   = [[ grad * silu_slope(x) ]],
  grad_ulp = { f32 = 3.4, f64 = 3.2 },
  examples = { { x = 0.0, out = 0.0 }, { x = -0.0, out = -0.0 }, { x = INFINITY, out = INFINITY }, { x = -INFINITY, out = -0.0 },
               { x = NAN, out = NAN } },
}

unary "gelu_tanh" {
  doc    = "gelu's approximation x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))); its limit at -inf is -0.",
  dtypes = floating,
  body   = [[ gelu_tanh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -20, 20 },
  grad   = [[ grad * gelu_tanh_slope(x) ]],
  grad_ulp = { f32 = 3.6, f64 = 3.5 },
  examples = { { x = -0.0, out = -0.0 }, { x = INFINITY, out = INFINITY }, { x = -INFINITY, out = -0.0 } },
}

unary "mish" {
  doc    = "x times tanh(softplus(x)); its limit at -inf is -0.",
  dtypes = floating,
  body   = [[ mish(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -30, 30 },
  grad   = [[ grad * mish_slope(x) ]],
  grad_ulp = { f32 = 3.7, f64 = 3.9 },
  examples = { { x = -0.0, out = -0.0 }, { x = INFINITY, out = INFINITY }, { x = -INFINITY, out = -0.0 } },
}

unary "softplus" {
  doc    = "log(1 + e^(beta x)) / beta; x itself where beta x is above the threshold, which may be infinite.",
  params = { beta = 1.0, threshold = 20.0 },
  dtypes = floating,
  body   = [[
    // beta x = z + z_lo; an error of it counts as such in e^-|z|
    T z = beta * x;
    T z_lo = fma(beta, x, -z);
    T e = exp_near(-abs(z));
    T l = log1p_unit(fma(e, z < 0 ? z_lo : -z_lo, e)) * (1 / beta);
    T y = canonical(z > threshold ? x : z > 0 ? x + l : l);
    rare (!(abs(z) < silu_near(z))) { y = z > 0 || z > threshold ? x : times_exp(1 / beta, z, z_lo); }
    return y; ]],
  ulp    = { f32 = 1.7, f64 = 1.7 },
  domain = { -30, 30 },
  grad   = [[
    T z = beta * x;
    return z > threshold ? grad : times_sigmoid(grad, z, fma(beta, x, -z)); ]],
  grad_ulp = { f32 = 1.2, f64 = 1.1 },
  examples = { { x = -INFINITY, out = 0.0 }, { x = INFINITY, out = INFINITY }, { x = 21.0, out = 21.0 } },
}

unary "log_sigmoid" {
  doc    = "The logarithm of sigmoid(x), -log(1 + e^-x); its limit at inf is -0.",
  dtypes = floating,
  body   = [[
    T l = log1p_unit(exp_near(-abs(x)));
    T y = canonical(x < 0 ? x - l : -l);
    rare (!(abs(x) < silu_near(x))) { y = x < 0 ? x : -times_exp(1, -x, 0); }
    return y; ]],
  ulp    = { f32 = 1.7, f64 = 1.7 },
  domain = { -30, 30 },
  grad   = [[ times_sigmoid(grad, -x, 0) ]],
  grad_ulp = { f32 = 1.2, f64 = 1.1 },
  examples = { { x = INFINITY, out = -0.0 }, { x = -INFINITY, out = -INFINITY } },
}

unary "softsign" {
  doc    = "x / (1 + |x|); its limits are 1 and -1.",
  dtypes = floating,
  body   = [[
    T y = x / (1 + abs(x));
    return abs(x) < INFINITY ? y : x > 0 ? 1 : x < 0 ? -1 : x; ]],
  ulp    = { f32 = 1.5, f64 = 1.5 },
  domain = { -100, 100 },
  grad   = [[
    T d = 1 + abs(x);
    return grad / d / d; ]],
  grad_ulp = { f32 = 3.4, f64 = 3.4 },
  examples = { { x = 1.0, out = 0.5 }, { x = -0.0, out = -0.0 }, { x = -INFINITY, out = -1.0 } },
}

unary "elu" {
  doc    = "The exponential linear unit: x where it is positive, else alpha (e^x - 1).",
  params = { alpha = 1.0 },
  dtypes = floating,
  body   = [[ x > 0 ? x : alpha * expm1(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -30, 30 },
  grad   = [[
    // in two parts where e^x may be too small for what grad makes of it
    T e = exp(x < -80 ? 0.5 * x : x);
    return x > 0 ? grad : grad * (alpha * e) * (x < -80 ? e : 1); ]],
  grad_ulp = { f32 = 2.5, f64 = 2.8 },
  examples = { { x = 2.0, out = 2.0 }, { x = -0.0, out = -0.0 }, { x = -INFINITY, out = -1.0 } },
}

unary "celu" {
  doc    = "The continuously differentiable exponential linear unit: x where it is positive, else alpha (e^(x / alpha) - 1).",
  params = { alpha = 1.0 },
  dtypes = floating,
  body   = [[
    T z = x / alpha;
    return x > 0 || abs(z) < 0x1p-54 ? x : alpha * expm1(z); // a subnormal z has lost digits ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -30, 30 },
  grad   = [[
    // x / alpha = z + z_lo; in two parts as that of elu
    T z = x / alpha;
    T z_lo = fma(-z, alpha, x) / alpha;
    T e = exp(z < -80 ? 0.5 * z : z);
    return x > 0 ? grad : grad * (e > 0 ? fma(e, z_lo, e) : e) * (z < -80 ? e : 1); ]],
  grad_ulp = { f32 = 2.5, f64 = 2.9 },
  examples = { { x = 2.0, out = 2.0 }, { x = -0.0, out = -0.0 }, { x = -INFINITY, out = -1.0 } },
}

unary "selu" {
  doc    = "The scaled exponential linear unit: 1.0507... times elu with alpha = 1.6732..., the constants of its authors.",
  dtypes = floating,
  -- Each constant in two parts; those of x are positive, so that infinity stays.
  body   = {
    f32 = [[
      f32 e = expm1(x);
      f32 below = fma(e, 0x1.c212ccp0, e * 0x1.903c0cp-26);
      return x > 0 ? fma(x, 0x1.0cfabcp0, x * 0x1.6a9114p-24) : below; ]],
    f64 = [[
      f64 e = expm1(x);
      f64 below = fma(e, 0x1.c212cc640f031p0, e * 0x1.05161b045a1fep-56);
      return x > 0 ? fma(x, 0x1.0cfabd6a91132p0, x * 0x1.6fc7d272f2695p-55) : below; ]],
  },
  ulp    = { f32 = 1.8, f64 = 1.8 },
  domain = { -30, 30 },
  grad   = [[
    T e = exp(x < -80 ? 0.5 * x : x);
    return x > 0 ? grad * 1.0507009873554805 : grad * (1.7580993408473769 * e) * (x < -80 ? e : 1); ]],
  grad_ulp = { f32 = 2.9, f64 = 3.4 },
  examples = { { x = -0.0, out = -0.0 }, { x = INFINITY, out = INFINITY } },
}

unary "hard_sigmoid" {
  doc    = "(x + 3) / 6, at least 0 and at most 1.",
  dtypes = floating,
  body   = [[
    T sixth = 1.0 / 6;
    T s = x + 3 <= 0 ? 0 : x + 3;
    T m = s >= 6 ? 6 : s;
    return fma(m, sixth, m * (fma(-6, sixth, 1) / 6)); ]],
  ulp    = { f32 = 1.1, f64 = 1.1 },
  domain = { -6, 6 },
  grad   = [[ x <= -3 || x >= 3 ? 0 : grad / 6 ]],
  grad_ulp = { f32 = 0.5, f64 = 0.5 },
  examples = { { x = 0.0, out = 0.5 }, { x = -3.0, out = 0.0 }, { x = INFINITY, out = 1.0 } },
}

unary "hard_swish" {
  doc    = "x times hard_sigmoid(x): x from 3 on, -0 up to -3.",
  dtypes = floating,
  body   = [[ hard_swish_bounded(x) ]],
  ulp    = { f32 = 1.5, f64 = 1.5 },
  domain = { -6, 6 },
  grad   = [[ x <= -3 ? 0 : x >= 3 ? grad : grad * (fma(2, x, 3) / 6) ]],
  grad_ulp = { f32 = 2, f64 = 2 },
  examples = { { x = 3.0, out = 3.0 }, { x = -0.0, out = -0.0 }, { x = -INFINITY, out = -0.0 }, { x = INFINITY, out = INFINITY } },
}

unary "thresholded_relu" {
  doc    = "x where it is above alpha, else 0; NaN stays NaN.",
  params = { alpha = 1.0 },
  dtypes = floating,
  body   = [[ x <= alpha ? 0 : x ]],
  examples = { { x = 1.0, out = 0.0 }, { x = 1.5, out = 1.5 } },
}

op "prelu" {
  doc    = "The parametric rectified linear unit: x where it is positive, else weight times x.",
  inputs = "x, weight",
  dtypes = floating,
  body   = [[ x > 0 ? x : weight * x ]],
  ulp    = { f32 = 0.5, f64 = 0.5 },
  grad_ulp = { f32 = 0.5, f64 = 0.5 },
  examples = { { x = 4.0, weight = 0.25, out = 4.0 }, { x = -4.0, weight = 0.25, out = -1.0 } },
}

op "swiglu" {
  doc    = "silu(gate) times x: gate is what silu is taken of. An infinite x gives gate times x.",
  inputs = "gate, x",
  dtypes = floating,
  body   = [[ (abs(x) == INFINITY ? gate : silu(gate)) * x ]],
  ulp    = { f32 = 1.95, f64 = 1.95 },
  grad   = [[
    grad_gate = grad * (x * silu_slope(gate));
    grad_x = grad * silu(gate); ]],
  grad_ulp = { f32 = 3.7, f64 = 3.7 },
  examples = { { gate = 0.0, x = 5.0, out = 0.0 }, { gate = INFINITY, x = -2.0, out = -INFINITY } },
}

op "geglu" {
  doc    = "gelu(gate) times x: gate is what gelu is taken of. An infinite x gives gate times x.",
  inputs = "gate, x",
  dtypes = floating,
  body   = [[ (abs(x) == INFINITY ? gate : gelu(gate)) * x ]],
  ulp    = { f32 = 1.95, f64 = 1.95 },
  grad   = [[
    grad_gate = grad * (x * gelu_backward(1, gate));
    grad_x = grad * gelu(gate); ]],
  grad_ulp = { f32 = 3.6, f64 = 3.7 },
  examples = { { gate = 0.0, x = 5.0, out = 0.0 }, { gate = INFINITY, x = -2.0, out = -INFINITY } },
}
