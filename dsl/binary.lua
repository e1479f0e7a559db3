-- SPDX-License-Identifier: Apache-2.0
--
-- Binary arithmetic, fma and clip, one entry each.

binary "add" {
  doc    = "x + y; integers wrap.",
  dtypes = numeric,
  body   = [[ x + y ]],
  examples = { { x = 1.5, y = 2.0, out = 3.5 } },
}

binary "subtract" {
  doc    = "x - y; integers wrap.",
  dtypes = numeric,
  body   = [[ x - y ]],
  examples = { { x = 1.5, y = 2.0, out = -0.5 } },
}

binary "multiply" {
  doc    = "x times y; integers wrap.",
  dtypes = numeric,
  body   = [[ x * y ]],
  examples = { { x = 1.5, y = 2.0, out = 3.0 } },
}

binary "divide" {
  doc    = "True division: integers give a float.",
  dtypes = floating,
  body   = [[ x / y ]],
  grad_ulp = { f32 = 2.4, f64 = 2.4 },
  examples = { { x = 1.0, y = 4.0, out = 0.25 } },
}

binary "maximum" {
  doc    = "The larger of x and y; NaN if either is NaN; +0 of the two zeros.",
  dtypes = numeric,
  body   = [[ maximum(x, y) ]],
  examples = { { x = -0.0, y = 0.0, out = 0.0 } },
}

binary "minimum" {
  doc    = "The smaller of x and y; NaN if either is NaN; -0 of the two zeros.",
  dtypes = numeric,
  body   = [[ minimum(x, y) ]],
  examples = { { x = 1.0, y = 2.0, out = 1.0 } },
}

binary "fmax" {
  doc    = "The larger of x and y; of a NaN and a number, the number; +0 of the two zeros.",
  dtypes = numeric,
  body   = {
    floating = [[ larger_number(x, y) ]],
    integer  = [[ maximum(x, y) ]],
  },
  grad   = {
    x = [[ y != y ? grad : x != x ? 0 : x == y ? 0.5 * grad : x < y ? 0 : grad ]],
    y = [[ y != y ? 0 : x != x ? grad : x == y ? 0.5 * grad : x > y ? 0 : grad ]],
  },
  examples = { { x = NAN, y = 2.0, out = 2.0 }, { x = -0.0, y = 0.0, out = 0.0 } },
}

binary "fmin" {
  doc    = "The smaller of x and y; of a NaN and a number, the number; -0 of the two zeros.",
  dtypes = numeric,
  body   = {
    floating = [[ smaller_number(x, y) ]],
    integer  = [[ minimum(x, y) ]],
  },
  grad   = {
    x = [[ y != y ? grad : x != x ? 0 : x == y ? 0.5 * grad : x > y ? 0 : grad ]],
    y = [[ y != y ? 0 : x != x ? grad : x == y ? 0.5 * grad : x < y ? 0 : grad ]],
  },
  examples = { { x = 1.0, y = NAN, out = 1.0 }, { x = -0.0, y = 0.0, out = -0.0 } },
}

binary "copysign" {
  doc    = "x with the sign bit of y, of an operand's NaN as it lies in memory. A NaN that was computed is positive.",
  dtypes = floating,
  body   = [[ copysign(x, y) ]],
  examples = { { x = 3.0, y = -0.0, out = -3.0 } },
}

binary "heaviside" {
  doc    = "The step function: 0 where x is negative, 1 where it is positive, y at the zeros; NaN where x is NaN.",
  dtypes = floating,
  body   = [[ x < 0 ? 0 : x > 0 ? 1 : x == 0 ? y : x ]],
  grad   = { x = "0", y = [[ x == 0 ? grad : 0 ]] },
  examples = { { x = -1.0, y = 0.5, out = 0.0 }, { x = -0.0, y = 0.5, out = 0.5 } },
}

binary "pow" {
  doc    = "x to the power y. Integers wrap; a negative power of an integer is 0 but for 1 and -1.",
  dtypes = numeric,
  body   = {
    floating = [[ pow(x, y) ]],
    integer  = [[ integer_pow(x, y) ]],
  },
  ulp    = { f32 = 1, f64 = 1 }, fraction = "y",
  grad   = {
    x = [[ y == 0 ? 0 : grad * pow_slope(x, y, out) ]],
    y = [[ x == 0 && y >= 0 ? 0 : grad * (out * log(x)) ]],
  },
  grad_ulp = { f32 = 2.5, f64 = 2.6 },
  examples = { { x = 2.0, y = 10.0, out = 1024.0 } },
}

binary "hypot" {
  doc    = "The length of the vector (x, y), sqrt(x^2 + y^2), without overflow or underflow on the way.",
  dtypes = floating,
  body   = [[ hypot(x, y) ]],
  ulp    = { f32 = 1, f64 = 1 },
  grad   = { x = [[ grad * (x / out) ]], y = [[ grad * (y / out) ]] },
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 3.0, y = -4.0, out = 5.0 } },
}

op "fma" {
  doc    = "x times y plus z, rounded once.",
  inputs = "x, y, z",
  dtypes = floating,
  body   = [[ fma(x, y, z) ]],
  examples = { { x = 2.0, y = 3.0, z = 1.0, out = 7.0 } },
}

op "clip" {
  doc    = "x kept within [min, max]; NaN in any of them gives NaN; where min > max, max.",
  inputs = "x",
  params = { min = -INFINITY, max = INFINITY },
  dtypes = numeric,
  body   = {
    integer  = [[ minimum(maximum(x, min), max) ]],
    floating = [[ clamped(x, min, max) ]],
  },
  narrow = { f16 = [[ minimum(maximum(x, min), max) ]], bf16 = [[ minimum(maximum(x, min), max) ]] },
  grad   = [[ x > min && x < max ? grad : 0 ]],
  examples = { { x = 3.0, out = 3.0 } },
}
