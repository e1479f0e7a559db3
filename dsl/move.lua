-- SPDX-License-Identifier: Apache-2.0
--
-- Ops that move values or set them, without arithmetic. `moves`: NaN payloads and every bit pass unchanged. `casts`: to the dtype
-- of the output; "saturate": where integers would wrap, to the nearest one instead.

op "where" {
  doc    = "x where the condition holds, else y.",
  inputs = "bool condition, x, y",
  dtypes = all,
  moves  = true,
  body   = [[ condition ? x : y ]],
  examples = { { condition = 1, x = 1.0, y = 2.0, out = 1.0 } },
}

op "copy" {
  doc    = "x as it is, every bit.",
  inputs = "x",
  dtypes = all,
  moves  = true,
  body   = [[ x ]],
  examples = { { x = 1.0, out = 1.0 } },
}

op "astype" {
  doc    = "x cast to the dtype of the output: rounded once, float to integer truncated and saturated, NaN to 0, to bool != 0.",
  inputs = "x",
  dtypes = all,
  casts  = true,
  body   = [[ x ]],
  examples = { { x = 1.0, out = 1.0 } },
}

op "full" {
  doc    = "The output filled with one value, cast to its dtype.",
  inputs = "",
  params = { value = 0.0 },
  dtypes = all,
  casts  = true,
  body   = [[ value ]],
  examples = { { out = 0.0 } },
}

op "saturate_cast" {
  doc    = "x cast to the dtype of the output, as astype; integers that do not fit become the nearest that does.",
  inputs = "x",
  dtypes = all,
  casts  = "saturate",
  body   = [[ x ]],
  examples = { { x = 1.0, out = 1.0 } },
}
