-- SPDX-License-Identifier: Apache-2.0
--
-- The demo's own op: a tone curve as films have it. Bright light is compressed instead of cut off.

unary "demo.filmic" {
  doc    = "A film's tone curve: a quotient of two parabolas that runs from 0 to 1.",
  params = { exposure = 1.0 },
  dtypes = floating,
  body   = [[
    T v = minimum(maximum(exposure * x, 0), 100); // beyond 8 it is 1
    T y = v * (2.51 * v + 0.03) / (v * (2.43 * v + 0.59) + 0.14);
    return minimum(maximum(y, 0), 1);
  ]],
  ulp    = { f32 = 8, f64 = 8 },
  domain = { 0, 10 },
  examples = { { x = 0.0, out = 0.0 } },
}
