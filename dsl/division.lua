-- SPDX-License-Identifier: Apache-2.0
--
-- Division to whole numbers and its remainders, and divisors, one entry each. Names as in the array API, else NumPy's. Of
-- integers x / 0 and the remainder by 0 are 0, and MIN / -1 wraps to MIN. Quotients beyond the mantissa: in f32 and f64 the next
-- whole number that there is, downwards or towards zero; f16 and bf16 have f32's, rounded to them as every result is.

binary "floor_divide" {
  doc    = "The largest whole number not above x / y (f16, bf16: rounded); infinite where x / y is, zero where y is infinite.",
  dtypes = numeric,
  body   = {
    floating = [[ floor_divide(x, y) ]],
    integer  = [[
      T q = quot(x, y);
      T r = rem(x, y);
      return r != 0 && (r ^ y) < 0 ? q - 1 : q; ]],
  },
  grad   = { x = "0", y = "0" },
  examples = { { x = -7.0, y = 2.0, out = -4.0 }, { x = 1.0, y = 4.0, out = 0.0 },
               { x = 7, y = 2, out = 3 } },
}

binary "trunc_divide" {
  doc    = "The whole number next to the exact x / y towards zero (f16, bf16: rounded), infinite where x / y is.",
  dtypes = numeric,
  body   = {
    floating = [[ trunc_divide(x, y) ]],
    integer  = [[ quot(x, y) ]],
  },
  grad   = { x = "0", y = "0" },
  examples = { { x = -7.0, y = 2.0, out = -3.0 }, { x = 7, y = 2, out = 3 } },
}

binary "remainder" {
  doc    = "What floor_divide leaves: zero or of y's sign, Python's %; the exact value, rounded once.",
  dtypes = numeric,
  body   = {
    floating = [[ remainder(x, y) ]],
    integer  = [[
      T r = rem(x, y);
      return r != 0 && (r ^ y) < 0 ? r + y : r; ]],
  },
  grad   = { x = [[ grad ]], y = [[ abs(out) < INFINITY ? -(grad * floor_divide(x, y)) : out != out ? out : grad ]] },
  grad_ulp = { f32 = 2.7, f64 = 2.6 },
  examples = { { x = -7.0, y = 2.0, out = 1.0 }, { x = 0.0, y = -2.0, out = -0.0 }, { x = 7, y = 2, out = 1 } },
}

binary "fmod" {
  doc    = "What trunc_divide leaves: zero or of x's sign, C's fmod; exact.",
  dtypes = numeric,
  body   = {
    floating = [[ fmod(x, y) ]],
    integer  = [[ rem(x, y) ]],
  },
  grad   = { x = [[ grad ]], y = [[ -(grad * trunc_divide(x, y)) ]] },
  grad_ulp = { f32 = 2.7, f64 = 2.6 },
  examples = { { x = -7.0, y = 2.0, out = -1.0 }, { x = -4.0, y = 2.0, out = -0.0 }, { x = 7, y = 2, out = 1 } },
}

binary "gcd" {
  doc    = "The greatest common divisor of |x| and |y|; of 0 and y it is |y|.",
  dtypes = integer,
  body   = [[ gcd(x, y) ]],
  examples = { { x = 12, y = 18, out = 6 } },
}

binary "lcm" {
  doc    = "The least common multiple of |x| and |y|, 0 if one of them is; what is too large wraps.",
  dtypes = integer,
  body   = [[ abs(quot(x, gcd(x, y))) * abs(y) ]],
  examples = { { x = 4, y = 6, out = 12 } },
}
