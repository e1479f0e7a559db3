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

func "least_number" {
  doc  = "The least positive number of x's type.",
  args = "x",
  f32  = [[ as_f32((u32)1) ]],
  f64  = [[ as_f64((u64)1) ]],
}

func "clamped" {
  doc  = "minimum(maximum(x, least), most), the same bits by two choices.",
  args = "x, least, most",
  -- low and high do not depend on x. x <= low gives least: for least = -0 low is the number before it, so that -0 and +0 stay as
  -- they are; for NaN it is infinity.
  body = [[
    T low = least != least ? INFINITY : (least == 0 && signbit(least) ? -least_number(x) : least);
    T high = most != most ? -INFINITY : (most == 0 && !signbit(most) ? least_number(x) : most);
    T y = x <= low ? least : x;
    return y >= high ? most : y; ]],
}
