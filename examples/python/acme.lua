-- SPDX-License-Identifier: Apache-2.0
--
-- An op of one's own. `lua5.4 build.lua check` says what is wrong with such a file, `show acme.swish --spec` what it becomes.
unary "acme.swish" {
  doc    = "x times the logistic function of beta times x.",
  params = { beta = 1.0 },
  dtypes = floating,
  body   = [[ x * sigmoid(beta * x) ]],
  ulp    = { f32 = 4, f64 = 4 },
}
