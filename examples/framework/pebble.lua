-- SPDX-License-Identifier: Apache-2.0
--
-- Pebble's own op. Its namespace keeps it apart from Quern's.

unary "pebble.mish" {
  doc    = "x times the hyperbolic tangent of softplus(x).",
  dtypes = floating,
  -- tanh(log(1 + e^x)) = n / (n + 2) with n = e^x (e^x + 2); beyond 20 it is 1 to the last bit of f32
  body   = [[
    T e = exp(minimum(x, 20));
    T n = e * (e + 2);
    return x > 20 ? x : x * (n / (n + 2));
  ]],
  ulp    = { f32 = 6 },
  domain = { -20, 30 },
  examples = { { x = 0.0, out = 0.0 } },
}
