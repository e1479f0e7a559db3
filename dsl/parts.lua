-- SPDX-License-Identifier: Apache-2.0
--
-- Ops that take numbers apart and put them together, one entry each. Names as in NumPy. An op with `outputs` has several: its
-- body assigns them; in an expression NAME.OUTPUT(x) is one of them.

op "modf" {
  doc     = "The fraction of x, with its sign, and the integer part, truncated: x = fraction + integral.",
  inputs  = "x",
  outputs = "fraction, integral",
  dtypes  = floating,
  body    = [[
    integral = trunc(x);
    fraction = copysign(abs(x) == INFINITY ? 0 : x - integral, x);
  ]],
  examples = { { x = 3.25, fraction = 0.25, integral = 3.0 }, { x = -INFINITY, fraction = -0.0, integral = -INFINITY } },
}

op "frexp" {
  doc     = "x = mantissa * 2^exponent, with the mantissa in [0.5, 1); zeros, infinities and NaN are their own, with exponent 0.",
  inputs  = "x",
  outputs = "mantissa, i32 exponent",
  dtypes  = floating,
  body    = [[
    mantissa = frexp_mantissa(x);
    exponent = frexp_exponent(x);
  ]],
  examples = { { x = 8.0, mantissa = 0.5, exponent = 4 }, { x = -0.0, mantissa = -0.0, exponent = 0 } },
}

op "divmod" {
  doc     = "floor_divide and remainder at once: x = quotient * y + remainder, but for rounding.",
  inputs  = "x, y",
  outputs = "quotient, remainder",
  dtypes  = numeric,
  body    = {
    floating = [[
      quotient = floor_divide(x, y);
      remainder = remainder(x, y);
    ]],
    integer  = [[
      T q = quot(x, y);
      T r = rem(x, y);
      bool is_above = r != 0 && (r ^ y) < 0;
      quotient = is_above ? q - 1 : q;
      remainder = is_above ? r + y : r;
    ]],
  },
  examples = { { x = -7.0, y = 2.0, quotient = -4.0, remainder = 1.0 }, { x = 7, y = 2, quotient = 3, remainder = 1 } },
}

binary "ldexp" {
  doc    = "x times 2 to the y, rounded once; y is a whole number, or rounded to one.",
  counts = "y",
  dtypes = floating,
  body   = [[ ldexp(x, y) ]],
  narrow = { i32 = [[ ldexp_whole(x, y) ]] },
  grad   = { x = [[ ldexp(grad, y) ]] },
  examples = { { x = 0.75, y = 3.0, out = 6.0 }, { x = -0.0, y = INFINITY, out = -0.0 } },
}

-- f16 and bf16 have neighbours of their own, with 13 and 16 bits less than those of f32; subnormal ones of f16 are evenly spaced.
binary "nextafter" {
  doc    = "The next number of the dtype after x towards y; y where they are equal; NaN if either is.",
  dtypes = floating,
  body   = {
    f32 = [[
      i32 step = (x < y) == (x > 0) ? (i32)1 : (i32)-1;
      f32 next = x == 0 ? copysign(as_f32((i32)1), y) : as_f32(as_i32(x) + step);
      return x == y ? y : x == x && y == y ? next : NAN;
    ]],
    f64 = [[
      i64 step = (x < y) == (x > 0) ? (i64)1 : (i64)-1;
      f64 next = x == 0 ? copysign(as_f64((i64)1), y) : as_f64(as_i64(x) + step);
      return x == y ? y : x == x && y == y ? next : NAN;
    ]],
    bf16 = [[
      i32 step = (x < y) == (x > 0) ? (i32)0x10000 : (i32)-0x10000;
      f32 next = x == 0 ? copysign(as_f32((i32)0x10000), y) : as_f32(as_i32(x) + step);
      return x == y ? y : x == x && y == y ? next : NAN;
    ]],
    f16 = [[
      bool grows = (x < y) == (x > 0);
      f32 a = abs(x);
      f32 even = grows ? a + 0x1p-24 : a - 0x1p-24;
      f32 apart = as_f32(as_i32(a) + (grows ? (i32)0x2000 : (i32)-0x2000));
      f32 next = a < 0x1p-14 || (a == 0x1p-14 && !grows) ? even : a == INFINITY ? 65504 : apart;
      f32 away = x == 0 ? copysign(0x1p-24, y) : copysign(next, x);
      return x == y ? y : x == x && y == y ? away : NAN;
    ]],
  },
  grad   = false, -- a function of the bits
  examples = { { x = 0.0, y = 0.0, out = 0.0 }, { x = INFINITY, y = INFINITY, out = INFINITY } },
}

unary "spacing" {
  doc    = "How far x is from the next number of the dtype away from zero, with x's sign; of zero +; NaN of infinity and NaN.",
  dtypes = floating,
  body   = {
    f32 = [[
      f32 a = abs(x);
      f32 d = as_f32(as_i32(a) + 1) - a;
      return x < 0 ? -d : d;
    ]],
    f64 = [[
      f64 a = abs(x);
      f64 d = as_f64(as_i64(a) + 1) - a;
      return x < 0 ? -d : d;
    ]],
    bf16 = [[
      f32 a = abs(x);
      f32 d = as_f32(as_i32(a) + 0x10000) - a;
      return x < 0 ? -d : d;
    ]],
    f16 = [[
      f32 a = abs(x);
      f32 d = a < 0x1p-14 ? 0x1p-24 : as_f32(as_i32(a) + 0x2000) - a;
      f32 finite = a == 65504 ? INFINITY : d;
      return x < 0 ? -finite : finite;
    ]],
  },
  grad   = false, -- a function of the bits
  examples = { { x = INFINITY, out = NAN } },
}

unary "bitwise_count" {
  doc    = "How many bits of the absolute value of x are 1, a u8.",
  dtypes = integer,
  result = "u8",
  body   = {
    i8 = [[ (u8)count_bits(abs(x)) ]], i16 = [[ (u8)count_bits(abs(x)) ]],
    i32 = [[ (u8)count_bits(abs(x)) ]], i64 = [[ (u8)count_bits(abs(x)) ]],
    integer = [[ (u8)count_bits(x) ]],
  },
  examples = { { x = 7, out = 3 } },
}

binary "float_power" {
  doc    = "x to the power y, computed and given in f64 whatever the inputs.",
  dtypes = "f64",
  body   = [[ pow(x, y) ]],
  ulp    = { f64 = 1 },
  grad   = { -- as that of pow
    x = [[ y == 0 ? 0 : grad * pow_slope(x, y, out) ]],
    y = [[ x == 0 && y >= 0 ? 0 : grad * (out * log(x)) ]],
  },
  grad_ulp = { f64 = 2.6 },
  examples = { { x = 2.0, y = 10.0, out = 1024.0 } },
}
