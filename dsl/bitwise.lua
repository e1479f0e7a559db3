-- SPDX-License-Identifier: Apache-2.0
--
-- Operations on the bits of integers and, but for shifts, on bools. Names as in the array API.

binary "bitwise_and" {
  doc    = "The bits that are set in both x and y; of bools, whether both are true.",
  dtypes = integral,
  body   = [[ x & y ]],
  examples = { { x = 1, y = 1, out = 1 } },
}

binary "bitwise_or" {
  doc    = "The bits that are set in x, in y or in both; of bools, whether one is true.",
  dtypes = integral,
  body   = [[ x | y ]],
  examples = { { x = 1, y = 0, out = 1 } },
}

binary "bitwise_xor" {
  doc    = "The bits that are set in one of x and y only; of bools, whether they differ.",
  dtypes = integral,
  body   = [[ x ^ y ]],
  examples = { { x = 1, y = 1, out = 0 } },
}

unary "bitwise_invert" {
  doc    = "Every bit of x the other way round; of a bool, whether it is false.",
  dtypes = integral,
  body   = [[ ~x ]],
  examples = { { x = -1, out = 0 }, { x = -6, out = 5 } },
}

binary "bitwise_left_shift" {
  doc    = "x times 2^y, wrapped: the bits of x, y places up; 0 where y is negative or not below x's width.",
  dtypes = integer,
  body   = [[ x << y ]],
  examples = { { x = 3, y = 4, out = 48 }, { x = 1, y = 64, out = 0 } },
}

binary "bitwise_right_shift" {
  doc    = "x / 2^y, rounded down: the bits of x, y places down; all of them where y is negative or not below x's width.",
  dtypes = integer,
  body   = [[ x >> y ]],
  examples = { { x = 48, y = 4, out = 3 }, { x = -5, y = 1, out = -3 }, { x = 1, y = 64, out = 0 } },
}
