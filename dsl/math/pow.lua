-- x to the y, by e^(y log x).
--
-- The exponent of the exponential, y log x, may be 88 (f32) or 709 (f64), and what counts is its absolute error: to give
-- the result to a fraction of an ULP, log x must have 8 (10) bits more than the type holds. So log x is a sum of two
-- floats, hi + lo, with a relative error of 2^-32 (f32), 2^-65 (f64):
--
--     x = 2^e m,   r = m c - 1,   c near 1/m and so short that r is exact,
--     log x = e ln2 - log c + log(1 + r),      log(1 + r) = r - r^2/2 + r^3 (C3 + C4 r + ...)
--
-- c = 1 around x = 1, so that nothing cancels there. e ln2, -log c, r and r^2/2 are summed exactly, the terms from r^3 on
-- have an ordinary rounding error, which the smallness of r makes harmless (f32: nearly, see pow_log_b).
--     f32: four values of c, picked by comparisons: |r| <= 0.105. c is a multiple of 1/8 (m < 1) or 1/16 (m >= 1), so that
--          m c is a multiple of 2^-27, and r = m c - 1 < 1/8 has 24 bits at most.
--     f64: c = j/128, j from a cubic approximation of 1/m rounded to an integer, which is also the index of -log c
--          in a table: |r| <= 0.0057 for m < 1, 0.0079 for m >= 1, multiples of 2^-60 and 2^-59: 53 bits at most.
--
-- That is for positive normal x, finite y and results well within the normal range; all else is rare.

constants {
  -- m is in [0.8, 1.6) for f32: the bits of 0.8.
  POW_LOW_BITS_F32 = 0x3f4ccccd,

  -- ln2 = HI + LO, HI short (16 and 42 bits) so that e HI is exact; for f32 times 2^-23, see pow_exponent.
  POW_LN2_HI_F32 = 0x1.62e4p-24,
  POW_LN2_LO_F32 = 0x1.7f7d1cp-43,
  POW_LN2_HI_F64 = 0x1.62e42fefa38p-1,
  POW_LN2_LO_F64 = 0x1.ef35793c7673p-45,

  -- -log c = HI + LO, HI a multiple of 2^-16 as that of ln2 is, so that e LN2_HI + HI is exact.
  -- c = 9/8 for m in [0.8, 0.9), 1 up to 1.104, 13/16 up to 1.33, 11/16 up to 1.6.
  POW_9_8_HI   = -0x1.e27p-4,
  POW_9_8_LO   = -0x1.db8abcp-22,
  POW_13_16_HI =  0x1.a94p-3,
  POW_13_16_LO = -0x1.2c3752p-19,
  POW_11_16_HI =  0x1.7fbp-2,
  POW_11_16_LO = -0x1.7109fap-20,

  -- Relative error of log(1 + r) 2^-35.0, |r| <= 0.1046.
  POW_F32_C3 =  0x1.555558p-2,
  POW_F32_C4 = -0x1.000004p-2,
  POW_F32_C5 =  0x1.999p-3,
  POW_F32_C6 = -0x1.55498ep-3,
  POW_F32_C7 =  0x1.29d16p-3,
  POW_F32_C8 = -0x1.05733cp-3,

  -- A cubic near 1/m for m in [sqrt(1/2), sqrt(2)], error 0.0018, and the shifter 3/2 * 2^45, whose last bit is worth 1/128.
  POW_F64_G0 =  0x1.03e1db338ba14p2,
  POW_F64_G1 = -0x1.83d2cc2553565p2,
  POW_F64_G2 =  0x1.f83e028c26bfbp1,
  POW_F64_G3 = -0x1.e24cc82517e1bp-1,
  POW_F64_SHIFT = 0x1.8p45,

  -- Relative error of log(1 + r) 2^-65.8, |r| <= 0.0079.
  POW_F64_C3 =  0x1.55555555555afp-2,
  POW_F64_C4 = -0x1.000000000007cp-2,
  POW_F64_C5 =  0x1.9999998901edbp-3,
  POW_F64_C6 = -0x1.55555542b84e3p-3,
  POW_F64_C7 =  0x1.249946768b683p-3,
  POW_F64_C8 = -0x1.0006e14b3248dp-3,
}

