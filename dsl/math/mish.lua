-- SPDX-License-Identifier: Apache-2.0
--
-- mish(x) = x tanh(log(1 + e^x)). With w = (1 + e^x)^2 the hyperbolic tangent is (w - 1) / (w + 1): by e = e^-|x|, u = e^2
--
--     x >= 0:  n / d = (1 + 2 e) / (n + 2 u)           x < 0:  n / d = (u + 2 e) / (n + 2)
--
-- in which nothing overflows or cancels. e, u, n and d are in two parts; the quotient is corrected and multiplied as in silu.lua.
-- For large |x| it is 1 or e^x.

func "mish" {
  doc  = "x tanh(log(1 + e^x)); its limit at -infinity is -0.",
  args = "x",
  body = [[
    T a = -abs(x);
    T t = exp_steps(a);
    T k = exp_steps_count(t);
    T s = exp_raised(1.0, t);
    T h = exp_sum_hi(a, k);
    T l = exp_sum_lo(a, 0, k);
    T e = (h + l) * s;
    T e_lo = ((h - (h + l)) + l) * s;
    T u = e * e;
    T u_lo = fma(e, e, -u) + 2 * e * e_lo;
    T v = x < 0 ? u : 1;
    T n = fma(2, e, v);
    T n_lo = sum_lost(v, 2 * e, n) + fma(2, e_lo, x < 0 ? u_lo : 0);
    T w = x < 0 ? 2 : 2 * u;
    T d = n + w;
    T d_lo = sum_lost(n, w, d) + fma(2, x < 0 ? 0 : u_lo, n_lo);
    T i = 1 / d;
    T q = n * i;
    T c = ((fma(-q, d, n) - q * d_lo) + n_lo) * i;
    T y = canonical(copysign(fma(x, q, x * c), x)); // of -0 the sum is 0
    rare (!(abs(x) < silu_near(x))) { y = times_sigmoid_far(silu_bounded(x), x, 0); }
    return y; ]],
  ulp  = { f32 = 0.84, f64 = 0.84 },
}

func "mish_slope" {
  doc  = "The derivative of mish, n / d + x 4 e^x (1 + e^x) / (w + 1)^2; its limits are 1 and -0.",
  args = "x",
  body = [[
    T e = exp(-abs(x));
    T u = x < 0 ? e : e * e;
    T n = x < 0 ? fma(e, e, 2 * e) : fma(2, e, 1);
    T w = x < 0 ? 2 : 2 * u;
    T d = n + w;
    T i = quotient_by_sum(1, d, sum_lost(n, w, d));
    T f = i * fma(4 * x * (u * (1 + e)), i, n);
    return abs(x) < 800 ? f : x > 0 ? 1 : x < 0 ? -0.0 : x; ]],
}
