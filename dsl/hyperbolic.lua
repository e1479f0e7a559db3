-- SPDX-License-Identifier: Apache-2.0
--
-- The hyperbolic functions beside tanh, and their inverses; one entry each. Names as in the array API.

unary "sinh" {
  doc    = "The hyperbolic sine.",
  dtypes = floating,
  body   = [[ sinh_near(x) ]],
  narrow = { f16 = [[ sinh_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  grad   = [[
    T c = cosh(abs(x) > 80 ? 0.5 * x : x); // cosh(2 u) = 2 cosh(u)^2 - 1
    return grad * c * (abs(x) > 80 ? 2 * c : 1); ]],
  grad_ulp = { f32 = 2.7, f64 = 3 },
  examples = { { x = -0.0, out = -0.0 }, { x = INFINITY, out = INFINITY } },
}

unary "cosh" {
  doc    = "The hyperbolic cosine.",
  dtypes = floating,
  body   = [[ cosh_near(x) ]],
  narrow = { f16 = [[ cosh_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  grad   = [[
    T s = sinh(abs(x) > 80 ? 0.5 * x : x);
    return grad * s * (abs(x) > 80 ? 2 * abs(s) : 1); ]],
  grad_ulp = { f32 = 2.7, f64 = 3 },
  examples = { { x = 0.0, out = 1.0 } },
}

unary "atanh" {
  doc    = "The inverse hyperbolic tangent; NaN beyond 1 and -1, infinite there.",
  dtypes = floating,
  body   = [[ atanh(x) ]],
  narrow = { f16 = [[ atanh_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1, 1 },
  grad   = [[ grad / fma(-x, x, 1) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = -0.0, out = -0.0 }, { x = 1.0, out = INFINITY } },
}

unary "asinh" {
  doc    = "The inverse hyperbolic sine.",
  dtypes = floating,
  body   = [[ asinh(x) ]],
  narrow = { f16 = [[ asinh(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1e30, 1e30 },
  grad   = [[ grad / hypot(x, 1) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = -0.0, out = -0.0 }, { x = INFINITY, out = INFINITY } },
}

unary "acosh" {
  doc    = "The inverse hyperbolic cosine, not negative; NaN below 1.",
  dtypes = floating,
  body   = [[ acosh(x) ]],
  narrow = { f16 = [[ acosh(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 1, 1e30 },
  grad   = [[ grad / (x > 0x1p60 ? x : sqrt(x < 0 ? x : fma(x, x, -1))) ]],
  grad_ulp = { f32 = 2, f64 = 2 },
  examples = { { x = 1.0, out = 0.0 } },
}
