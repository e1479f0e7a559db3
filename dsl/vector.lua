-- SPDX-License-Identifier: Apache-2.0
--
-- Norms of vectors over axes, and what is divided by them. Floats of up to 32 bits are squared and added in f64 and rounded once: what
-- they give neither overflows nor underflows on the way. f64 is scaled by a power of two before that.

row "reduce_l2" {
  doc = "The Euclidean norm: the square root of the sum of x^2, without overflow or underflow on the way.",
  dtypes = floating, empty = "identity", ulp = { f32 = 0.51 },
  body = {
    floating = "sqrt(sum((f64)x * (f64)x))",
    f64 = [[
      T m = max(abs(x));
      T s = x * norm_scale(m);
      return m > 0 && m < INFINITY ? sqrt(sum(s * s)) * norm_unscale(m) : count > 0 ? m : 0;
    ]],
  },
  bound = { f64 = "u * (depth / 2 + 2) * reduce_l2(x)" },
  grad = "out == 0 ? 0 : grad * (x / out)",
  examples = { { x = { 3, -4 }, out = 5 }, { x = { 0x3p100, 0x4p100 }, out = 0x5p100 } },
}

row "reduce_l1" {
  doc = "The sum of |x|. Integers are added as 64 bits, modulo 2^64.",
  dtypes = real, result = "wide",
  body = {
    floating = "sum(abs(x))", integer = "sum(abs((i64)x))",
    bool = "sum(x)", u8 = "sum(x)", u16 = "sum(x)", u32 = "sum(x)", u64 = "sum(x)",
  },
  bound = { floating = "u * depth * sum(abs(x))" },
  examples = { { x = { 3, 4 }, out = 7 } },
}

row "reduce_sum_square" {
  doc = "The sum of x^2. Integers are multiplied and added as 64 bits, modulo 2^64.",
  dtypes = real, result = "wide", body = {
    floating = "sum(x * x)", integer = "sum((i64)x * (i64)x)", bool = "sum(x)",
    u8 = "sum((u64)x * (u64)x)", u16 = "sum((u64)x * (u64)x)", u32 = "sum((u64)x * (u64)x)", u64 = "sum(x * x)",
  },
  bound = { floating = "u * (depth + 1) * sum(x * x)" },
  examples = { { x = { 3, 4 }, out = 25 } },
}

row "reduce_log_sum" {
  doc = "The logarithm of the sum.",
  dtypes = floating, body = "log(sum(x))",
  bound = "u * (depth * sum(abs(x)) / sum(x) + 2 * abs(log(sum(x))))",
  examples = { { x = { 0.5, 0.5 }, out = 0.0 } },
}

row "vector_norm" {
  doc = "The norm of order ord: 2 the Euclidean one; 1 the sum of |x|; inf, -inf the largest and the smallest |x|; p the sum of |x|^p, to 1 / p.",
  dtypes = floating, params = { ord = 2 }, empty = "identity", ulp = { f32 = 0.51 }, special = { 2, "reduce_l2" },
  cases = { 1, 0, INFINITY, -INFINITY },
  body = [[
    T m = abs(x);
    f64 a = (f64)m;
    f64 p = (f64)ord;
    f64 most = (f64)max(m);
    f64 least = (f64)min(m);
    f64 unit = p < 0 ? least : most;
    f64 s = a * norm_scale(unit);
    f64 total = sum(p == 2 ? s * s : p == 1 ? a : p == 0 ? (f64)(a != 0) : pow(s, p));
    f64 root = (p == 2 ? sqrt(total) : pow(total, 1 / p)) * norm_unscale(unit);
    return count == 0 ? 0 : p == INFINITY || p == -INFINITY ? unit : p == 0 || p == 1 ? total : unit > 0 && unit < INFINITY ? root : unit;
  ]],
  bound = { f64 = "u * ((f64)ord == 0 ? 0 : (depth + 3) / abs((f64)ord) + 3) * vector_norm(x, ord)" },
  grad = [[
    f64 a = abs((f64)x);
    f64 p = (f64)ord;
    f64 top = (f64)out;
    f64 equal = sum(a == top ? 1 : 0);
    bool is_end = p == INFINITY || p == -INFINITY;
    f64 slope = p == 1 ? 1 : p == 2 ? a / top : is_end ? (a == top ? 1 : 0) / equal : pow(a / top, p - 1);
    return x == 0 || out == 0 || p == 0 ? 0 : x != x ? x : grad * (T)copysign(slope, (f64)x);
  ]],
  examples = { { x = { 3, -4 }, out = 5 }, { x = { 3, -4 }, ord = 1, out = 7 }, { x = { 3, 0 }, ord = 0, out = 1 },
    { x = { 3, -4 }, ord = INFINITY, out = 4 }, { x = { 3, -4 }, ord = -INFINITY, out = 3 } },
}

