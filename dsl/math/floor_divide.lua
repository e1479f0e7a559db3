-- SPDX-License-Identifier: Apache-2.0
--
-- Quotients of floats rounded down (floor_divide) and towards zero (trunc_divide), of the exact quotient.
--
-- With q the rounded quotient, n = floor(q) is the result or the next whole number above it: that where n y is beyond x, which
-- the sign of x - n y, one fma, tells. A whole number is to be a float here: from 2^24 (f64: 2^53) on the one below n is a step
-- of n's bits, before that n - 1. An infinite q stays; so does the zero of an infinite y, for which x - n y is NaN.

func "floor_divide" {
  doc  = "The largest whole number of its dtype that is not above the exact quotient.",
  args = "x, y",
  f32  = [[
    f32 q = x / y;
    f32 n = floor(q);
    f32 r = fma(-n, y, x);
    bool above = (y > 0 ? r < 0 : r > 0) && abs(n) < INFINITY;
    f32 next = abs(n) < 0x1p24 ? n - 1 : as_f32(raw_i32(n) + (n < 0 ? (i32)1 : -1));
    return above ? next : n; ]],
  f64  = [[
    f64 q = x / y;
    f64 n = floor(q);
    f64 r = fma(-n, y, x);
    bool above = (y > 0 ? r < 0 : r > 0) && abs(n) < INFINITY;
    f64 next = abs(n) < 0x1p53 ? n - 1 : as_f64(raw_i64(n) + (n < 0 ? (i64)1 : -1));
    return above ? next : n; ]],
}

func "trunc_divide" {
  doc  = "The largest whole number of its dtype that is not beyond the exact quotient's size, with its sign.",
  args = "x, y",
  f32  = [[
    f32 q = x / y;
    f32 n = floor(abs(q));
    bool beyond = fma(-n, abs(y), abs(x)) < 0 && n < INFINITY;
    f32 next = n < 0x1p24 ? n - 1 : as_f32(raw_i32(n) - 1);
    return copysign(beyond ? next : n, q); ]],
  f64  = [[
    f64 q = x / y;
    f64 n = floor(abs(q));
    bool beyond = fma(-n, abs(y), abs(x)) < 0 && n < INFINITY;
    f64 next = n < 0x1p53 ? n - 1 : as_f64(raw_i64(n) - 1);
    return copysign(beyond ? next : n, q); ]],
}
