-- SPDX-License-Identifier: Apache-2.0
--
-- Moments, ranges and weighted means over axes; the same of the elements that are not NaN.

row "var" {
  doc = "The variance: the sum of (x - mean(x))^2, divided by count - correction. NaN where that is not above 0.",
  dtypes = floating, params = { correction = 0 },
  body = [[
    T d = x - mean(x);
    T n = (T)count - correction;
    return n > 0 ? sum(d * d) / n : NAN;
  ]],
  bound = "u * (depth + 6) * var(x, correction) + 2 * square(u * (depth + 1) * mean(abs(x))) * count / (count - correction)",
  grad = [[
    T n = (T)count - correction;
    T slope = n > 0 ? 2 / n : NAN;
    return grad * ((x - mean(x)) * slope);
  ]],
  examples = { { x = { 1, 2, 3, 4 }, out = 1.25 }, { x = { 1, 3 }, correction = 1, out = 2 }, { x = { 5 }, correction = 1, out = NAN } },
}

row "std" {
  doc = "The standard deviation: the square root of the variance. NaN where count - correction is not above 0.",
  dtypes = floating, params = { correction = 0 },
  body = "sqrt(var(x, correction))",
  bound = "u * (depth / 2 + 4) * std(x, correction) + u * (depth + 1) * sqrt(2 * square(mean(abs(x))) * count / (count - correction))",
  grad = [[
    T n = (T)count - correction;
    T d = x - mean(x);
    return out == 0 ? 0 : grad * (d / (out * n));
  ]],
  examples = { { x = { 1, 5 }, out = 2 } },
}

row "var_mean" {
  doc = "The variance and the mean.",
  dtypes = floating, params = { correction = 0 }, outputs = "var, mean",
  body = [[
    var = var(x, correction);
    mean = mean(x);
  ]],
  bound = [[
    var = u * (depth + 6) * var(x, correction) +
      2 * square(u * (depth + 1) * mean(abs(x))) * count / (count - correction);
    mean = u * (depth + 1) * mean(abs(x));
  ]],
  examples = { { x = { 1, 5 }, var = 4, mean = 3 } },
}

row "std_mean" {
  doc = "The standard deviation and the mean.",
  dtypes = floating, params = { correction = 0 }, outputs = "std, mean",
  body = [[
    std = std(x, correction);
    mean = mean(x);
  ]],
  bound = [[
    std = u * (depth / 2 + 4) * std(x, correction) +
      u * (depth + 1) * sqrt(2 * square(mean(abs(x))) * count / (count - correction));
    mean = u * (depth + 1) * mean(abs(x));
  ]],
  examples = { { x = { 1, 5 }, std = 2, mean = 3 } },
}

row "aminmax" {
  doc = "The smallest and the largest. NaN if there is one.",
  dtypes = numeric, outputs = "min, max",
  body = [[
    min = min(x);
    max = max(x);
  ]],
  examples = { { x = { 3, 1, 2 }, min = 1, max = 3 } },
}

row "ptp" {
  doc = "The range: the largest less the smallest. Integers wrap.",
  dtypes = numeric, body = "max(x) - min(x)",
  examples = { { x = { 3, 1, 2 }, out = 2 } },
}

row "average" {
  doc = "The mean of x by weights: sum(x * weights) / sum(weights).",
  inputs = "x, weights", dtypes = floating, body = "sum(x * weights) / sum(weights)",
  bound = [[
    u * ((depth + 2) * sum(abs(x * weights)) +
    (depth + 1) * abs(average(x, weights)) * sum(abs(weights))) / abs(sum(weights))
  ]],
  grad = [[
    T total = sum(weights);
    grad_x = grad * (weights / total);
    grad_weights = grad * ((x - out) / total);
  ]],
  examples = { { x = { 1, 4 }, weights = { 2, 1 }, out = 2 } },
}

row "vecdot" {
  doc = "The sum of x * y. Integers are multiplied and added as 64 bits, modulo 2^64.",
  inputs = "x, y", dtypes = real, result = "wide",
  body = {
    floating = "sum(x * y)",
    integer = "sum((i64)x * (i64)y)", bool = "sum((i64)x * (i64)y)",
    u8 = "sum((u64)x * (u64)y)", u16 = "sum((u64)x * (u64)y)", u32 = "sum((u64)x * (u64)y)", u64 = "sum(x * y)",
  },
  bound = { floating = "u * (depth + 1) * sum(abs(x * y))" },
  examples = { { x = { 1, 2 }, y = { 3, 4 }, out = 11 } },
}

