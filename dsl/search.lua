-- SPDX-License-Identifier: Apache-2.0
--
-- Where the largest and the smallest are: places in row-major order of the axes. Of equals it is the first; -0 equals 0.

reduction "argmax_last" {
  doc = "The place of the largest: the last of equals, in row-major order of the axes; of the last NaN if there is one.",
  dtypes = numeric, state = "T v, i64 i", result = "i64", order = "free", empty = false,
  lift = "v = x; i = index;",
  combine = {
    floating = [[
      bool later = b.i > a.i;
      bool take = b.v != b.v ? a.v == a.v || later : a.v == a.v && (b.v > a.v || b.v == a.v && later);
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
    integer = [[
      bool take = b.v > a.v || b.v == a.v && b.i > a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
  },
  finish = "a.i",
  examples = { { x = { 3, 3, 1 }, out = 1 }, { x = { NAN, NAN, 1 }, out = 1 }, { x = { 0.0, -0.0 }, out = 1 } },
}

reduction "argmax" {
  doc = "The place of the largest: the first of equals, in row-major order of the axes; of the first NaN if there is one.",
  dtypes = numeric, state = "T v, i64 i", result = "i64", order = "free", empty = false, finds = "max", last = "argmax_last",
  lift = "v = x; i = index;",
  combine = {
    floating = [[
      bool later = b.i < a.i;
      bool take = b.v != b.v ? a.v == a.v || later : a.v == a.v && (b.v > a.v || b.v == a.v && later);
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
    integer = [[
      bool take = b.v > a.v || b.v == a.v && b.i < a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
  },
  finish = "a.i",
  examples = { { x = { 1, 3, 3 }, out = 1 }, { x = { 1, NAN, NAN }, out = 1 }, { x = { -0.0, 0.0 }, out = 0 } },
}

reduction "argmin_last" {
  doc = "The place of the smallest: the last of equals, in row-major order of the axes; of the last NaN if there is one.",
  dtypes = numeric, state = "T v, i64 i", result = "i64", order = "free", empty = false,
  lift = "v = x; i = index;",
  combine = {
    floating = [[
      bool later = b.i > a.i;
      bool take = b.v != b.v ? a.v == a.v || later : a.v == a.v && (b.v < a.v || b.v == a.v && later);
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
    integer = [[
      bool take = b.v < a.v || b.v == a.v && b.i > a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
  },
  finish = "a.i",
  examples = { { x = { 1, 1, 3 }, out = 1 }, { x = { NAN, NAN, 1 }, out = 1 }, { x = { -0.0, 0.0 }, out = 1 } },
}

reduction "argmin" {
  doc = "The place of the smallest: the first of equals, in row-major order of the axes; of the first NaN if there is one.",
  dtypes = numeric, state = "T v, i64 i", result = "i64", order = "free", empty = false, finds = "min", last = "argmin_last",
  lift = "v = x; i = index;",
  combine = {
    floating = [[
      bool later = b.i < a.i;
      bool take = b.v != b.v ? a.v == a.v || later : a.v == a.v && (b.v < a.v || b.v == a.v && later);
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
    integer = [[
      bool take = b.v < a.v || b.v == a.v && b.i < a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
  },
  finish = "a.i",
  examples = { { x = { 3, 1, 1 }, out = 1 }, { x = { 1, NAN, NAN }, out = 1 }, { x = { 0.0, -0.0 }, out = 0 } },
}

reduction "nanargmax" {
  doc = "The place of the largest of what is not NaN: the first of equals, in row-major order of the axes; -1 if nothing else is there.",
  dtypes = numeric, state = "T v, i64 i", result = "i64", order = "free", empty = false, finds = "nanmax",
  lift = "v = x; i = index;",
  combine = {
    floating = [[
      bool take = b.v == b.v && (a.v != a.v || b.v > a.v || b.v == a.v && b.i < a.i) || b.v != b.v && a.v != a.v && b.i < a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
    integer = [[
      bool take = b.v > a.v || b.v == a.v && b.i < a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
  },
  finish = { floating = "a.v == a.v ? a.i : -1", integer = "a.i" },
  examples = { { x = { NAN, 1, 3, 3 }, out = 2 }, { x = { NAN }, out = -1 } },
}

reduction "nanargmin" {
  doc = "The place of the smallest of what is not NaN: the first of equals, in row-major order of the axes; -1 if nothing else is there.",
  dtypes = numeric, state = "T v, i64 i", result = "i64", order = "free", empty = false, finds = "nanmin",
  lift = "v = x; i = index;",
  combine = {
    floating = [[
      bool take = b.v == b.v && (a.v != a.v || b.v < a.v || b.v == a.v && b.i < a.i) || b.v != b.v && a.v != a.v && b.i < a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
    integer = [[
      bool take = b.v < a.v || b.v == a.v && b.i < a.i;
      v = take ? b.v : a.v;
      i = take ? b.i : a.i;
    ]],
  },
  finish = { floating = "a.v == a.v ? a.i : -1", integer = "a.i" },
  examples = { { x = { NAN, 3, 1, 1 }, out = 2 }, { x = { NAN }, out = -1 } },
}

row "nll_loss" {
  doc = "-x at the class t, of logarithms of probabilities x: an integer, constant along the axes. NaN where there is no such class.",
  inputs = "x, row i64 t", dtypes = floating,
  body = "sum((i64)(index == t)) == 1 ? -sum(index == t ? x : 0) : NAN",
  grad = { x = "sum((i64)(index == t)) == 1 ? (index == t ? -grad : 0) : NAN" },
  examples = { { x = { -1, -2 }, t = 1, out = 2 }, { x = { -1, -2 }, t = 2, out = NAN } },
}

row "cross_entropy" {
  doc = "-log_softmax(x) at the class t: an integer, constant along the axes. NaN where there is no such class.",
  inputs = "x, row i64 t", dtypes = floating, empty = "identity",
  body = "sum((i64)(index == t)) == 1 ? logsumexp(x) - sum(index == t ? x : 0) : NAN",
  bound = [[
    u * (depth + 3 + sum(softmax(x) * (max(x) - x)) + 2 * (logsumexp(x) - max(x)) +
    abs(logsumexp(x)) + abs(cross_entropy(x, t)))
  ]],
  grad = { x = [[
    T p = softmax(x);
    T slope = index == t ? p - 1 : p;
    return sum((i64)(index == t)) == 1 ? grad * slope : NAN;
  ]] },
  examples = { { x = { 5 }, t = 0, out = 0.0 }, { x = { 5 }, t = -1, out = NAN } },
}

row "max_with_indices" {
  doc = "The largest, and its place: max and argmax.",
  dtypes = numeric, outputs = "values, i64 indices", examples = { { x = { 1, 3, 3 }, values = 3, indices = 1 } },
  body = [[
    values = max(x);
    indices = argmax(x);
  ]],
}

row "min_with_indices" {
  doc = "The smallest, and its place: min and argmin.",
  dtypes = numeric, outputs = "values, i64 indices", examples = { { x = { 3, 1, 1 }, values = 1, indices = 1 } },
  body = [[
    values = min(x);
    indices = argmin(x);
  ]],
}
