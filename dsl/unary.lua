-- SPDX-License-Identifier: Apache-2.0
--
-- Unary ops, one entry each. Names as in the array API, else PyTorch.

unary "negative" {
  doc    = "The number with its sign changed; integers wrap.",
  dtypes = numeric,
  body   = [[ -x ]],
  examples = { { x = 1.5, out = -1.5 }, { x = 0.0, out = -0.0 } },
}

unary "abs" {
  doc    = "The absolute value; the most negative integer stays as it is.",
  dtypes = numeric,
  body   = [[ abs(x) ]],
  examples = { { x = -1.5, out = 1.5 } },
}

unary "sqrt" {
  doc    = "The square root, correctly rounded; NaN below zero.",
  dtypes = floating,
  body   = [[ sqrt(x) ]],
  domain = { 0, 1e30 },
  grad   = [[ out > 1 ? 0.5 * (grad / out) : grad / (2 * out) ]],
  grad_ulp = { f32 = 0.8, f64 = 0.8 },
  examples = { { x = 2.25, out = 1.5 } },
}

unary "exp" {
  doc    = "e to the x.",
  dtypes = floating,
  body   = [[ exp(x) ]],
  narrow = { f16 = [[ exp_half(x) ]], bf16 = [[ exp_bf16(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -110, 90 },
  grad   = [[ grad * out ]],
  examples = { { x = 0.0, out = 1.0 } },
}

unary "log" {
  doc    = "The natural logarithm; NaN below zero, -inf at zero.",
  dtypes = floating,
  body   = [[ log(x) ]],
  narrow = { f16 = [[ log_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 0, 1e30 },
  grad   = [[ grad / x ]],
  examples = { { x = 1.0, out = 0.0 } },
}

unary "tanh" {
  doc    = "The hyperbolic tangent.",
  dtypes = floating,
  body   = [[ tanh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -12, 12 },
  grad   = [[
    // not by way of 1 - out^2, of which nothing is left where out rounds to 1; in two parts where e^-2|x| may be too small
    T a = abs(x);
    T e = exp_any(a > 40 ? -a : -2 * a);
    return grad * (4 * (a > 40 ? e : sigmoid_slope(e))) * (a > 40 ? e : 1); ]],
  grad_ulp = { f32 = 2.5, f64 = 3.1 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "erf" {
  doc    = "The error function: 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x.",
  dtypes = floating,
  body   = [[ erf(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -6, 6 },
  grad   = [[
    // e^(-x^2), x^2 = h + l; in two parts where it may be too small for what grad makes of it
    T h = x * x;
    T l = h < 2000 ? fma(x, x, -h) : 0;
    T e = exp(h > 80 ? -0.5 * h : -h);
    T c = 1.1283791670955126;
    T p = c * e;
    return grad * (p + fma(-l, p, fma(c, e, -p))) * (h > 80 ? e : 1); ]],
  grad_ulp = { f32 = 3.6, f64 = 3.5 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "sigmoid" {
  doc    = "The logistic function: 1 / (1 + e^-x).",
  dtypes = floating,
  body   = [[ sigmoid(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -30, 30 },
  grad   = [[
    // not by way of out (1 - out), of which nothing is left where out rounds to 1; in two parts where e^-|x| may be too small
    T a = abs(x);
    T e = exp(a > 80 ? -0.5 * a : -a);
    return grad * (a > 80 ? e : sigmoid_slope(e)) * (a > 80 ? e : 1); ]],
  grad_ulp = { f32 = 2.8, f64 = 3.1 },
  examples = { { x = 0.0, out = 0.5 } },
}

unary "relu" {
  doc    = "The rectified linear unit: x where it is positive, else 0; NaN stays NaN.",
  dtypes = numeric,
  body   = [[ x <= 0 ? 0 : x ]],
  examples = { { x = -2.0, out = 0.0 }, { x = 3.0, out = 3.0 } },
}

unary "gelu" {
  doc    = "The Gaussian error linear unit: x times the normal distribution's CDF of x.",
  dtypes = floating,
  body   = [[ gelu(x) ]],
  narrow = { f16 = [[ gelu_half(x) ]], bf16 = [[ gelu_bf16(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -20, 20 },
  grad   = [[
    // Phi(x) + x phi(x): Phi from gelu, phi by e^(-x^2 / 2), x^2 = h + l
    T h = x * x;
    T l = h < 4000 ? fma(x, x, -h) : 0;
    T e = exp(-0.5 * h);
    T p = 0.3989422804014327 * fma(-0.5 * l, e, e);
    T c = h == 0 ? 0.5 : gelu(x) / x;
    return grad * (h < 4000 ? fma(x, p, c) : x > 0 ? 1 : x < 0 ? -0.0 : x); ]],
  grad_ulp = { f32 = 3.5, f64 = 3.5 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "leaky_relu" {
  doc    = "x where it is positive, else slope times x.",
  params = { slope = 0.01 },
  dtypes = floating,
  body   = [[ x > 0 ? x : slope * x ]],
  ulp    = { f32 = 0.5, f64 = 0.5 },
  examples = { { x = 4.0, out = 4.0 } },
}

unary "isnan" {
  doc    = "Whether x is NaN.",
  dtypes = floating,
  result = "bool",
  body   = [[ x != x ]],
  examples = { { x = 1.0, out = 0 } },
}

unary "signbit" {
  doc    = "Whether the sign bit is set: of -0 it is, and of an operand's NaN as it lies in memory. A NaN that was computed is positive.",
  dtypes = floating,
  result = "bool",
  body   = [[ signbit(x) ]],
  examples = { { x = -1.0, out = 1 } },
}

unary "isfinite" {
  doc    = "Whether x is neither infinite nor NaN.",
  dtypes = floating,
  result = "bool",
  body   = [[ abs(x) < INFINITY ]],
  examples = { { x = 1.0, out = 1 }, { x = -INFINITY, out = 0 } },
}

unary "isinf" {
  doc    = "Whether x is infinite.",
  dtypes = floating,
  result = "bool",
  body   = [[ abs(x) == INFINITY ]],
  examples = { { x = -INFINITY, out = 1 }, { x = NAN, out = 0 } },
}

unary "positive" {
  doc    = "x as it is.",
  dtypes = numeric,
  body   = [[ +x ]],
  examples = { { x = -1.5, out = -1.5 } },
}

unary "sign" {
  doc    = "1 where x is positive, -1 where it is negative, 0 for the zeros, NaN for NaN.",
  dtypes = numeric,
  body   = {
    floating = [[ sign_of_number(x) ]],
    i8 = [[ minimum(maximum(x, -1), 1) ]], i16 = [[ minimum(maximum(x, -1), 1) ]],
    i32 = [[ minimum(maximum(x, -1), 1) ]], i64 = [[ minimum(maximum(x, -1), 1) ]],
    u64 = [[ (T)(x != 0) ]], -- vectors below AVX-512 have no minimum of it
    integer = [[ minimum(x, 1) ]],
  },
  grad   = [[ 0 ]],
  examples = { { x = -2.5, out = -1.0 }, { x = -0.0, out = 0.0 }, { x = 3, out = 1 } },
}

unary "square" {
  doc    = "x times x; integers wrap.",
  dtypes = numeric,
  body   = [[ x * x ]],
  grad_ulp = { f32 = 1, f64 = 1 },
  examples = { { x = -3.0, out = 9.0 } },
}

unary "reciprocal" {
  doc    = "1 / x; integers give a float.",
  dtypes = floating,
  body   = [[ 1 / x ]],
  grad   = [[
    // the product first that is in the range where the result is
    bool squared = abs(out) > 1 && abs(out) < 0x1p60;
    return -((squared ? out : grad) * out * (squared ? grad : out)); ]],
  grad_ulp = { f32 = 1.6, f64 = 1.6 },
  examples = { { x = 4.0, out = 0.25 }, { x = -0.0, out = -INFINITY } },
}