-- -log(j / 128) = HI + LO at index j mod 128, j from 90 to 181; HI a multiple of 2^-42, as ln2 HI is.
tables {
  POW_F64_HI = { "f64",
    0x0p0, -0x1.fe02a6b1p-8, -0x1.fc0a8b0fcp-7, -0x1.7b91b07d6p-6,
    -0x1.f829b0e78p-6, -0x1.39e87b9fe8p-5, -0x1.77458f633p-5, -0x1.b42dd71198p-5,
    -0x1.f0a30c0118p-5, -0x1.16536eea38p-4, -0x1.341d7961bcp-4, -0x1.51b073f06p-4,
    -0x1.6f0d28ae58p-4, -0x1.8c345d6318p-4, -0x1.a926d3a4acp-4, -0x1.c5e548f5bcp-4,
    -0x1.e27076e2bp-4, -0x1.fec9131dcp-4, -0x1.0d77e7cd08p-3, -0x1.1b72ad52f6p-3,
    -0x1.29552f82p-3, -0x1.371fc201e8p-3, -0x1.44d2b6ccb8p-3, -0x1.526e5e3a1cp-3,
    -0x1.5ff3070a7ap-3, -0x1.6d60fe719ep-3, -0x1.7ab890210ep-3, -0x1.87fa06520cp-3,
    -0x1.9525a9cf46p-3, -0x1.a23bc1fe2cp-3, -0x1.af3c94e80cp-3, -0x1.bc286742d8p-3,
    -0x1.c8ff7c79aap-3, -0x1.d5c216b4fcp-3, -0x1.e27076e2bp-3, -0x1.ef0adcbdc6p-3,
    -0x1.fb9186d5e4p-3, -0x1.0402594b4dp-2, -0x1.0a324e2739p-2, -0x1.1058bf9ae5p-2,
    -0x1.1675cababap-2, -0x1.1c898c169ap-2, -0x1.22941fbcf8p-2, -0x1.2895a13de8p-2,
    -0x1.2e8e2bae12p-2, -0x1.347dd9a988p-2, -0x1.3a64c55694p-2, -0x1.404308686ap-2,
    -0x1.4618bc21c6p-2, -0x1.4be5f95778p-2, -0x1.51aad872ep-2, -0x1.5767717456p-2,
    -0x1.5d1bdbf581p-2, -0x1.62c82f2b9cp-2, -0x1.686c81e9b1p-2, -0x1.6e08eaa2bap-2,
    -0x1.739d7f6bbdp-2, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x1.7fafa3bd81p-2, 0x1.741d876c68p-2, 0x1.68ac83e9c7p-2, 0x1.5d5bddf596p-2,
    0x1.522ae0738ap-2, 0x1.4718dc271cp-2, 0x1.3c25277333p-2, 0x1.314f1e1d36p-2,
    0x1.269621134ep-2, 0x1.1bf99635a7p-2, 0x1.1178e8227ep-2, 0x1.07138604d6p-2,
    0x1.f991c6cb3cp-3, 0x1.e530effe72p-3, 0x1.d1037f2656p-3, 0x1.bd087383bep-3,
    0x1.a93ed3c8aep-3, 0x1.95a5adcf7p-3, 0x1.823c16551ap-3, 0x1.6f0128b756p-3,
    0x1.5bf406b544p-3, 0x1.4913d8333cp-3, 0x1.365fcb015ap-3, 0x1.23d712a49cp-3,
    0x1.1178e8227ep-3, 0x1.fe89139dbcp-4, 0x1.da72763844p-4, 0x1.b6ac88dad4p-4,
    0x1.9335e5d594p-4, 0x1.700d30aeacp-4, 0x1.4d3115d208p-4, 0x1.2aa04a447p-4,
    0x1.08598b59e4p-4, 0x1.ccb73cddd8p-5, 0x1.894aa149f8p-5, 0x1.466aed42ep-5,
    0x1.0415d89e78p-5, 0x1.8492528c9p-6, 0x1.020565893p-6, 0x1.010157588p-7,
  },
  POW_F64_LO = { "f64",
    0x0p0, -0x1.9e23f0dda40e4p-46, -0x1.f1e7cf6d3a69cp-50, 0x1.3b955b602ace4p-44,
    -0x1.980267c7e09e4p-45, -0x1.eafd480ad9015p-44, 0x1.181dce586af09p-44, 0x1.c827ae5d6704cp-46,
    0x1.d599e83368e91p-45, 0x1.47c5e768fa309p-46, -0x1.1d0929983761p-44, -0x1.83f69278e686ap-44,
    0x1.4b4641b664613p-44, -0x1.b20f5acb42a66p-44, -0x1.563650bd22a9cp-44, -0x1.d0c57585fbe06p-46,
    0x1.a342c2af0003cp-45, 0x1.54555d1ae6607p-44, -0x1.cb2cd2ee2f482p-44, -0x1.e80a41811a396p-45,
    0x1.5b967f4471dfcp-44, -0x1.ee8779b2d8abcp-44, 0x1.70cc16135783cp-46, 0x1.790ba37fc5238p-44,
    0x1.8586f183bebf2p-44, 0x1.bc6e557134767p-44, 0x1.bdb9072534a58p-45, -0x1.22120401202fcp-44,
    0x1.297137d9f158fp-44, 0x1.539cd91dc9f0bp-44, 0x1.a4e633fcd9066p-52, -0x1.9ac53f39d121cp-44,
    0x1.7794f689f8434p-45, 0x1.1ba91bbca681bp-45, 0x1.a342c2af0003cp-44, 0x1.b26b79c86af24p-45,
    0x1.d572aab993c87p-47, -0x1.036b89ef42d7fp-48, -0x1.c6bee7ef4030ep-47, 0x1.4ab9d817d52cdp-44,
    -0x1.8380e731f55c4p-44, 0x1.81410e5c62affp-44, 0x1.a6976f5eb0963p-44, -0x1.a8d7ad24c13fp-44,
    0x1.67b1e99b72bd8p-45, 0x1.5594dd4c58092p-45, -0x1.7a71cbcd735dp-44, -0x1.f8ef43049f7d3p-44,
    0x1.3d82f484c84ccp-46, 0x1.d7c92cd9ad824p-44, 0x1.f4bd8db0a7cc1p-44, 0x1.64ead9524d7cap-44,
    0x1.8d6bdc9c7c238p-44, -0x1.e54bdbd7c8a98p-44, -0x1.2bb110af84054p-44, -0x1.e38c139318d71p-46,
    -0x1.a7389314feb5p-52, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x0p0, 0x0p0, 0x0p0, 0x0p0,
    0x1.46fb79bf6d4cbp-44, -0x1.13a7b5b11cfa7p-44, -0x1.7af966c548a3p-44, -0x1.a0b2a08a465dcp-47,
    0x1.ebe708164c759p-45, 0x1.06c18fb4c14c5p-44, 0x1.83b54b606bd5cp-46, -0x1.8e27ad3213cb8p-45,
    -0x1.1b61f10522625p-44, -0x1.1ac89575c2125p-44, 0x1.1ef78ce2d07f2p-44, -0x1.e76324e912b17p-44,
    -0x1.90d04cd7cc834p-44, -0x1.fdbdbb13f7c18p-44, -0x1.84a7e75b6f6e4p-47, -0x1.d4bc4595412b6p-45,
    -0x1.8724350562169p-45, 0x1.7f22858a0ff6fp-47, 0x1.e0ddb9a631e83p-46, 0x1.577390d31ef0fp-44,
    -0x1.27023eb68981cp-46, -0x1.53e43558124c4p-44, -0x1.fd3a0afb9691bp-44, 0x1.00d238fd3df5cp-46,
    0x1.1ef78ce2d07f2p-45, 0x1.56594d82f7a82p-44, 0x1.a89401fa71733p-46, 0x1.b1bdff50225c7p-44,
    0x1.3115c3abd47dap-45, 0x1.c1e8da99ded32p-49, -0x1.53a2582f4e1efp-48, 0x1.7a48ba8b1cb41p-44,
    -0x1.7e5dd7009902cp-46, 0x1.965c36e09f5fep-44, 0x1.9a19a8be97661p-44, -0x1.c167375bdfd28p-45,
    -0x1.dddc7f461c516p-44, -0x1.aa0ba325a0c34p-45, 0x1.611d27c8e8417p-44, 0x1.bce251998b506p-44,
  },
}