reduction "nansum" {
  doc = "The sum of what is not NaN. Integers are added as 64 bits, modulo 2^64. Never -0.",
  dtypes = real, accumulate = "wide", result = "wide", combine = "a + b", identity = 0, empty = 0,
  lift = { floating = "x != x ? 0 : x", integer = "x", bool = "x" },
  finish = { integer = "a", floating = "a + 0" },
  bound = { floating = "u * depth * nansum(abs(x))" },
  grad = "x != x ? 0 : grad",
  examples = { { x = { 1, NAN, 2 }, out = 3 }, { x = { NAN }, out = 0 } },
}

reduction "nanprod" {
  doc = "The product of what is not NaN. Integers are multiplied as 64 bits, modulo 2^64.",
  dtypes = real, accumulate = "wide", result = "wide", combine = "a * b", identity = 1, empty = 1,
  lift = { floating = "x != x ? 1 : x", integer = "x", bool = "x" },
  bound = { floating = "u * count * abs(nanprod(x))" },
  grad = [[
    T zeros = sum(x == 0 ? 1 : 0);
    T others = nanprod(x == 0 ? 1 : x);
    T slope = x != 0 ? grad * (out / x) : grad * (zeros == 1 ? others : out);
    return x != x ? 0 : slope;
  ]],
  examples = { { x = { 3, NAN, 2 }, out = 6 }, { x = { NAN }, out = 1 } },
}

reduction "nanmax" {
  doc = "The largest of what is not NaN; NaN if nothing else is there. 0 is above -0.",
  dtypes = numeric, order = "free", repeats = true, empty = false,
  combine = { floating = "a != a ? b : b != b ? a : maximum(a, b)", integer = "maximum(a, b)" },
  grad = "(x == out ? grad : 0) / sum(x == out ? 1 : 0)",
  examples = { { x = { 3, NAN, 2 }, out = 3 }, { x = { NAN }, out = NAN } },
}

reduction "nanmin" {
  doc = "The smallest of what is not NaN; NaN if nothing else is there. -0 is below 0.",
  dtypes = numeric, order = "free", repeats = true, empty = false,
  combine = { floating = "a != a ? b : b != b ? a : minimum(a, b)", integer = "minimum(a, b)" },
  grad = "(x == out ? grad : 0) / sum(x == out ? 1 : 0)",
  examples = { { x = { 3, NAN, 2 }, out = 2 }, { x = { NAN }, out = NAN } },
}

row "nanmean" {
  doc = "The mean of what is not NaN; NaN if that is nothing.",
  dtypes = real, result = "floating",
  body = {
    floating = "nansum(x) / (T)sum((i64)(x == x))",
    integer = "(f64)sum(x) / (f64)count", bool = "(f64)sum(x) / (f64)count",
    i64 = "sum((f64)x) / (f64)count", u64 = "sum((f64)x) / (f64)count",
  },
  bound = {
    floating = "u * (depth + 1) * nanmean(abs(x))", integer = "2 * u * abs(nanmean(x))", bool = "2 * u * nanmean(x)",
    i64 = "u * (depth + 2) * nanmean(abs((f64)x))", u64 = "u * (depth + 2) * nanmean(x)",
  },
  examples = { { x = { 3, NAN, 1 }, out = 2 }, { x = { NAN }, out = NAN } },
}

row "nanvar" {
  doc = "The variance of what is not NaN: see var. NaN where as many elements, less correction, are not above 0.",
  dtypes = floating, params = { correction = 0 },
  body = [[
    T n = (T)sum((i64)(x == x));
    T d = x != x ? 0 : x - nansum(x) / n;
    T left = n - correction;
    return left > 0 ? sum(d * d) / left : NAN;
  ]],
  bound = [[
    u * (depth + 6) * nanvar(x, correction) +
    2 * square(u * (depth + 1) * nanmean(abs(x))) * sum((f64)(x == x)) / (sum((f64)(x == x)) - correction)
  ]],
  grad = [[
    T n = (T)sum((i64)(x == x));
    T left = n - correction;
    T slope = left > 0 ? 2 / left : NAN;
    return x != x ? 0 : grad * ((x - nansum(x) / n) * slope);
  ]],
  examples = { { x = { 1, NAN, 5 }, out = 4 }, { x = { NAN }, out = NAN } },
}

row "nanstd" {
  doc = "The standard deviation of what is not NaN: the square root of nanvar.",
  dtypes = floating, params = { correction = 0 },
  body = "sqrt(nanvar(x, correction))",
  bound = [[
    u * (depth / 2 + 4) * nanstd(x, correction) +
    u * (depth + 1) * nanmean(abs(x)) * sqrt(2 * sum((f64)(x == x)) / (sum((f64)(x == x)) - correction))
  ]],
  grad = [[
    T n = (T)sum((i64)(x == x));
    T d = x - nansum(x) / n;
    return x != x || out == 0 ? 0 : grad * (d / (out * (n - correction)));
  ]],
  examples = { { x = { 1, NAN, 5 }, out = 2 } },
}
