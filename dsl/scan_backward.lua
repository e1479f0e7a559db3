-- SPDX-License-Identifier: Apache-2.0
--
-- Derivatives of scans. Place k of a scan is read by the places from k on, so these run from its end.

adjoint "cumulative_sum_backward" {
  doc = "The derivative of cumulative_sum: the sums of grad from the end.",
  of = "cumulative_sum", inputs = "grad", dtypes = floating,
  state = "T sum", lift = "sum = grad;", combine = "sum = a.sum + b.sum;", finish = "a.sum",
}

-- The state of places i to j: x[i], the product of the others, and the derivative of their part by the product before i. It has no
-- division, so a zero is as any other number.
adjoint "cumulative_prod_backward" {
  doc = [[The derivative of cumulative_prod: at each place the product before it, times the sum, over the places from it on, of grad and the
    product between. Exact at zeros.]],
  of = "cumulative_prod", inputs = "grad, x", reads = "out", before = "out", dtypes = floating,
  state = "f64 first, f64 others, f64 sum", lift = "first = (f64)x; others = 1; sum = (f64)grad;",
  combine = [[
    first = b.first;
    others = b.others * a.first * a.others;
    sum = b.sum + b.others * a.first * a.sum;
  ]],
  finish = "(T)((f64)out * a.sum)",
}

-- The sum over the places from k on of grad * exp(out[k] - out): no exponent is above 0.
adjoint "logcumsumexp_backward" {
  doc = [[The derivative of logcumsumexp: the sum, over the places from each one on, of grad times the part that it has in the sum of
    exponentials. 0 for -inf.]],
  of = "logcumsumexp", inputs = "grad, x", reads = "out", dtypes = floating,
  state = "T level, T sum", lift = "level = out; sum = grad;",
  combine = [[
    level = b.level;
    sum = b.sum + (a.level == b.level ? 1 : exp(b.level - a.level)) * a.sum;
  ]],
  finish = "x == -INFINITY ? 0 : exp(x - out) * a.sum",
}

-- The places that have found one element follow one another, the first of them at the element itself.
adjoint "cummax_backward" {
  doc = "The derivative of cummax by its values: at each element the sum of grad over the places where it is the largest element. indices: as cummax gives them.",
  of = "cummax", inputs = "grad, i64 indices", dtypes = floating,
  state = "i64 place, T sum", lift = "place = indices; sum = grad;",
  combine = "place = b.place; sum = a.place == b.place ? a.sum + b.sum : b.sum;",
  finish = "indices == index ? a.sum : 0",
}

adjoint "cummin_backward" {
  doc = "The derivative of cummin by its values: at each element the sum of grad over the places where it is the smallest element. indices: as cummin gives them.",
  of = "cummin", inputs = "grad, i64 indices", dtypes = floating,
  state = "i64 place, T sum", lift = "place = indices; sum = grad;",
  combine = "place = b.place; sum = a.place == b.place ? a.sum + b.sum : b.sum;",
  finish = "indices == index ? a.sum : 0",
}
