-- SPDX-License-Identifier: Apache-2.0
--
-- Exponentials and logarithms beside exp and log, and cbrt; one entry each. Names as in the array API, else NumPy's.

unary "exp2" {
  doc    = "2 to the x.",
  dtypes = floating,
  body   = { floating = [[ exp2(x) ]], f32 = [[ exp2_near(x) ]], f64 = [[ exp2_near(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -160, 130 },
  grad   = [[
    T large = out > 1 ? out : grad;
    return large * LN2 * (out > 1 ? grad : out); ]],
  grad_ulp = { f32 = 1.7, f64 = 2 },
  examples = { { x = 3.0, out = 8.0 }, { x = -1.0, out = 0.5 } },
}

unary "expm1" {
  doc    = "e to the x, minus 1, accurate near 0.",
  dtypes = floating,
  body   = { floating = [[ expm1(x) ]], f32 = [[ expm1_near(x) ]] },
  narrow = { f16 = [[ expm1_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -20, 90 },
  grad   = [[
    // in two parts where e^x may be too large or too small for what grad makes of it
    T e = exp(abs(x) > 80 ? 0.5 * x : x);
    return grad * e * (abs(x) > 80 ? e : 1); ]],
  grad_ulp = { f32 = 2.6, f64 = 3 },
  examples = { { x = 0.0, out = 0.0 }, { x = -INFINITY, out = -1.0 } },
}

unary "log2" {
  doc    = "The logarithm to base 2; NaN below zero, -inf at zero.",
  dtypes = floating,
  body   = [[ log2(x) ]],
  narrow = { f16 = [[ log2_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 0, 1e30 },
  grad   = [[ grad / x * LOG2E ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 8.0, out = 3.0 }, { x = 0.25, out = -2.0 } },
}

unary "log10" {
  doc    = "The logarithm to base 10; NaN below zero, -inf at zero.",
  dtypes = floating,
  body   = [[ log10(x) ]],
  narrow = { f16 = [[ log10_half(x) ]] },
  ulp    = { f32 = 1, f64 = 1 },
  domain = { 0, 1e30 },
  grad   = [[
    T s = x < 1 ? 4 : 1; // 1 / x may overflow where log10(e) / x does not
    return grad / (s * x) * (s * LOG10E); ]],
  grad_ulp = { f32 = 2, f64 = 1.9 },
  examples = { { x = 1000.0, out = 3.0 }, { x = 1.0, out = 0.0 } },
}

unary "log1p" {
  doc    = "log(1 + x), accurate near 0; NaN below -1, -inf at -1.",
  dtypes = floating,
  body   = [[ log1p(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -1, 1e30 },
  grad   = [[ grad / (1 + x) ]],
  grad_ulp = { f32 = 1.7, f64 = 1.7 },
  examples = { { x = 0.0, out = 0.0 }, { x = -0.0, out = -0.0 }, { x = -1.0, out = -INFINITY } },
}

unary "erfc" {
  doc    = "The complementary error function, 1 - erf(x), accurate where it is small.",
  dtypes = floating,
  body   = [[ erfc(x) ]],
  ulp    = { f32 = 1, f64 = 1 },
  domain = { -6, 12 },
  grad   = [[
    // e^(-x^2), x^2 = h + l; in two parts where it may be too small for what grad makes of it
    T h = x * x;
    T l = h < 2000 ? fma(x, x, -h) : 0;
    T e = exp(h > 80 ? -0.5 * h : -h);
    T c = 1.1283791670955126;
    T p = c * e;
    return -(grad * (p + fma(-l, p, fma(c, e, -p))) * (h > 80 ? e : 1)); ]],
  grad_ulp = { f32 = 4, f64 = 3.7 },
  examples = { { x = 0.0, out = 1.0 }, { x = -INFINITY, out = 2.0 } },
}

unary "cbrt" {
  doc    = "The cube root.",
  dtypes = floating,
  body   = [[ cbrt(x) ]],
  narrow = { f16 = [[ cbrt_half(x) ]] },
  ulp    = { f32 = 0.76, f64 = 0.51 },
  domain = { -1e30, 1e30 },
  grad   = [[ grad / (3 * out * out) ]],
  grad_ulp = { f32 = 2.4, f64 = 2.4 },
  examples = { { x = -27.0, out = -3.0 }, { x = -0.0, out = -0.0 } },
}

binary "logaddexp" {
  doc    = "log(e^x + e^y) without overflow; near its zeros the error is 1 ULP of the larger operand.",
  dtypes = floating,
  body   = [[ logaddexp(x, y) ]],
  ulp    = { f32 = 1, f64 = 1 },
  grad   = [[
    // the shares of e^x and e^y in their sum, by d = x - y, which is d + l unrounded
    T d = x - y;
    T v = d - x;
    T l = (x - (d - v)) - (y + v);
    T e = exp(-abs(d));
    T s = 1 + e;
    T more = quotient_by_sum(1, s, (1 - s) + e);
    T less = quotient_by_sum(e, s, (1 - s) + e);
    T by = abs(l) < 1 ? (d < 0 ? l : -l) : 0;
    T share = d < 0 ? fma(less * more, by, less) : more;
    T rest = d < 0 ? more : fma(less * more, by, less);
    grad_x = grad * share;
    grad_y = grad * rest; ]],
  grad_ulp = { f32 = 3.2, f64 = 3.2 },
  examples = { { x = -INFINITY, y = 1.5, out = 1.5 } },
}

binary "logaddexp2" {
  doc    = "log2(2^x + 2^y) without overflow; near its zeros the error is 1 ULP of the larger operand.",
  dtypes = floating,
  body   = [[ logaddexp2(x, y) ]],
  ulp    = { f32 = 1, f64 = 1 },
  grad   = [[
    // as that of logaddexp
    T d = x - y;
    T v = d - x;
    T l = (x - (d - v)) - (y + v);
    T e = exp2(-abs(d));
    T s = 1 + e;
    T more = quotient_by_sum(1, s, (1 - s) + e);
    T less = quotient_by_sum(e, s, (1 - s) + e);
    T by = abs(l) < 1 ? (d < 0 ? l : -l) * LN2 : 0;
    T share = d < 0 ? fma(less * more, by, less) : more;
    T rest = d < 0 ? more : fma(less * more, by, less);
    grad_x = grad * share;
    grad_y = grad * rest; ]],
  grad_ulp = { f32 = 3.1, f64 = 3.2 },
  examples = { { x = 1.0, y = 1.0, out = 2.0 }, { x = -INFINITY, y = 1.5, out = 1.5 } },
}
