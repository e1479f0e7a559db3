-- SPDX-License-Identifier: Apache-2.0
--
-- x = mantissa * 2^exponent, by the bits of x. What is below the normal numbers is made normal first. Zeros, infinities and
-- NaN are told from numbers by one comparison: the bits without the sign, less 1, of 0 are the largest there are.

func "frexp_is_number" {
  doc    = "Whether x is neither zero nor infinite nor NaN.",
  args   = "x",
  result = "bool",
  f32    = [[ (raw_u32(x) & 0x7fffffff) - 1 < 0x7f7fffff ]],
  f64    = [[ (raw_u64(x) & 0x7fffffffffffffff) - 1 < 0x7fefffffffffffff ]],
}

func "frexp_is_small" {
  doc    = "Whether x is zero or subnormal.",
  args   = "x",
  result = "bool",
  f32    = [[ (raw_u32(x) & 0x7fffffff) < 0x00800000 ]],
  f64    = [[ (raw_u64(x) & 0x7fffffffffffffff) < 0x0010000000000000 ]],
}

func "frexp_raised" {
  doc  = "x, or a normal number with the mantissa of x where it is subnormal: 2^24 x (f32), 2^54 x (f64).",
  args = "x",
  f32  = [[ frexp_is_small(x) ? x * 0x1p24 : x ]],
  f64  = [[ frexp_is_small(x) ? x * 0x1p54 : x ]],
}

func "frexp_mantissa" {
  doc  = "x scaled by a power of two into [0.5, 1), with its sign; zeros, infinities and NaN are their own.",
  args = "x",
  f32  = [[
    u32 bits = raw_u32(frexp_raised(x));
    return frexp_is_number(x) ? as_f32((bits & 0x807fffff) | 0x3f000000) : x; ]],
  f64  = [[
    u64 bits = raw_u64(frexp_raised(x));
    return frexp_is_number(x) ? as_f64((bits & 0x800fffffffffffff) | 0x3fe0000000000000) : x; ]],
}

func "frexp_exponent" {
  doc    = "The exponent of that power of two; 0 of zeros, infinities and NaN.",
  args   = "x",
  result = "i32",
  f32    = [[
    u32 bits = raw_u32(frexp_raised(x));
    return frexp_is_number(x) ? (i32)(bits >> 23 & 255) - (frexp_is_small(x) ? (i32)150 : (i32)126) : 0; ]],
  -- In 64 bits up to the end, a single narrowing.
  f64    = [[
    u64 bits = raw_u64(frexp_raised(x));
    u64 biased = frexp_is_number(x) ? (bits >> 52 & 2047) + (frexp_is_small(x) ? (u64)946 : (u64)1000) : 2022;
    return (i32)biased - 2022; ]],
}
