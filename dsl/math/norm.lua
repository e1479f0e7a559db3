-- SPDX-License-Identifier: Apache-2.0
--
-- Powers of two by which the elements of a vector are scaled before they are squared, so that their squares neither overflow nor
-- underflow: by the exponent of the largest |x|, m. Of what is no number both mean nothing.

func "norm_exponent" {
  doc    = "The biased exponent of m, within 1 and 2045.",
  args   = "f64 m",
  result = "i64",
  body   = [[
    i64 biased = (i64)(raw_u64(m) >> 52 & 2047);
    return biased < 1 ? 1 : biased > 2045 ? 2045 : biased;
  ]],
}

func "norm_scale" {
  doc    = "2^-e for m of exponent e, of which 2^e is a normal number, too.",
  args   = "f64 m",
  result = "f64",
  body   = [[ as_f64((u64)(2046 - norm_exponent(m)) << 52) ]],
}

func "norm_unscale" {
  doc    = "1 / norm_scale(m), exactly.",
  args   = "f64 m",
  result = "f64",
  body   = [[ as_f64((u64)norm_exponent(m) << 52) ]],
}
