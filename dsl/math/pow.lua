-- SPDX-License-Identifier: Apache-2.0
--
-- x to the y, by e^(y log x).
--
-- The exponent of the exponential, y log x, may be 88 (f32) or 709 (f64), and what counts is its absolute error: to give
-- the result to a fraction of an ULP, log x must have 8 (10) bits more than the type holds. So log x is a sum of two
-- floats, hi + lo, with a relative error of 2^-35 (f32), 2^-65 (f64):
--
--     x = 2^e m,   r = m c - 1,   c near 1/m and so short that r is exact,
--     log x = e ln2 - log c + log(1 + r),      log(1 + r) = r - r^2/2 + r^3 (C3 + C4 r + ...)
--
-- c = 1 around x = 1, so that nothing cancels there. e ln2, -log c, r and r^2/2 are summed exactly, the terms from r^3 on
-- have an ordinary rounding error, which the smallness of r makes harmless.
-- c is of a table, by the five bits below the exponent field of x's bits less those of the lowest m: |r| <= 0.0198. It has so few
-- bits that r has 24 (53) at most, and where it is not 1, |log c| is larger than |r|. Tables of 32 items are looked up in
-- registers (templates/c/headers/kernel_strips.h).
--
-- That is for positive normal x, finite y and results well within the normal range; all else is rare.

constants {
  -- m is in [0.758, 1.516): the bits of the lowest. 1 is in the middle of an interval, so that |m - 1| <= 0.0157 there.
  POW_LOW_BITS_F32 = 0x3f420000,
  POW_LOW_BITS_F64 = 0x3fe8400000000000,

  -- ln2 = HI + LO, HI short (16 and 42 bits) so that e HI is exact; for f32 times 2^-23, see pow_exponent.
  POW_LN2_HI_F32 = 0x1.62e4p-24,
  POW_LN2_LO_F32 = 0x1.7f7d1cp-43,
  POW_LN2_HI_F64 = 0x1.62e42fefa38p-1,
  POW_LN2_LO_F64 = 0x1.ef35793c7673p-45,

  -- Relative error of log(1 + r) 2^-39.8, |r| <= 0.0198.
  POW_F32_C3 =  0x1.555554p-2,
  POW_F32_C4 = -0x1.fffffep-3,
  POW_F32_C5 =  0x1.99d25ep-3,
  POW_F32_C6 = -0x1.558376p-3,

  -- The same for f64: 2^-68.7.
  POW_F64_C3  =  0x1.5555555555553p-2,
  POW_F64_C4  = -0x1.ffffffffffff8p-3,
  POW_F64_C5  =  0x1.99999999b7f2ep-3,
  POW_F64_C6  = -0x1.555555557caedp-3,
  POW_F64_C7  =  0x1.24924571056b8p-3,
  POW_F64_C8  = -0x1.fffff7d8f55b4p-4,
  POW_F64_C9  =  0x1.c7763689e90bcp-4,
  POW_F64_C10 = -0x1.99f264b63a3edp-4,
}

