-- SPDX-License-Identifier: Apache-2.0
--
-- An op of one's own. `lua5.4 build.lua check` says what is wrong with such a file, `show acme.swish --spec` what it becomes.
unary "acme.swish" {
  doc    = "x times the logistic function of beta times x.",
  params = { beta = 1.0 },
  dtypes = floating,
  -- s^2 is e^-|beta x|, of which the half exponent keeps the digits where the result is subnormal
  body   = [[
    T z = beta * x;
    T s = exp(abs(z) * -0.5);
    return (z < 0 ? x * s * s : x) / (1 + s * s);
  ]],
  ulp    = { f32 = 5, f64 = 5 },
}
