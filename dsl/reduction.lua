-- SPDX-License-Identifier: Apache-2.0
--
-- Reductions over axes, and row programs of them. The order of additions is that of docs/internals/reductions.md, whatever the layout of
-- the operands, the number of threads and the machine.


reduction "sum" {
  doc = "The sum. Integers are added as 64 bits, modulo 2^64. Never -0.",
  dtypes = real, accumulate = "wide", result = "wide", combine = "a + b", identity = 0, empty = 0,
  finish = { integer = "a", floating = "a + 0" },
  grad = "grad",
  examples = { { x = { 1, 2, 4 }, out = 7 }, { x = {}, out = 0 } },
}

reduction "prod" {
  doc = "The product. Integers are multiplied as 64 bits, modulo 2^64.",
  dtypes = real, accumulate = "wide", result = "wide", combine = "a * b", identity = 1, empty = 1,
  grad = [[ /* at a zero that is the only one: the product of the others */
    T zeros = sum(x == 0 ? 1 : 0);
    T others = prod(x == 0 ? 1 : x);
    return x != 0 ? grad * (out / x) : grad * (zeros == 1 ? others : out);
  ]],
  examples = { { x = { 2, 3, 7 }, out = 42 }, { x = {}, out = 1 } },
}

reduction "max" {
  doc = "The largest. NaN if there is one; 0 is above -0.",
  dtypes = numeric, combine = "maximum(a, b)", order = "free", empty = false,
  grad = "(x == out ? grad : 0) / sum(x == out ? 1 : 0)", -- equal ones share it
  examples = { { x = { 2, 7, 3 }, out = 7 }, { x = { -0.0, 0.0 }, out = 0.0 } },
}

reduction "min" {
  doc = "The smallest. NaN if there is one; -0 is below 0.",
  dtypes = numeric, combine = "minimum(a, b)", order = "free", empty = false,
  grad = "(x == out ? grad : 0) / sum(x == out ? 1 : 0)",
  examples = { { x = { 7, 2, 3 }, out = 2 }, { x = { 0.0, -0.0 }, out = -0.0 } },
}

reduction "any" {
  doc = "Whether some element is not 0; NaN is not.",
  dtypes = real, accumulate = "u8", result = "bool", lift = "(u8)(bool)x", combine = "a | b", finish = "a != 0", order = "free",
  identity = 0, empty = 0,
  examples = { { x = { 0, 1 }, out = 1 }, { x = { 0, 0 }, out = 0 } },
}

reduction "all" {
  doc = "Whether no element is 0; NaN is not.",
  dtypes = real, accumulate = "u8", result = "bool", lift = "(u8)(bool)x", combine = "a & b", finish = "a != 0", order = "free",
  identity = 1, empty = 1,
  examples = { { x = { 1, 1 }, out = 1 }, { x = { 0, 1 }, out = 0 } },
}

row "count_nonzero" {
  doc = "The number of elements that are not 0; NaN is not.",
  dtypes = real, result = "i64", body = "sum((i64)(bool)x)",
  examples = { { x = { 1, 0, 1 }, out = 2 } },
}

row "mean" {
  doc = "The arithmetic mean. Of integers of up to 32 bits it is rounded once. NaN of no elements.",
  dtypes = real, result = "floating",
  body = {
    floating = "sum(x) / (T)count",
    integer = "(f64)sum(x) / (f64)count", bool = "(f64)sum(x) / (f64)count",
    i64 = "sum((f64)x) / (f64)count", u64 = "sum((f64)x) / (f64)count",
  },
  examples = { { x = { 1, 2, 6 }, out = 3 } },
}

row "softmax" {
  doc = "exp(x - max(x)), divided by its sum.",
  dtypes = floating,
  body = [[
    T e = exp(x - max(x));
    T r = 1 / sum(e);
    return e * r;
  ]],
  grad = "out * (grad - sum(grad * out))",
  examples = { { x = { 3, 3 }, out = 0.5 } },
}

row "softmin" {
  doc = "softmax(-x).",
  dtypes = floating, body = "softmax(-x)",
  grad = "out * (sum(grad * out) - grad)",
  examples = { { x = { 3, 3, 3, 3 }, out = 0.25 } },
}

row "log_softmax" {
  doc = "The logarithm of softmax(x): x - max(x), less the logarithm of the sum of its exponentials.",
  dtypes = floating,
  body = [[
    T d = x - max(x);
    return d - log(sum(exp(d)));
  ]],
  grad = "grad - exp(out) * sum(grad)",
  examples = { { x = { -1000 }, out = 0.0 } },
}

row "logsumexp" {
  doc = "The logarithm of the sum of exp(x).",
  dtypes = floating, empty = -INFINITY,
  body = [[
    T m = max(x);
    T s = abs(m) < INFINITY ? m : 0;
    return log(sum(exp(x - s))) + s;
  ]],
  grad = "out == -INFINITY ? 0 : grad * exp(x - out)",
  examples = { { x = { 1000 }, out = 1000 } },
}