-- c, and -log c = HI + LO; HI is a multiple of 2^-17 (f64: 2^-42), as ln2 HI is, so that e LN2_HI + HI is exact.
tables {
  POW_F32_C = { "f32",
    0x1.5p0, 0x1.48p0, 0x1.4p0, 0x1.3cp0, 0x1.34p0, 0x1.3p0, 0x1.28p0, 0x1.24p0,
    0x1.2p0, 0x1.1cp0, 0x1.14p0, 0x1.1p0, 0x1.0cp0, 0x1.08p0, 0x1.04p0, 0x1p0,
    0x1.fp-1, 0x1.ep-1, 0x1.d4p-1, 0x1.c8p-1, 0x1.b8p-1, 0x1.bp-1, 0x1.a4p-1, 0x1.98p-1,
    0x1.9p-1, 0x1.88p-1, 0x1.7cp-1, 0x1.74p-1, 0x1.6cp-1, 0x1.64p-1, 0x1.5cp-1, 0x1.54p-1,
  },
  POW_F32_HI = { "f32",
    -0x1.1676p-2, -0x1.fb9p-3, -0x1.c9p-3, -0x1.af3cp-3, -0x1.7ab8p-3, -0x1.5ff4p-3, -0x1.2954p-3, -0x1.0d78p-3,
    -0x1.e27p-4, -0x1.a928p-4, -0x1.342p-4, -0x1.f0ap-5, -0x1.774p-5, -0x1.f82p-6, -0x1.fcp-7, 0x0p0,
    0x1.041p-5, 0x1.0858p-4, 0x1.701p-4, 0x1.da7p-4, 0x1.366p-3, 0x1.5bf4p-3, 0x1.95a4p-3, 0x1.d104p-3,
    0x1.f99p-3, 0x1.1178p-2, 0x1.315p-2, 0x1.4718p-2, 0x1.5d5cp-2, 0x1.741ep-2, 0x1.8b64p-2, 0x1.a334p-2,
  },
  POW_F32_LO = { "f32",
    0x1.aa2a2cp-21, -0x1.86d5e4p-19, 0x1.070cacp-20, -0x1.29d018p-20,
    -0x1.20421cp-20, 0x1.f1eb0ep-20, -0x1.2f82p-19, 0x1.832f72p-23,
    -0x1.db8abcp-22, 0x1.2c5b52p-20, 0x1.434f22p-19, -0x1.86008cp-20,
    -0x1.63d8ccp-19, -0x1.361cfp-19, -0x1.5161f8p-20, 0x0p0,
    0x1.76279ep-19, 0x1.8b59e4p-20, -0x1.67a8aap-19, 0x1.3b1c22p-19,
    -0x1.a7f538p-22, 0x1.ad50f6p-25, 0x1.adcf7p-19, -0x1.01b354p-20,
    0x1.c6cb3cp-19, 0x1.d044fcp-19, -0x1.c3c594p-19, 0x1.b84e38p-19,
    -0x1.10535p-21, -0x1.e24e62p-20, -0x1.95dd34p-20, 0x1.00893ep-20,
  },
  POW_F64_C = { "f64",
    0x1.5p0, 0x1.48p0, 0x1.4p0, 0x1.3cp0, 0x1.34p0, 0x1.3p0, 0x1.28p0, 0x1.24p0,
    0x1.2p0, 0x1.1cp0, 0x1.14p0, 0x1.1p0, 0x1.0cp0, 0x1.08p0, 0x1.04p0, 0x1p0,
    0x1.fp-1, 0x1.ep-1, 0x1.d4p-1, 0x1.c8p-1, 0x1.b8p-1, 0x1.bp-1, 0x1.a4p-1, 0x1.98p-1,
    0x1.9p-1, 0x1.88p-1, 0x1.7cp-1, 0x1.74p-1, 0x1.6cp-1, 0x1.64p-1, 0x1.5cp-1, 0x1.54p-1,
  },
  POW_F64_HI = { "f64",
    -0x1.1675cababap-2, -0x1.fb9186d5e4p-3, -0x1.c8ff7c79aap-3, -0x1.af3c94e80cp-3,
    -0x1.7ab890210ep-3, -0x1.5ff3070a7ap-3, -0x1.29552f82p-3, -0x1.0d77e7cd08p-3,
    -0x1.e27076e2bp-4, -0x1.a926d3a4acp-4, -0x1.341d7961bcp-4, -0x1.f0a30c0118p-5,
    -0x1.77458f633p-5, -0x1.f829b0e78p-6, -0x1.fc0a8b0fcp-7, 0x0p0,
    0x1.0415d89e78p-5, 0x1.08598b59e4p-4, 0x1.700d30aeacp-4, 0x1.da72763844p-4,
    0x1.365fcb015ap-3, 0x1.5bf406b544p-3, 0x1.95a5adcf7p-3, 0x1.d1037f2656p-3,
    0x1.f991c6cb3cp-3, 0x1.1178e8227ep-2, 0x1.314f1e1d36p-2, 0x1.4718dc271cp-2,
    0x1.5d5bddf596p-2, 0x1.741d876c68p-2, 0x1.8b639a88b3p-2, 0x1.a33440225p-2,
  },
  POW_F64_LO = { "f64",
    -0x1.8380e731f55c4p-44, 0x1.d572aab993c87p-47, 0x1.7794f689f8434p-45, 0x1.a4e633fcd9066p-52,
    0x1.bdb9072534a58p-45, 0x1.8586f183bebf2p-44, 0x1.5b967f4471dfcp-44, -0x1.cb2cd2ee2f482p-44,
    0x1.a342c2af0003cp-45, -0x1.563650bd22a9cp-44, -0x1.1d0929983761p-44, 0x1.d599e83368e91p-45,
    0x1.181dce586af09p-44, -0x1.980267c7e09e4p-45, -0x1.f1e7cf6d3a69cp-50, 0x0p0,
    -0x1.dddc7f461c516p-44, -0x1.7e5dd7009902cp-46, 0x1.c1e8da99ded32p-49, 0x1.a89401fa71733p-46,
    -0x1.fd3a0afb9691bp-44, -0x1.27023eb68981cp-46, 0x1.7f22858a0ff6fp-47, -0x1.84a7e75b6f6e4p-47,
    -0x1.90d04cd7cc834p-44, 0x1.1ef78ce2d07f2p-44, -0x1.8e27ad3213cb8p-45, 0x1.06c18fb4c14c5p-44,
    -0x1.a0b2a08a465dcp-47, -0x1.13a7b5b11cfa7p-44, -0x1.05ae1e5e7047p-45, -0x1.61cdd40314305p-44,
  },
}

