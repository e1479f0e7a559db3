-- SPDX-License-Identifier: Apache-2.0
--
-- Ops of class dynamic: the size of their output depends on values. Nothing is computed: for elements of the first input that are
-- not zero they find, in row-major order,
--   finds = "places"   the indices of these elements, a row each
--   finds = "items"    the second input's items there, every bit kept

op "nonzero" {
  doc    = "The indices of the elements of x that are not zero (NaN is not), as rows [count, ndim] in row-major order.",
  inputs = "x",
  dtypes = all,
  finds  = "places",
}

op "compress" {
  doc    = "The items of x where the condition holds, in row-major order of the shape that both broadcast to.",
  inputs = "bool condition, x",
  dtypes = all,
  finds  = "items",
}
