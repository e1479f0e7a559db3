-- SPDX-License-Identifier: Apache-2.0
--
-- Comparisons and logic: bool results of promoted operands. NaN compares false, and is true as a condition.

binary "less" {
  doc    = "Whether x < y.",
  dtypes = all,
  result = "bool",
  body   = [[ x < y ]],
  examples = { { x = 1.0, y = 2.0, out = 1 } },
}

binary "less_equal" {
  doc    = "Whether x <= y.",
  dtypes = all,
  result = "bool",
  body   = [[ x <= y ]],
  examples = { { x = 2.0, y = 2.0, out = 1 } },
}

binary "greater" {
  doc    = "Whether x > y.",
  dtypes = all,
  result = "bool",
  body   = [[ x > y ]],
  examples = { { x = 2.0, y = 1.0, out = 1 } },
}

binary "greater_equal" {
  doc    = "Whether x >= y.",
  dtypes = all,
  result = "bool",
  body   = [[ x >= y ]],
  examples = { { x = 1.0, y = 2.0, out = 0 } },
}

binary "equal" {
  doc    = "Whether x == y.",
  dtypes = all,
  result = "bool",
  body   = [[ x == y ]],
  examples = { { x = 1.0, y = 1.0, out = 1 } },
}

binary "not_equal" {
  doc    = "Whether x != y; true if either is NaN.",
  dtypes = all,
  result = "bool",
  body   = [[ x != y ]],
  examples = { { x = 1.0, y = 1.0, out = 0 }, { x = NAN, y = NAN, out = 1 } },
}

binary "logical_and" {
  doc    = "Whether x and y are both true; a number is true unless it is 0.",
  dtypes = all,
  result = "bool",
  body   = [[ x && y ]],
  examples = { { x = 2.0, y = NAN, out = 1 }, { x = 1.0, y = -0.0, out = 0 } },
}

binary "logical_or" {
  doc    = "Whether x or y is true; a number is true unless it is 0.",
  dtypes = all,
  result = "bool",
  body   = [[ x || y ]],
  examples = { { x = 0.0, y = 2.0, out = 1 }, { x = 0.0, y = -0.0, out = 0 } },
}

binary "logical_xor" {
  doc    = "Whether one of x and y is true and the other is not; a number is true unless it is 0.",
  dtypes = all,
  result = "bool",
  body   = [[ !x != !y ]],
  examples = { { x = 2.0, y = 3.0, out = 0 }, { x = 2.0, y = 0.0, out = 1 } },
}

unary "logical_not" {
  doc    = "Whether x is not true; a number is true unless it is 0.",
  dtypes = all,
  result = "bool",
  body   = [[ !x ]],
  examples = { { x = 0.0, out = 1 }, { x = NAN, out = 0 } },
}