func "pow_bits_f32" {
  doc    = "The bits of x less those of the lowest m: e above, the place of c in its table in the five bits below.",
  args   = "x",
  result = "u32",
  f32    = [[ raw_u32(x) - POW_LOW_BITS_F32 ]],
}

func "pow_bits_f64" {
  doc    = "The same for f64; e biased by 1023.",
  args   = "x",
  result = "u64",
  f64    = [[ raw_u64(x) + (0x3ff0000000000000 - POW_LOW_BITS_F64) ]],
}

func "pow_exponent" {
  doc  = "e of x = 2^e m, m in [0.758, 1.516); f32: times 2^23. For positive normal x.",
  args = "x",
  -- f32: the exponent field is converted in its place, 23 bits up; POW_LN2 is scaled to match. f64: as in log_exponent.
  f32  = [[ (f32)(i32)(pow_bits_f32(x) & 0xff800000) ]],
  f64  = [[ as_f64((pow_bits_f64(x) >> 52) | 0x4330000000000000) - (0x1p52 + 1023.0) ]],
}

func "pow_mantissa" {
  doc  = "m of x = 2^e m, see pow_exponent.",
  args = "x",
  f32  = [[ as_f32(raw_u32(x) - (pow_bits_f32(x) & 0xff800000)) ]],
  f64  = [[ as_f64((pow_bits_f64(x) & 0x000fffffffffffff) + POW_LOW_BITS_F64) ]],
}

func "pow_rest" {
  doc  = "r = m c - 1, exact.",
  args = "x",
  f32  = [[ fma(pow_mantissa(x), lookup(POW_F32_C, pow_bits_f32(x) >> 18), -1.0) ]],
  f64  = [[ fma(pow_mantissa(x), lookup(POW_F64_C, pow_bits_f64(x) >> 47), -1.0) ]],
}

