-- Exponentials and logarithms beside exp and log, and cbrt; one entry each. Names as in the array API, else NumPy's.

unary "exp2" {
  doc    = "2 to the x.",
  dtypes = floating,
  body   = [[ exp2(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -160, 130 },
  examples = { { x = 3.0, y = 8.0 }, { x = -1.0, y = 0.5 } },
}

unary "expm1" {
  doc    = "e to the x, minus 1, accurate near 0.",
  dtypes = floating,
  body   = [[ expm1(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -20, 90 },
  examples = { { x = 0.0, y = 0.0 }, { x = -INFINITY, y = -1.0 } },
}

unary "log2" {
  doc    = "The logarithm to base 2; NaN below zero, -inf at zero.",
  dtypes = floating,
  body   = [[ log2(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 0, 1e30 },
  examples = { { x = 8.0, y = 3.0 }, { x = 0.25, y = -2.0 } },
}

unary "log10" {
  doc    = "The logarithm to base 10; NaN below zero, -inf at zero.",
  dtypes = floating,
  body   = [[ log10(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 0, 1e30 },
  examples = { { x = 1000.0, y = 3.0 }, { x = 1.0, y = 0.0 } },
}

unary "log1p" {
  doc    = "log(1 + x), accurate near 0; NaN below -1, -inf at -1.",
  dtypes = floating,
  body   = [[ log1p(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1, 1e30 },
  examples = { { x = 0.0, y = 0.0 }, { x = -0.0, y = -0.0 }, { x = -1.0, y = -INFINITY } },
}

unary "erfc" {
  doc    = "The complementary error function, 1 - erf(x), accurate where it is small.",
  dtypes = floating,
  body   = [[ erfc(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -6, 12 },
  examples = { { x = 0.0, y = 1.0 }, { x = -INFINITY, y = 2.0 } },
}

unary "cbrt" {
  doc    = "The cube root.",
  dtypes = floating,
  body   = [[ cbrt(x) ]],
  ulp    = { f32 = 0.51, f64 = 0.51 },
  domain = { -1e30, 1e30 },
  examples = { { x = -27.0, y = -3.0 }, { x = -0.0, y = -0.0 } },
}

binary "logaddexp" {
  doc    = "log(e^x + e^y) without overflow; near its zeros the error is 1 ULP of the larger operand.",
  dtypes = floating,
  body   = [[ logaddexp(x, y) ]],
  ulp    = { f32 = 1, f64 = 1 },
  examples = { { x = -INFINITY, y = 1.5, out = 1.5 } },
}

binary "logaddexp2" {
  doc    = "log2(2^x + 2^y) without overflow; near its zeros the error is 1 ULP of the larger operand.",
  dtypes = floating,
  body   = [[ logaddexp2(x, y) ]],
  ulp    = { f32 = 1, f64 = 1 },
  examples = { { x = 1.0, y = 1.0, out = 2.0 }, { x = -INFINITY, y = 1.5, out = 1.5 } },
}
