-- SPDX-License-Identifier: Apache-2.0
--
-- Reductions over axes, and row programs of them. The order of additions is that of docs/internals/reductions.md, whatever the layout of
-- the operands, the number of threads and the machine.


reduction "sum" {
  doc = "The sum. Integers are added as 64 bits, modulo 2^64. Never -0.",
  dtypes = real, accumulate = "wide", result = "wide", combine = "a + b", identity = 0, empty = 0, initial = "sum_initial",
  finish = { integer = "a", floating = "a + 0" }, picks = true,
  bound = { floating = "u * depth * sum(abs(x))" },
  grad = "grad",
  examples = { { x = { 1, 2, 4 }, out = 7 }, { x = {}, out = 0 } },
}

reduction "prod" {
  doc = "The product. Integers are multiplied as 64 bits, modulo 2^64.",
  dtypes = real, accumulate = "wide", result = "wide", combine = "a * b", identity = 1, empty = 1, initial = "prod_initial",
  bound = { floating = "u * count * abs(prod(x))" },
  grad = [[ /* at a zero that is the only one: the product of the others */
    T zeros = sum(x == 0 ? 1 : 0);
    T others = prod(x == 0 ? 1 : x);
    return x != 0 ? grad * (out / x) : grad * (zeros == 1 ? others : out);
  ]],
  examples = { { x = { 2, 3, 7 }, out = 42 }, { x = {}, out = 1 } },
}

reduction "max" {
  doc = "The largest. NaN if there is one; 0 is above -0.",
  dtypes = numeric, combine = "maximum(a, b)", order = "free", repeats = true, identity = -INFINITY, empty = false,
  initial = "max_initial",
  grad = "(x == out ? grad : 0) / sum(x == out ? 1 : 0)", -- equal ones share it
  examples = { { x = { 2, 7, 3 }, out = 7 }, { x = { -0.0, 0.0 }, out = 0.0 } },
}

reduction "min" {
  doc = "The smallest. NaN if there is one; -0 is below 0.",
  dtypes = numeric, combine = "minimum(a, b)", order = "free", repeats = true, identity = INFINITY, empty = false,
  initial = "min_initial",
  grad = "(x == out ? grad : 0) / sum(x == out ? 1 : 0)",
  examples = { { x = { 7, 2, 3 }, out = 2 }, { x = { 0.0, -0.0 }, out = -0.0 } },
}

row "sum_initial" {
  doc = "initial and the sum: what sum is with the parameter initial.",
  dtypes = real, result = "wide", params = { initial = 0 }, body = "sum(x) + initial",
  examples = { { x = { 1, 2 }, initial = 4, out = 7 } },
}

row "prod_initial" {
  doc = "initial times the product: what prod is with the parameter initial.",
  dtypes = real, result = "wide", params = { initial = 1 }, body = "prod(x) * initial",
  examples = { { x = { 2, 3 }, initial = 7, out = 42 } },
}

row "max_initial" {
  doc = "The largest of the elements and initial: what max is with the parameter initial. NaN if there is one.",
  dtypes = numeric, params = { initial = 0 }, empty = "identity", body = "maximum(max(x), initial)",
  examples = { { x = { -3, -2 }, out = 0 }, { x = { 2, 3 }, initial = 1, out = 3 } },
}

row "min_initial" {
  doc = "The smallest of the elements and initial: what min is with the parameter initial. NaN if there is one.",
  dtypes = numeric, params = { initial = 0 }, empty = "identity", body = "minimum(min(x), initial)",
  examples = { { x = { 3, 2 }, out = 0 }, { x = { 2, 3 }, initial = 7, out = 2 } },
}

reduction "any" {
  doc = "Whether some element is not 0; NaN is not.",
  dtypes = real, accumulate = "u8", result = "bool",
  lift = { bool = "(u8)x", integer = "x != 0 ? (u8)1 : (u8)0", floating = "x != 0 ? (u8)1 : (u8)0" },
  combine = "a | b", finish = "a != 0", order = "free", repeats = true,
  identity = 0, empty = 0, absorbs = 1,
  examples = { { x = { 0, 1 }, out = 1 }, { x = { 0, 0 }, out = 0 } },
}

reduction "all" {
  doc = "Whether no element is 0; NaN is not.",
  dtypes = real, accumulate = "u8", result = "bool",
  lift = { bool = "(u8)x", integer = "x != 0 ? (u8)1 : (u8)0", floating = "x != 0 ? (u8)1 : (u8)0" },
  combine = "a & b", finish = "a != 0", order = "free", repeats = true,
  identity = 1, empty = 1, absorbs = 0,
  examples = { { x = { 1, 1 }, out = 1 }, { x = { 0, 1 }, out = 0 } },
}

row "count_nonzero" {
  doc = "The number of elements that are not 0; NaN is not.",
  dtypes = real, result = "i64",
  body = { bool = "sum((i64)x)", integer = "sum(x != 0 ? (i64)1 : (i64)0)", floating = "sum(x != 0 ? (i64)1 : (i64)0)" },
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
  bound = {
    floating = "u * (depth + 1) * mean(abs(x))", integer = "2 * u * abs(mean(x))", bool = "2 * u * mean(x)",
    i64 = "u * (depth + 2) * mean(abs((f64)x))", u64 = "u * (depth + 2) * mean(x)",
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
  bound = "u * (depth + 8 + max(x) - x + sum(softmax(x) * (max(x) - x))) * softmax(x)",
  grad = "out * (grad - sum(grad * out))",
  examples = { { x = { 3, 3 }, out = 0.5 } },
}

row "softmin" {
  doc = "softmax(-x).",
  dtypes = floating, body = "softmax(-x)",
  bound = "u * (depth + 8 + x - min(x) + sum(softmin(x) * (x - min(x)))) * softmin(x)",
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
  bound = "u * (depth + 3 + max(x) - x + sum(softmax(x) * (max(x) - x)) + 2 * (logsumexp(x) - max(x)) + abs(log_softmax(x)))",
  grad = "grad - exp(out) * sum(grad)",
  examples = { { x = { -1000 }, out = 0.0 } },
}

row "logsumexp" {
  doc = "The logarithm of the sum of exp(x).",
  dtypes = floating, empty = "identity",
  body = [[
    T m = max(x);
    T s = abs(m) < INFINITY ? m : 0;
    return log(sum(exp(x - s))) + s;
  ]],
  bound = "u * (depth + 3 + sum(softmax(x) * (max(x) - x)) + 2 * (logsumexp(x) - max(x)) + abs(logsumexp(x)))",
  grad = "out == -INFINITY ? 0 : grad * exp(x - out)",
  examples = { { x = { 1000 }, out = 1000 } },
}
