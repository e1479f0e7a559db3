-- SPDX-License-Identifier: Apache-2.0
--
-- Pebble's own op. Its namespace keeps it apart from Quern's.

unary "pebble.mish" {
  doc    = "x times the hyperbolic tangent of softplus(x).",
  dtypes = floating,
  -- tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); beyond 20 it is 1 to the last bit. Of e^x = h^2 the two factors come one
  -- after the other, so that it keeps its digits where the result is subnormal.
  body   = [[
    T h = exp(minimum(x, 20) * 0.5);
    T e = h * h;
    T n = e * (e + 2);
    return x > 20 ? x : x * h * ((e + 2) / (n + 2)) * h;
  ]],
  ulp    = { f32 = 6, f64 = 6 },
  domain = { -20, 30 },
  examples = { { x = 0.0, out = 0.0 } },
}
