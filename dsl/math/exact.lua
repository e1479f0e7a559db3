-- SPDX-License-Identifier: Apache-2.0
--
-- Arithmetic without error, or with less: results and operands in two parts.

func "sum_lost" {
  doc  = "What the rounding of s = a + b lost, for a and b of any sizes: a + b = s + sum_lost, exactly.",
  args = "a, b, s",
  body = [[
    T c = s - a;
    return (a - (s - c)) + (b - c); ]],
}

func "quotient_by_sum" {
  doc  = "n / (d + dl), dl at most some ULPs of d: the quotient by d, corrected by its remainder; half a ULP and a little.",
  args = "n, d, dl",
  body = [[
    T i = 1 / d;
    T q = n * i;
    return fma(fma(-q, d, n) - q * dl, i, q); ]],
}