row "normalize" {
  doc = "x divided by its Euclidean norm, or by eps where that is larger.",
  dtypes = floating, params = { eps = 1e-12 },
  body = "x / maximum((T)reduce_l2(x), eps)",
  bound = { f64 = "u * (depth / 2 + 4) * abs(normalize(x, eps))", floating = "3 * u * abs(normalize(x, eps))" },
  examples = { { x = { 0, -4 }, out = { 0, -1 } } },
}

row "lp_normalize" {
  doc = "x divided by its vector_norm of order p, or by eps where that is larger.",
  dtypes = floating, params = { p = 2, eps = 1e-12 }, cases = { 2, 1 },
  body = "x / maximum((T)vector_norm(x, p), eps)",
  grad = false, -- it has more values than a program may have; normalize has one
  examples = { { x = { 0, -4 }, out = { 0, -1 } }, { x = { 1, -3 }, p = 1, out = { 0.25, -0.75 } } },
}

row "cosine_similarity" {
  doc = "The cosine of the angle between x and y: the sum of x * y, divided by their Euclidean norms, or by eps where one is smaller.",
  inputs = "x, y", dtypes = floating, params = { eps = 1e-8 }, empty = "identity",
  body = {
    floating = [[
      f64 a = sum((f64)x * (f64)x);
      f64 b = sum((f64)y * (f64)y);
      return sum((f64)x * (f64)y) / (maximum(sqrt(a), (f64)eps) * maximum(sqrt(b), (f64)eps));
    ]],
    f64 = "sum((x / maximum(reduce_l2(x), eps)) * (y / maximum(reduce_l2(y), eps)))",
  },
  bound = {
    floating = "u * abs(cosine_similarity(x, y, eps)) + 0x1p-53 * (2 * depth + 8)",
    f64 = "u * (2 * depth + 8) * sum(abs(x * y)) / (reduce_l2(x) * reduce_l2(y))",
  },
  grad = [[
    T a = reduce_l2(x);
    T b = reduce_l2(y);
    T m = maximum(a, eps);
    T n = maximum(b, eps);
    T u = x / m;
    T v = y / n;
    T c = sum(u * v);
    grad_x = grad * ((a > eps ? v - c * u : v) / m);
    grad_y = grad * ((b > eps ? u - c * v : u) / n);
  ]],
  examples = { { x = { 2, 0 }, y = { 3, 0 }, out = 1 } },
}

row "rms_norm" {
  doc = "x divided by the root of the mean of its squares and eps.",
  dtypes = floating, params = { eps = 1e-5 },
  body = [[
    T r = 1 / sqrt(mean(x * x) + eps);
    return x * r;
  ]],
  bound = "u * (depth / 2 + 6) * abs(rms_norm(x, eps))",
  grad = [[
    T r = 1 / sqrt(mean(x * x) + eps);
    T c = r * mean(grad * x);
    return r * (grad - x * r * c);
  ]],
  examples = { { x = { 2, -2 }, eps = 0, out = { 1, -1 } } },
}

row "rms_norm_affine" {
  doc = "rms_norm times weight.",
  inputs = "x, weight", dtypes = floating, params = { eps = 1e-5 },
  body = [[
    T r = 1 / sqrt(mean(x * x) + eps);
    return x * r * weight;
  ]],
  bound = "u * (depth / 2 + 7) * abs(rms_norm_affine(x, weight, eps))",
  grad = { x = [[
    T g = grad * weight;
    T r = 1 / sqrt(mean(x * x) + eps);
    T c = r * mean(g * x);
    return r * (g - x * r * c);
  ]] }, -- by weight: rms_norm_backward_affine
  examples = { { x = { 2, -2 }, weight = { 3, 5 }, eps = 0, out = { 3, -5 } } },
}

