-- SPDX-License-Identifier: Apache-2.0
--
-- Angles and the functions of angles, one entry each. Names as in the array API, else NumPy's.

unary "sin" {
  doc    = "The sine of x radians.",
  dtypes = floating,
  body   = [[ sin(x) ]],
  narrow = { f16 = [[ sin_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  grad   = [[ grad * cos(x) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "cos" {
  doc    = "The cosine of x radians.",
  dtypes = floating,
  body   = [[ cos(x) ]],
  narrow = { f16 = [[ cos_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  grad   = [[ -(grad * sin(x)) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 0.0, out = 1.0 } },
}

unary "tan" {
  doc    = "The tangent of x radians.",
  dtypes = floating,
  body   = [[ tan(x) ]],
  narrow = { f16 = [[ tan_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  grad   = [[ grad * fma(out, out, 1) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "degrees" {
  doc    = "Radians to degrees: x times 180/pi.",
  dtypes = floating,
  body   = [[ degrees(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -100, 100 },
  grad   = [[ degrees(grad) ]],
  grad_ulp = { f32 = 1, f64 = 1 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "radians" {
  doc    = "Degrees to radians: x times pi/180.",
  dtypes = floating,
  body   = [[ radians(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -360, 360 },
  grad   = [[ radians(grad) ]],
  grad_ulp = { f32 = 1, f64 = 1 },
  examples = { { x = 0.0, out = 0.0 } },
}

unary "sinc" {
  doc    = "The normalised sine cardinal: sin(pi x) / (pi x), 1 at 0; NaN at infinity.",
  dtypes = floating,
  body   = [[ sinc(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -30, 30 },
  grad   = [[ sinc_slope(grad, x) ]],
  grad_ulp = { f32 = 2.6, f64 = 2.6 },
  examples = { { x = 0.0, out = 1.0 }, { x = 0.5, out = 0.63661977236758138 } },
}