func "pow_base_hi" {
  doc  = "The leading part of e ln2 - log c, exact.",
  args = "e, x",
  f32  = [[ fma(e, POW_LN2_HI_F32, lookup(POW_F32_HI, pow_bits_f32(x) >> 18)) ]],
  f64  = [[ fma(e, POW_LN2_HI_F64, lookup(POW_F64_HI, pow_bits_f64(x) >> 47)) ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_base_lo" {
  doc  = "The small part of e ln2 - log c.",
  args = "e, x",
  f32  = [[ fma(e, POW_LN2_LO_F32, lookup(POW_F32_LO, pow_bits_f32(x) >> 18)) ]],
  f64  = [[ fma(e, POW_LN2_LO_F64, lookup(POW_F64_LO, pow_bits_f64(x) >> 47)) ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_cubes" {
  doc  = "C3 r + C4 r^2 + ..., where log(1+r) = r - r^2/2 + r^2 pow_cubes(r).",
  args = "r",
  f32  = [[ fma(r, POW_F32_C3, r * r * fma(r, fma(r, POW_F32_C6, POW_F32_C5), POW_F32_C4)) ]],
  f64  = [[
    f64 z = r * r;
    f64 even = fma(z, fma(z, fma(z, POW_F64_C10, POW_F64_C8), POW_F64_C6), POW_F64_C4);
    f64 odd = fma(z, fma(z, POW_F64_C9, POW_F64_C7), POW_F64_C5);
    return fma(r, POW_F64_C3, z * fma(r, odd, even)); ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_log_hi" {
  doc  = "The leading part of log x, x = 2^e m: e ln2 - log c + r - r^2/2, rounded.",
  args = "e, x",
  body = [[
    T r = pow_rest(x);
    return fma(-0.5 * r, r, pow_base_hi(e, x) + r); ]],
}

func "pow_log_lo" {
  doc  = "What pow_log_hi leaves out of log x: at most 2^-11 of it (f32: 2^-12.7).",
  args = "e, x",
  -- Exact sums as in log_lo: the base is 0 or larger than r.
  body = [[
    T r = pow_rest(x);
    T k = pow_base_hi(e, x);
    T u = k + r;
    T ul = r - (u - k);
    T v = fma(-0.5 * r, r, u);
    T vl = fma(-0.5 * r, r, u - v);
    return fma(r * r, pow_cubes(r), pow_base_lo(e, x) + ul) + vl; ]],
}

func "pow_arg_hi" {
  doc  = "y log x as hi + lo: hi.",
  args = "e, x, y",
  body = [[ y * pow_log_hi(e, x) ]],
}

func "pow_arg_lo" {
  doc  = "y log x as hi + lo: lo, at most 2^-11 of it (f32: 2^-12.7).",
  args = "e, x, y",
  body = [[
    T h = pow_log_hi(e, x);
    return fma(y, pow_log_lo(e, x), fma(y, h, -(y * h))); ]],
}

func "pow_any" {
  doc  = "x to the y for all x and y; pow takes it where its own range is left.",
  args = "x, y",
  f32  = [[
    f32 a = abs(x);
    bool tiny = a < 0x1p-126;
    f32 n = tiny ? a * 0x1p23 : a;
    f32 e = pow_exponent(n) - (tiny ? 0x1.7p27 : 0.0);
    f32 h = pow_arg_hi(e, n, y);
    f32 l = pow_arg_lo(e, n, y);
    f32 w = exp_two_part(h + l, (h - (h + l)) + l);
    // Out of range (or y infinite, or y log x): the low part may be anything there. 104.5: all below 103.98 + 2^-11 h is 0.
    f32 z = h > 89.0 ? INFINITY : (h < -104.5 ? 0.0 : w);
    return pow_special(x, y, z); ]],
  f64  = [[
    f64 a = abs(x);
    bool tiny = a < 0x1p-1022;
    f64 n = tiny ? a * 0x1p52 : a;
    f64 e = pow_exponent(n) - (tiny ? 52.0 : 0.0);
    f64 h = pow_arg_hi(e, n, y);
    f64 l = pow_arg_lo(e, n, y);
    f64 w = exp_two_part(h + l, (h - (h + l)) + l);
    f64 z = h > 710.0 ? INFINITY : (h < -746.0 ? 0.0 : w);
    return pow_special(x, y, z); ]],
}

func "pow_special" {
  doc  = "The result of pow(x, y), given z = |x|^y good for finite nonzero x: C Annex F.10.4.4.",
  args = "x, y, z",
  body = [[
    T a = abs(x);
    // |x| = 0 or inf: y < 0 swaps the two. |x| = 1 with an infinite y would be inf * 0.
    T z1 = (a == 0.0 || a == INFINITY) ? (y < 0.0 ? 1.0 / a : a) : z;
    T z2 = a == 1.0 ? 1.0 : z1;
    // A negative x (-0 too) gives its sign to odd powers; y is even when y/2 is an integer, as all y >= 2^24 (2^53) are.
    bool integer = trunc(y) == y;
    bool odd = integer && trunc(0.5 * y) != 0.5 * y;
    T z3 = odd ? copysign(z2, x) : z2;
    T z4 = (x < 0.0 && x > -INFINITY && !integer) ? NAN : z3;
    T z5 = (x != x || y != y) ? NAN : z4;
    return (x == 1.0 || y == 0.0) ? 1.0 : z5; ]],
}

func "pow" {
  doc  = "x to the y.",
  args = "x, y",
  -- Between the bounds of y log x the result is normal and 2^n one factor: its bits are added to the exponent field.
  f32  = [[
    f32 e = pow_exponent(x);
    f32 h = pow_arg_hi(e, x, y);
    f32 z = canonical(exp_normal(h, pow_arg_lo(e, x, y)));
    rare (log_beyond(x) || !(abs(h) < 87.0)) { z = pow_any(x, y); }
    return z; ]],
  f64  = [[
    f64 e = pow_exponent(x);
    f64 h = pow_arg_hi(e, x, y);
    f64 z = canonical(exp_normal(h, pow_arg_lo(e, x, y)));
    rare (log_beyond(x) || !(abs(h) < 708.0)) { z = pow_any(x, y); }
    return z; ]],
  -- Measured over 2 * 10^9 (f32) and 10^8 (f64) points, most of them where an interval of the table begins: 0.921 and 0.848.
  ulp = { f32 = 0.95, f64 = 0.9 },
  derivation = "tools/fit/pow.sollya",
}

func "pow_slope" {
  doc  = "The derivative of p = x^y by x, y p / x. Of y, p and 1 / x those two go first that stay where the result is.",
  args = "x, y, p",
  body = [[
    T q = y / x;
    T near = y > 0.25 && y <= 4.0 ? p / x * y : abs(q) == INFINITY ? p * y / x : q * p;
    T far = abs(y - 0.5) < 1.5 ? p / x * y : q * p;
    return x == 0.0 || p == 0.0 || abs(p) == INFINITY ? y * pow(x, y - 1.0) : abs(x) > 1.0 ? far : near; ]],
}
