-- Comparisons: bool results of promoted operands. NaN compares false.

binary "less" {
  doc    = "Whether x < y.",
  dtypes = all,
  result = "bool",
  body   = [[ x < y ]],
  examples = { { x = 1.0, y = 2.0, out = 1 } },
}

binary "equal" {
  doc    = "Whether x == y.",
  dtypes = all,
  result = "bool",
  body   = [[ x == y ]],
  examples = { { x = 1.0, y = 1.0, out = 1 } },
}
