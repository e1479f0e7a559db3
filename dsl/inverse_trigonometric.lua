-- SPDX-License-Identifier: Apache-2.0
--
-- The inverse trigonometric functions, one entry each; angles in radians.

unary "atan" {
  doc    = "The arc tangent, in [-pi/2, pi/2].",
  dtypes = floating,
  body   = [[ atan(x) ]],
  narrow = { f16 = [[ atan(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -10, 10 },
  grad   = [[ abs(x) > 1e10 ? grad / x / x : grad / fma(x, x, 1) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 0.0, out = 0.0 } },
}

binary "atan2" {
  doc    = "The angle, in [-pi, pi], of the point of ordinate x and abscissa y: the arc tangent of x/y where y > 0.",
  dtypes = floating,
  body   = [[ atan2(x, y) ]],
  ulp    = { f32 = 1, f64 = 1 },
  grad   = [[
    T r = hypot(x, y);
    // a large r may take the quotients below the range, a small one the products
    grad_x = r == 0 ? 0 : r > 1 ? grad * (y / r) / r : grad * (y / r / r);
    grad_y = r == 0 ? 0 : -(r > 1 ? grad * (x / r) / r : grad * (x / r / r)); ]],
  grad_ulp = { f32 = 3.8, f64 = 4 },
  examples = { { x = 0.0, y = 1.0, out = 0.0 } },
}

unary "asin" {
  doc    = "The arc sine, in [-pi/2, pi/2]; NaN outside [-1, 1].",
  dtypes = floating,
  body   = [[ asin(x) ]],
  narrow = { f16 = [[ asin_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1, 1 },
  grad   = [[ grad / sqrt(fma(-x, x, 1)) ]],
  grad_ulp = { f32 = 2, f64 = 2 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "acos" {
  doc    = "The arc cosine, in [0, pi]; NaN outside [-1, 1].",
  dtypes = floating,
  body   = [[ acos(x) ]],
  narrow = { f16 = [[ acos_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1, 1 },
  grad   = [[ -(grad / sqrt(fma(-x, x, 1))) ]],
  grad_ulp = { f32 = 2, f64 = 2 },
  examples = { { x = 1.0, out = 0.0 } },
}
