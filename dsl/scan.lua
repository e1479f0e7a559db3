-- SPDX-License-Identifier: Apache-2.0
--
-- Scans along an axis. The order of additions is that of docs/internals/reductions.md.

scan "cumulative_sum" {
  doc = [[The sums of the elements up to each one along an axis. Integers are added as 64 bits, modulo 2^64. include_initial: a 0 before them;
    exclusive: without the element itself; reverse: from the end.]],
  dtypes = real, accumulate = "wide", result = "wide", combine = "a + b", initial = 0,
  bound = { floating = "u * depth * cumulative_sum(abs(x))" },
  examples = { { x = { 1, 2, 4 }, out = { 1, 3, 7 } } },
}

scan "cumulative_prod" {
  doc = [[The products of the elements up to each one along an axis. Integers are multiplied as 64 bits, modulo 2^64. include_initial: a 1
    before them; exclusive: without the element itself; reverse: from the end.]],
  dtypes = real, accumulate = "wide", result = "wide", combine = "a * b", initial = 1,
  bound = { floating = "u * count * abs(cumulative_prod(x))" },
  examples = { { x = { 2, 3, 7 }, out = { 2, 6, 42 } } },
}

scan "logcumsumexp" {
  doc = "The logarithms of the sums of exp(x) up to each element along an axis.",
  dtypes = floating, combine = "logaddexp(a, b)", initial = -INFINITY,
  bound = "2 * u * depth * maximum(cumulative_max(abs(x)), abs(logcumsumexp(x)))", -- all that is combined lies between
  examples = { { x = { 0.0 }, out = { 0.0 } } },
}

scan "cumulative_max" {
  doc = "The largest element up to each one along an axis. NaN from the first NaN on; 0 is above -0.",
  dtypes = numeric, combine = "maximum(a, b)", initial = -INFINITY,
  examples = { { x = { 2, 7, 3 }, out = { 2, 7, 7 } } },
}

scan "cumulative_min" {
  doc = "The smallest element up to each one along an axis. NaN from the first NaN on; -0 is below 0.",
  dtypes = numeric, combine = "minimum(a, b)", initial = INFINITY,
  examples = { { x = { 7, 2, 3 }, out = { 7, 2, 2 } } },
}

scan "cummax" {
  doc = [[The largest element up to each one along an axis, and its place: that of the first of equals, or of the first NaN; -0 equals 0.
    Before all elements the place is -1.]],
  dtypes = numeric, outputs = "values, i64 indices", finds = "max", combine = "maximum(a, b)", initial = -INFINITY,
  examples = { { x = { 2, 7, 7 }, values = { 2, 7, 7 }, indices = { 0, 1, 1 } } },
}

scan "cummin" {
  doc = [[The smallest element up to each one along an axis, and its place: that of the first of equals, or of the first NaN; -0 equals 0.
    Before all elements the place is -1.]],
  dtypes = numeric, outputs = "values, i64 indices", finds = "min", combine = "minimum(a, b)", initial = INFINITY,
  examples = { { x = { 7, 2, 2 }, values = { 7, 2, 2 }, indices = { 0, 1, 1 } } },
}