func "pow_exponent" {
  doc  = "e of x = 2^e m, m in [0.8, 1.6) (f32, and e times 2^23) or [sqrt(1/2), sqrt(2)) (f64). For positive normal x.",
  args = "x",
  -- f32: the exponent field is converted where it stands, 23 places up; POW_LN2 is scaled to match.
  f32  = [[
    i32 k = (raw_i32(x) - POW_LOW_BITS_F32) & 0xff800000;
    return (f32)k; ]],
  f64  = [[ log_exponent(x) ]],
}

func "pow_mantissa" {
  doc  = "m of x = 2^e m, see pow_exponent.",
  args = "x",
  f32  = [[
    i32 b = raw_i32(x);
    i32 k = (b - POW_LOW_BITS_F32) & 0xff800000;
    return as_f32(b - k); ]],
  f64  = [[ log_mantissa(x) ]],
}

func "pow_shifted" {
  doc  = "c = j / 128, near 1/m, added to the shifter: j is in the low bits.",
  args = "m",
  f64  = [[ fma(m, fma(m, fma(m, POW_F64_G3, POW_F64_G2), POW_F64_G1), POW_F64_G0) + POW_F64_SHIFT ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_rest" {
  doc  = "r = m c - 1, exact.",
  args = "m",
  f32  = [[
    f32 c = m < 1.104 ? (m < 0.9 ? 1.125 : 1.0) : (m < 1.33 ? 0.8125 : 0.6875);
    return fma(m, c, -1.0); ]],
  f64  = [[
    f64 c = pow_shifted(m) - POW_F64_SHIFT;
    return fma(m, c, -1.0); ]],
}

func "pow_base_hi" {
  doc  = "The leading part of e ln2 - log c, exact.",
  args = "e, m",
  f32  = [[
    f32 h = m < 1.104 ? (m < 0.9 ? POW_9_8_HI : 0.0) : (m < 1.33 ? POW_13_16_HI : POW_11_16_HI);
    return fma(e, POW_LN2_HI_F32, h); ]],
  f64  = [[ fma(e, POW_LN2_HI_F64, lookup(POW_F64_HI, raw_u64(pow_shifted(m)))) ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_base_lo" {
  doc  = "The small part of e ln2 - log c.",
  args = "e, m",
  f32  = [[
    f32 l = m < 1.104 ? (m < 0.9 ? POW_9_8_LO : 0.0) : (m < 1.33 ? POW_13_16_LO : POW_11_16_LO);
    return fma(e, POW_LN2_LO_F32, l); ]],
  f64  = [[ fma(e, POW_LN2_LO_F64, lookup(POW_F64_LO, raw_u64(pow_shifted(m)))) ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_tail" {
  doc  = "C4 + C5 r + ..., where log(1+r) = r - r^2/2 + r^2 (C3 r + r^2 pow_tail(r)).",
  args = "r",
  f32  = [[
    f32 r2 = r * r;
    f32 a = fma(r, POW_F32_C8, POW_F32_C7);
    f32 b = fma(r, POW_F32_C6, POW_F32_C5);
    return fma(r, fma(r2, a, b), POW_F32_C4); ]],
  f64  = [[
    f64 r2 = r * r;
    f64 a = fma(r, POW_F64_C8, POW_F64_C7);
    f64 b = fma(r, POW_F64_C6, POW_F64_C5);
    return fma(r, fma(r2, a, b), POW_F64_C4); ]],
  derivation = "tools/fit/pow.sollya",
}

func "pow_log_a" {
  doc  = "The leading part of log x, x = 2^e m: e ln2 - log c + r - r^2/2, rounded.",
  args = "e, m",
  body = [[
    T r = pow_rest(m);
    return fma(-0.5 * r, r, pow_base_hi(e, m) + r); ]],
}

func "pow_log_b" {
  doc  = "What pow_log_a leaves out of log x: at most 2^-8 of it.",
  args = "e, m",
  -- Exact sums as in log_lo: the base is 0 or larger than r.
  -- f32: near |r| = 0.1 the rounding of each factor of r^2 (C3 r + ...) would be up to 0.3 ULP of the result when
  -- y log x = 88, so both are carried in two parts, s + sl and p + pl. f64, with its smaller r, has no need of it.
  f32  = [[
    f32 r = pow_rest(m);
    f32 k = pow_base_hi(e, m);
    f32 u = k + r;
    f32 ul = r - (u - k);
    f32 v = fma(-0.5 * r, r, u);
    f32 vl = fma(-0.5 * r, r, u - v);
    f32 s = r * r;
    f32 sl = fma(r, r, -s);
    f32 q = s * pow_tail(r);
    f32 p = fma(r, POW_F32_C3, q);
    f32 pl = fma(r, POW_F32_C3, -p) + q;
    f32 l = fma(s, pl, vl + (pow_base_lo(e, m) + ul));
    return fma(s, p, fma(sl, p, l)); ]],
  f64  = [[
    f64 r = pow_rest(m);
    f64 k = pow_base_hi(e, m);
    f64 u = k + r;
    f64 ul = r - (u - k);
    f64 v = fma(-0.5 * r, r, u);
    f64 vl = fma(-0.5 * r, r, u - v);
    f64 s = r * r;
    f64 p = fma(r, POW_F64_C3, s * pow_tail(r));
    return fma(s, p, vl + (pow_base_lo(e, m) + ul)); ]],
}

func "log_wide_hi" {
  doc  = "log x, x = 2^e m (see pow_exponent), as hi + lo with a relative error of 2^-32 (f32), 2^-65 (f64): hi, log x rounded.",
  args = "e, m",
  body = [[ pow_log_a(e, m) + pow_log_b(e, m) ]],
}

func "log_wide_lo" {
  doc  = "log x as hi + lo: lo.",
  args = "e, m",
  body = [[
    T a = pow_log_a(e, m);
    return (a - log_wide_hi(e, m)) + pow_log_b(e, m); ]],
}

func "pow_arg_hi" {
  doc  = "y log x as hi + lo: hi.",
  args = "e, m, y",
  body = [[ y * log_wide_hi(e, m) ]],
}

func "pow_arg_lo" {
  doc  = "y log x as hi + lo: lo.",
  args = "e, m, y",
  body = [[
    T h = log_wide_hi(e, m);
    return fma(y, log_wide_lo(e, m), fma(y, h, -(y * h))); ]],
}

func "pow_any" {
  doc  = "x to the y for all x and y; pow takes it where its own range is left.",
  args = "x, y",
  f32  = [[
    f32 a = abs(x);
    bool tiny = a < 0x1p-126;
    f32 n = tiny ? a * 0x1p23 : a;
    f32 e = pow_exponent(n) - (tiny ? 0x1.7p27 : 0.0);
    f32 m = pow_mantissa(n);
    f32 h = pow_arg_hi(e, m, y);
    f32 w = exp_two_part(h, pow_arg_lo(e, m, y));
    // Out of range (or y infinite, or y log x): the low part may be anything there.
    f32 z = h > 89.0 ? INFINITY : (h < -104.0 ? 0.0 : w);
    return pow_special(x, y, z); ]],
  f64  = [[
    f64 a = abs(x);
    bool tiny = a < 0x1p-1022;
    f64 n = tiny ? a * 0x1p52 : a;
    f64 e = pow_exponent(n) - (tiny ? 52.0 : 0.0);
    f64 m = pow_mantissa(n);
    f64 h = pow_arg_hi(e, m, y);
    f64 w = exp_two_part(h, pow_arg_lo(e, m, y));
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
    f32 m = pow_mantissa(x);
    f32 h = pow_arg_hi(e, m, y);
    f32 z = canonical(exp_normal(h, pow_arg_lo(e, m, y)));
    rare (log_beyond(x) || !(abs(h) < 87.0)) { z = pow_any(x, y); }
    return z; ]],
  f64  = [[
    f64 e = pow_exponent(x);
    f64 m = pow_mantissa(x);
    f64 h = pow_arg_hi(e, m, y);
    f64 z = canonical(exp_normal(h, pow_arg_lo(e, m, y)));
    rare (log_beyond(x) || !(abs(h) < 708.0)) { z = pow_any(x, y); }
    return z; ]],
  -- Measured over 3 * 10^7 (f32) and 10^6 (f64) points: 0.83 and 0.74; in subnormal results, over more, 0.87 and 0.77.
  ulp = { f32 = 0.9, f64 = 0.8 },
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
