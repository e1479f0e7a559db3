-- The hyperbolic functions beside tanh, and their inverses; one entry each. Names as in the array API.

unary "sinh" {
  doc    = "The hyperbolic sine.",
  dtypes = floating,
  body   = [[ sinh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  examples = { { x = -0.0, y = -0.0 }, { x = INFINITY, y = INFINITY } },
}

unary "cosh" {
  doc    = "The hyperbolic cosine.",
  dtypes = floating,
  body   = [[ cosh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  examples = { { x = 0.0, y = 1.0 } },
}

unary "atanh" {
  doc    = "The inverse hyperbolic tangent; NaN beyond 1 and -1, infinite there.",
  dtypes = floating,
  body   = [[ atanh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1, 1 },
  examples = { { x = -0.0, y = -0.0 }, { x = 1.0, y = INFINITY } },
}

unary "asinh" {
  doc    = "The inverse hyperbolic sine.",
  dtypes = floating,
  body   = [[ asinh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1e30, 1e30 },
  examples = { { x = -0.0, y = -0.0 }, { x = INFINITY, y = INFINITY } },
}

unary "acosh" {
  doc    = "The inverse hyperbolic cosine, not negative; NaN below 1.",
  dtypes = floating,
  body   = [[ acosh(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 1, 1e30 },
  examples = { { x = 1.0, y = 0.0 } },
}