row "layer_norm" {
  doc = "x less its mean, divided by the root of its variance and eps.",
  dtypes = floating, params = { eps = 1e-5 },
  body = [[
    T d = x - mean(x);
    T r = 1 / sqrt(mean(d * d) + eps);
    return d * r;
  ]],
  bound = [[
    u * ((depth + 2) * mean(abs(x)) / sqrt(var(x) + eps) + (depth / 2 + 8) * abs(layer_norm(x, eps))) +
    square(u * (depth + 2) * mean(abs(x))) / (var(x) + eps) * abs(layer_norm(x, eps))
  ]],
  grad = [[
    T d = x - mean(x);
    T r = 1 / sqrt(mean(d * d) + eps);
    T c = r * mean(grad * d);
    return r * (grad - mean(grad) - d * r * c);
  ]],
  examples = { { x = { 1, 5 }, eps = 0, out = { -1, 1 } } },
}

row "layer_norm_affine" {
  doc = "layer_norm times weight, plus bias.",
  inputs = "x, weight, bias", dtypes = floating, params = { eps = 1e-5 },
  body = [[
    T d = x - mean(x);
    T r = 1 / sqrt(mean(d * d) + eps);
    return d * r * weight + bias;
  ]],
  bound = [[
    (u * ((depth + 2) * mean(abs(x)) / sqrt(var(x) + eps) +
    (depth / 2 + 9) * abs(layer_norm(x, eps))) +
    square(u * (depth + 2) * mean(abs(x))) / (var(x) + eps) * abs(layer_norm(x, eps))) * abs(weight) +
    u * abs(layer_norm_affine(x, weight, bias, eps))
  ]],
  grad = { x = [[
    T g = grad * weight;
    T d = x - mean(x);
    T r = 1 / sqrt(mean(d * d) + eps);
    T c = r * mean(g * d);
    return r * (g - mean(g) - d * r * c);
  ]] }, -- by weight and bias: layer_norm_backward_affine
  examples = { { x = { 1, 5 }, weight = { 3, 2 }, bias = { 1, 1 }, eps = 0, out = { -2, 3 } } },
}

row "mean_rstd" {
  doc = "What layer_norm_backward_affine needs of the rows of layer_norm: the mean, and 1 divided by the root of the variance and eps.",
  dtypes = floating, params = { eps = 1e-5 }, outputs = "mean, rstd",
  body = [[
    T m = mean(x);
    T d = x - m;
    mean = m;
    rstd = 1 / sqrt(mean(d * d) + eps);
  ]],
  examples = { { x = { 1, 5 }, eps = 0, mean = 3, rstd = 0.5 } },
}

row "layer_norm_backward_affine" {
  doc = [[The derivative of layer_norm_affine by weight and bias, over the axes that layer_norm_affine does not normalize: sums of
    grad * (x - mean) * rstd and of grad; mean and rstd by mean_rstd, with extent 1 along the other axes.]],
  inputs = "grad, x, mean, rstd", dtypes = floating, outputs = "grad_weight, grad_bias",
  body = [[
    grad_weight = sum(grad * ((x - mean) * rstd));
    grad_bias = sum(grad);
  ]],
  examples = { { grad = { 1, 2 }, x = { 3, 5 }, mean = 1, rstd = 0.5, grad_weight = 5, grad_bias = 3 } },
}

row "rms_norm_backward_affine" {
  doc = [[The derivative of rms_norm_affine by weight, over the axes that rms_norm_affine does not normalize: the sum of grad * x * rstd; rstd,
    with extent 1 along the other axes, is 1 / sqrt(mean(x * x) + eps).]],
  inputs = "grad, x, rstd", dtypes = floating, body = "sum(grad * (x * rstd))", grad = false,
  examples = { { grad = { 1, 2 }, x = { 3, 5 }, rstd = 0.5, out = 6.5 } },
}
