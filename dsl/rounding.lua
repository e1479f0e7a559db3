-- SPDX-License-Identifier: Apache-2.0
--
-- Rounding to whole numbers, one entry each; integers are whole, and stay as they are. Names as in the array API, else NumPy's.

unary "floor" {
  doc    = "The largest whole number that is not above x; integers stay as they are.",
  dtypes = numeric,
  body   = [[ floor(x) ]],
  examples = { { x = -1.5, out = -2.0 }, { x = 3, out = 3 } },
}

unary "ceil" {
  doc    = "The smallest whole number that is not below x; integers stay as they are.",
  dtypes = numeric,
  body   = [[ ceil(x) ]],
  examples = { { x = -0.5, out = -0.0 }, { x = 3, out = 3 } },
}

unary "trunc" {
  doc    = "x without its fraction, towards zero; integers stay as they are.",
  dtypes = numeric,
  body   = [[ trunc(x) ]],
  examples = { { x = -1.5, out = -1.0 }, { x = 3, out = 3 } },
}

unary "fix" {
  doc    = "x without its fraction, towards zero: NumPy's name for trunc.",
  dtypes = numeric,
  body   = [[ trunc(x) ]],
  examples = { { x = 1.75, out = 1.0 }, { x = 3, out = 3 } },
}

unary "round" {
  doc    = "The whole number next to x, the even one of two as near; integers stay as they are.",
  dtypes = numeric,
  body   = {
    floating = [[ rint(x) ]],
    integer  = [[ x ]],
  },
  examples = { { x = 2.5, out = 2.0 }, { x = 3, out = 3 } },
}

unary "rint" {
  doc    = "The whole number next to x, the even one of two as near; integers give a float.",
  dtypes = floating,
  body   = [[ rint(x) ]],
  examples = { { x = -3.5, out = -4.0 } },
}
