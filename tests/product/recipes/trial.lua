-- SPDX-License-Identifier: Apache-2.0
--
-- A user's spec, for t330-recipes: an op of the throwaway primitive.

binary "gap" {
  doc    = "The distance of x and y.",
  dtypes = { "f32", "i32", "u8" },
  body   = [[ absdiff(x, y) ]],
  examples = { { x = 3, y = 5, out = 2 }, { x = 5, y = 3, out = 2 } },
}
