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

-- The larger of two numbers has the larger bits as i32, if one of them has no sign, and the smaller bits as u32, if one has a sign; the smaller number the
-- other way round. So a bound is one choice, of i32 or of u32 by its own sign: the other one gets the number that changes nothing. A NaN as a bound is
-- a least one above all.
func "clamped" {
  doc  = "minimum(maximum(x, least), most), the same bits: by four choices of integers, or two of f64.",
  args = "x, least, most",
  f32  = [[
    i32 low = as_i32(least);
    i32 high = as_i32(most);
    bool is_nan = least != least || most != most;
    i32 least_i32 = is_nan ? 0x7fc00000 : low < 0 ? -0x80000000 : low;
    u32 least_u32 = is_nan || low >= 0 ? 0xffffffff : (u32)low;
    i32 most_i32 = is_nan || high < 0 ? 0x7fffffff : high;
    u32 most_u32 = is_nan || high >= 0 ? 0 : (u32)high;
    i32 from_least = (i32)minimum((u32)maximum(raw_i32(x), least_i32), least_u32);
    i32 to_most = (i32)maximum((u32)minimum(from_least, most_i32), most_u32);
    return canonical(x == x ? as_f32(to_most) : NAN); ]],
  -- low and high do not depend on x. x <= low gives least: for least = -0 low is the number before it, so that -0 and +0 stay as
  -- they are; for NaN it is infinity.
  f64  = [[
    f64 low = least != least ? INFINITY : (least == 0 && signbit(least) ? -least_number(x) : least);
    f64 high = most != most ? -INFINITY : (most == 0 && !signbit(most) ? least_number(x) : most);
    f64 y = x <= low ? least : x;
    return y >= high ? most : y; ]],
}

-- The sign of a difference tells the order of the zeros, too: (-0) - (+0) is -0. With the one NaN as x, the difference is a NaN whose sign bit is
-- clear.
func "chosen_number" {
  doc  = "x where d is negative or y is NaN, else y; d is the difference of both. x is a number or the one NaN.",
  args = "x, y, d",
  f32  = [[
    f32 number = raw_i32(d) < 0 ? x : y;
    return canonical(y == y ? number : x); ]],
  f64  = [[
    f64 number = raw_i64(d) < 0 ? x : y;
    return canonical(y == y ? number : x); ]],
}

func "larger_number" {
  doc  = "The larger of x and y; of a NaN and a number, the number; +0 of the two zeros.",
  args = "x, y",
  body = [[
    T a = x == x ? x : NAN;
    return chosen_number(a, y, y - a); ]],
}

func "smaller_number" {
  doc  = "The smaller of x and y; of a NaN and a number, the number; -0 of the two zeros.",
  args = "x, y",
  body = [[
    T a = x == x ? x : NAN;
    return chosen_number(a, y, a - y); ]],
}
