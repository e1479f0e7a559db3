-- SPDX-License-Identifier: Apache-2.0
--
-- Functions of the numbers of f16, computed in f32 and rounded to f16: `narrow` bodies. Rounded, the results are those of the
-- bodies for f32, for all 65,536 numbers, so a kernel may compute either. Before that rounding they are good to some 2^-21, which
-- needs fewer terms and no second part of sums. tools/fit/half.py fits the constants, then moves them by some last bits until
-- no rounded result is another. No number of f16 but 0 is less than 2^-24: in f32 all are normal.
--
-- log to the base b, by the interval and the table c of log.lua, with P = 1 / ln b, K(c) = -log c:
--
--     x = 2^e m,   r = m c - 1,      log x = (e log 2 + K(c)) + r (P + P2 r + P3 r^2)
--
-- sin and cos, by half turns; n and h are halves away from one another, and two parts of pi are enough for |x| < 65536:
--
--     x = n pi + r:  sin x = +-sin r       x = h pi - r, h = n + 1/2:  cos x = +-sin r       sin r = r (1 + z S(z)),  z = r^2
--
-- HI is less than pi: with a positive LO r is -0 for x = -0.
--
-- tan, by quarter turns, x = n pi/2 + r: of odd n -1 / tan r, and there is one division in either case:
--
--     tan r = r (1 + P1 z) / (1 + Q1 z + Q2 z^2)
--
-- exp, with x cut to 20 in size, beyond which the result is 0 or infinity:
--
--     e^x = 2^k 2^r,   k + r = x log2 e,   2^r = 1 + C1 r + ... + C5 r^5
--
-- expm1, the same with r = x - k ln2 and p = e^r - 1 = r + r^2 (E2 + E3 r + ... + E6 r^4), which is good near 0: 2^k p + (2^k - 1).
--
-- sinh is h + h / (2 h + 1), h = expm1(|x|) / 2; cosh is h + 1 / (4 h), h = e^|x| / 2; silu is x / (1 + e^-x), with x cut to a size at
-- which f16 has infinity, and e^-x is finite.
--
-- asin and acos, with z = x^2, or (1 - |x|) / 2 beyond 1/2, and s its root:  asin s = s + s z (A3 + A5 z + ... + A11 z^4).
--
-- atanh as in atanh.lua, with n = g - 2^e b and d = g + 2^e b made of |x| itself, each rounded once.
--
-- gelu as in bf16.lua, for z up to 6. P and D are larger by 7/4: so both are rounded by as much at z = 2^-24, and half that number is a tie.
--
-- cbrt: with z near a^(-1/3) by the bits of a, as in cbrt.lua, and u = a z^3:  a^(1/3) = a z^2 u^(-2/3).

constants {
  HALF_LOG_2 = 0x1.62e43p-24, -- log 2 times 2^-23, since e comes times 2^23; so HALF_LOG10_2
  HALF_LOG_P2 = -0x1.fffe28p-2,
  HALF_LOG_P3 = 0x1.539f76p-2,

  HALF_LOG2_P1 = 0x1.71547ap0,
  HALF_LOG2_P2 = -0x1.71280cp-1,
  HALF_LOG2_P3 = 0x1.fb91f4p-2,

  HALF_LOG10_2 = 0x1.344134p-25,
  HALF_LOG10_P1 = 0x1.bcb792p-2,
  HALF_LOG10_P2 = -0x1.bca21ap-3,
  HALF_LOG10_P3 = 0x1.22ee8cp-3,

  HALF_EXP_END_BITS = 0x41a00000, -- of 20
  HALF_EXP_C1 = 0x1.62e432p-1,
  HALF_EXP_C2 = 0x1.ebfbc2p-3,
  HALF_EXP_C3 = 0x1.c6afa8p-5,
  HALF_EXP_C4 = 0x1.3c0632p-7,
  HALF_EXP_C5 = 0x1.5c456ap-10,

  HALF_LN2 = 0x1.62e43p-1,
  HALF_EXPM1_E2 = 0x1.fffffep-2,
  HALF_EXPM1_E3 = 0x1.5554aep-3,
  HALF_EXPM1_E4 = 0x1.555676p-5,
  HALF_EXPM1_E5 = 0x1.1228e6p-7,
  HALF_EXPM1_E6 = 0x1.6bebc4p-10,
  HALF_SILU_END_BITS = 0x42200000, -- of 40
  HALF_SILU_TOP_BITS = 0x48000000, -- of 2^17

  HALF_SHIFT = 0x1.8p23, -- adding it rounds to integer: n is in the low bits
  HALF_1_PI = 0x1.45f306p-2,
  HALF_PI_HI = 0x1.921fb4p1,
  HALF_PI_LO = 0x1.4442d2p-23,
  HALF_SIN_S0 = -0x1.555552p-3,
  HALF_SIN_S1 = 0x1.110ea2p-7,
  HALF_SIN_S2 = -0x1.9f64f2p-13,
  HALF_SIN_S3 = 0x1.5dbe18p-19,

  HALF_2_PI = 0x1.45f2fep-1,
  HALF_PI_2_HI = 0x1.921fb4p0,
  HALF_PI_2_LO = 0x1.44432p-24,
  HALF_TAN_P1 = -0x1.8847fep-4,
  HALF_TAN_Q1 = -0x1.b7678ep-2,
  HALF_TAN_Q2 = 0x1.3e1432p-7,

  HALF_ASIN_A3 = 0x1.5555c2p-3,
  HALF_ASIN_A5 = 0x1.32fb56p-4,
  HALF_ASIN_A7 = 0x1.7478fcp-5,
  HALF_ASIN_A9 = 0x1.8d9824p-6,
  HALF_ASIN_A11 = 0x1.5cbe38p-5,

  HALF_ATANH_LN2_2 = 0x1.62e43p-25, -- times 2^-23, as e comes times 2^23
  HALF_ATANH_T3 = 0x1.5555b4p-2,
  HALF_ATANH_T5 = 0x1.992a78p-3,
  HALF_ATANH_T7 = 0x1.36f0aep-3,

  HALF_GELU_SHIFT = 0x1.8p23 + 16, -- as in bf16.lua
  HALF_GELU_END_BITS = 0x40c00000, -- of 6
  HALF_GELU_LOG2E_2 = -0x1.71546ep-1,
  HALF_GELU_E1 = 0x1.62e418p-1,
  HALF_GELU_E2 = 0x1.ebf96p-3,
  HALF_GELU_E3 = 0x1.c6c80ap-5,
  HALF_GELU_E4 = 0x1.3cb9c2p-7,
  HALF_GELU_E5 = 0x1.5d7c6ep-10,
  HALF_GELU_P1 = 0x1.2b1ab2p-1,
  HALF_GELU_P2 = 0x1.74e8e2p-3,
  HALF_GELU_P3 = 0x1.83fd8cp-6,
  HALF_GELU_D1 = 0x1.48473p17,
  HALF_GELU_D2 = 0x1.89182ep16,
  HALF_GELU_D3 = 0x1.d25e58p14,
  HALF_GELU_D4 = 0x1.e693e2p11,

  HALF_CBRT_START = 12756150.0, -- in units of 2^13, with 3/2 * 2^23
  HALF_CBRT_P0 = 0x1.c871p1,
  HALF_CBRT_P1 = -0x1.b38ef6p2,
  HALF_CBRT_P2 = 0x1.e693eep2,
  HALF_CBRT_P3 = -0x1.18d6c4p2,
  HALF_CBRT_P4 = 0x1.0669e8p0,
}

-- K(c), to the bases e, 2 and 10.
tables {
  HALF_LOG_K = { "f32",
    -0x1.fb91ap-3, -0x1.95254p-3, -0x1.5ff2dp-3, -0x1.295548p-3, -0x1.6f0d3ap-4, -0x1.f0a29cp-5, -0x1.f82966p-6, 0x0p0,
    0x1.0859c6p-4, 0x1.da7226p-4, 0x1.5bf43ap-3, 0x1.d1036cp-3, 0x1.117904p-2, 0x1.522aep-2, 0x1.7fafa6p-2, 0x1.973a3p-2,
  },
  HALF_LOG2_K = { "f32",
    -0x1.6e2208p-2, -0x1.24401ep-2, -0x1.fbc184p-3, -0x1.acf62p-3, -0x1.08c612p-3, -0x1.663f8ep-4, -0x1.6bad44p-5, 0x0p0,
    0x1.7d6042p-4, 0x1.563d9p-3, 0x1.f5fd92p-3, 0x1.4f6f8p-2, 0x1.8a899p-2, 0x1.e7df3ep-2, 0x1.14c58cp-1, 0x1.25c082p-1,
  },
  HALF_LOG10_K = { "f32",
    -0x1.b8de5p-4, -0x1.5fe81ap-4, -0x1.31b2bp-4, -0x1.024208p-4, -0x1.3ed11cp-5, -0x1.af5facp-6, -0x1.b5e8d2p-7, 0x0p0,
    0x1.cb38d6p-6, 0x1.9c199p-5, 0x1.2e3a8ep-4, 0x1.93e7e6p-4, 0x1.db11e8p-4, 0x1.25ba9cp-3, 0x1.4d4416p-3, 0x1.61b6bcp-3,
  },
}

func "log_half" {
  doc  = "The natural logarithm of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 r = log_rest(x);
    f32 k = fma(log_exponent(x), HALF_LOG_2, lookup(HALF_LOG_K, log_bits_f32(x) >> 19));
    f32 y = canonical(fma(r, fma(r, fma(r, HALF_LOG_P3, HALF_LOG_P2), 1.0), k));
    rare (log_beyond(x)) { y = log_ends(x, y); }
    return y; ]],
  derivation = "tools/fit/half.py",
}

func "log2_half" {
  doc  = "The same to base 2.",
  args = "x",
  f32  = [[
    f32 r = log_rest(x);
    f32 k = fma(log_exponent(x), 0x1p-23, lookup(HALF_LOG2_K, log_bits_f32(x) >> 19));
    f32 y = canonical(fma(r, fma(r, fma(r, HALF_LOG2_P3, HALF_LOG2_P2), HALF_LOG2_P1), k));
    rare (log_beyond(x)) { y = log_ends(x, y); }
    return y; ]],
  derivation = "tools/fit/half.py",
}

func "log10_half" {
  doc  = "The same to base 10.",
  args = "x",
  f32  = [[
    f32 r = log_rest(x);
    f32 k = fma(log_exponent(x), HALF_LOG10_2, lookup(HALF_LOG10_K, log_bits_f32(x) >> 19));
    f32 y = canonical(fma(r, fma(r, fma(r, HALF_LOG10_P3, HALF_LOG10_P2), HALF_LOG10_P1), k));
    rare (log_beyond(x)) { y = log_ends(x, y); }
    return y; ]],
  derivation = "tools/fit/half.py",
}

func "size_to" {
  doc  = "|x|, but the number with these bits where |x| is larger, or NaN.",
  args = "x, u32 bits",
  f32  = [[
    u32 a = raw_u32(x) & 0x7fffffff;
    return as_f32(a < bits ? a : bits); ]],
}

func "cut_to" {
  doc  = "x, but of the sign of x and the size `bits` where it is larger, or NaN.",
  args = "x, u32 bits",
  f32  = [[ as_f32(raw_u32(size_to(x, bits)) | (raw_u32(x) & 0x80000000)) ]],
}

func "exp_of_half" {
  doc  = "e to z, |z| <= 40, for results that are rounded to f16.",
  args = "z",
  f32  = [[
    f32 t = exp_steps(z);
    f32 r = fma(z, LOG2E, -exp_steps_count(t));
    f32 p = fma(fma(fma(HALF_EXP_C5, r, HALF_EXP_C4), r, HALF_EXP_C3), r, HALF_EXP_C2);
    return exp_raised(fma(fma(p, r, HALF_EXP_C1), r, 1.0), t); ]],
  derivation = "tools/fit/half.py",
}

func "exp_half" {
  doc  = "e to a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[ canonical(x != x ? NAN : exp_of_half(cut_to(x, HALF_EXP_END_BITS))) ]],
}

func "expm1_of_half" {
  doc  = "e^z - 1, |z| <= 20, for results that are rounded to f16; of -0 it is 0.",
  args = "z",
  f32  = [[
    f32 t = exp_steps(z);
    f32 r = fma(exp_steps_count(t), -HALF_LN2, z);
    f32 q = fma(fma(fma(HALF_EXPM1_E6, r, HALF_EXPM1_E5), r, HALF_EXPM1_E4), r, HALF_EXPM1_E3);
    f32 p = fma(r * r, fma(q, r, HALF_EXPM1_E2), r);
    f32 s = exp_raised(1.0, t);
    return fma(s, p, s - 1); ]],
  derivation = "tools/fit/half.py",
}

func "expm1_half" {
  doc  = "e to a number of f16, minus 1, before it is rounded to that.",
  args = "x",
  f32  = [[ canonical(x != x ? NAN : copysign(expm1_of_half(cut_to(x, HALF_EXP_END_BITS)), x)) ]],
}

func "sinh_half" {
  doc  = "The hyperbolic sine of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 u = expm1_of_half(size_to(x, HALF_EXP_END_BITS));
    f32 h = 0.5 * u;
    return canonical(x != x ? NAN : copysign(h + h / (u + 1), x)); ]],
}

func "cosh_half" {
  doc  = "The hyperbolic cosine of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 h = 0.5 * exp_of_half(size_to(x, HALF_EXP_END_BITS));
    return canonical(x != x ? NAN : h + 0.25 / h); ]],
}

func "silu_half" {
  doc  = "silu of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 e = exp_of_half(-cut_to(x, HALF_SILU_END_BITS));
    return canonical(x != x ? NAN : cut_to(x, HALF_SILU_TOP_BITS) / (1 + e)); ]],
}

func "sin_half_turn" {
  doc  = "sin r with the sign changed where t is odd, t + HALF_SHIFT an integer; |r| <= pi/2 and a little.",
  args = "r, t",
  f32  = [[
    f32 z = r * r;
    f32 s = fma(z, fma(z, fma(z, HALF_SIN_S3, HALF_SIN_S2), HALF_SIN_S1), HALF_SIN_S0);
    f32 y = r * fma(z, s, 1.0);
    return as_f32(raw_u32(y) ^ (raw_u32(t) << 31)); ]],
  derivation = "tools/fit/half.py",
}

func "sin_half" {
  doc  = "The sine of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 t = fma(x, HALF_1_PI, HALF_SHIFT);
    f32 n = t - HALF_SHIFT;
    return sin_half_turn(fma(n, -HALF_PI_LO, fma(n, -HALF_PI_HI, x)), t); ]],
}

func "cos_half" {
  doc  = "The cosine of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 t = fma(x, HALF_1_PI, -0.5) + HALF_SHIFT;
    f32 h = (t - HALF_SHIFT) + 0.5;
    return sin_half_turn(fma(h, HALF_PI_LO, fma(h, HALF_PI_HI, -x)), t); ]],
}

func "tan_half" {
  doc  = "The tangent of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 t = fma(x, HALF_2_PI, HALF_SHIFT);
    f32 n = t - HALF_SHIFT;
    f32 r = fma(n, -HALF_PI_2_LO, fma(n, -HALF_PI_2_HI, x));
    f32 z = r * r;
    f32 p = r * fma(z, HALF_TAN_P1, 1.0);
    f32 q = fma(z, fma(z, HALF_TAN_Q2, HALF_TAN_Q1), 1.0);
    bool odd = (raw_u32(t) & 1) != 0;
    f32 y = (odd ? q : p) / (odd ? p : q);
    return as_f32(raw_u32(y) ^ (raw_u32(t) << 31)); ]],
  derivation = "tools/fit/half.py",
}

func "asin_of_half" {
  doc  = "asin of |x|, or of sqrt((1 - |x|) / 2) for |x| > 1/2, for results that are rounded to f16.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 z = a > 0.5 ? fma(a, -0.5, 0.5) : a * a;
    f32 s = a > 0.5 ? sqrt(z) : a;
    f32 p = fma(fma(fma(HALF_ASIN_A11, z, HALF_ASIN_A9), z, HALF_ASIN_A7), z, HALF_ASIN_A5);
    return fma(s * z, fma(p, z, HALF_ASIN_A3), s); ]],
  derivation = "tools/fit/half.py",
}

func "asin_half" {
  doc  = "The inverse sine of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 y = asin_of_half(x);
    return copysign(abs(x) > 0.5 ? fma(y, -2.0, 1.5707963267948966) : y, x); ]],
}

func "acos_half" {
  doc  = "The inverse cosine of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 base = abs(x) > 0.5 ? (x > 0 ? 0 : 3.141592653589793) : 1.5707963267948966;
    f32 factor = abs(x) > 0.5 ? 2.0 : -1.0;
    return fma(as_f32(raw_u32(factor) ^ (raw_u32(x) & 0x80000000)), asin_of_half(x), base); ]],
}

func "atanh_half" {
  doc  = "The inverse hyperbolic tangent of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    i32 k = (raw_i32(1 + a) - raw_i32(1 - a) + 0x400000) & 0xff800000;
    f32 q = as_f32(0x3f800000 + k);
    f32 s = fma(a, 1 + q, 1 - q) / fma(a, 1 - q, 1 + q);
    f32 z = s * s;
    f32 p = fma(fma(HALF_ATANH_T7, z, HALF_ATANH_T5), z, HALF_ATANH_T3);
    f32 y = canonical(copysign(fma(s * z, p, fma((f32)k, HALF_ATANH_LN2_2, s)), x));
    rare (!(a < 1)) { y = a == 1 ? copysign(INFINITY, x) : NAN; }
    return y; ]],
  derivation = "tools/fit/half.py",
}

func "gelu_half" {
  doc  = "gelu of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 z = size_to(x, HALF_GELU_END_BITS);
    f32 s = z * z;
    f32 n = fma(s, HALF_GELU_LOG2E_2, HALF_GELU_SHIFT);
    f32 r = fma(s, HALF_GELU_LOG2E_2, -(n - HALF_GELU_SHIFT));
    f32 e2 = fma(fma(fma(HALF_GELU_E5, r, HALF_GELU_E4), r, HALF_GELU_E3), r, HALF_GELU_E2);
    f32 power = exp_raised(fma(fma(e2, r, HALF_GELU_E1), r, 1.0), n);
    f32 p = fma(fma(fma(HALF_GELU_P3, z, HALF_GELU_P2), z, HALF_GELU_P1), z, 0.875);
    f32 d3 = fma(fma(HALF_GELU_D4, z, HALF_GELU_D3), z, HALF_GELU_D2);
    f32 d = fma(fma(d3, z, HALF_GELU_D1), z, 0x1.cp16);
    f32 base = x < 0 ? -0.0 : x;
    return fma(-z, power * p / d, base); ]],
  derivation = "tools/fit/half.py",
}

func "cbrt_half" {
  doc  = "The cube root of a number of f16, before it is rounded to that.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 t = fma((f32)raw_i32(a), -0x1.555556p-15, HALF_CBRT_START);
    f32 z = as_f32(raw_u32(t) << 13);
    f32 v = a * (z * z);
    f32 u = v * z;
    f32 p = fma(fma(fma(fma(HALF_CBRT_P4, u, HALF_CBRT_P3), u, HALF_CBRT_P2), u, HALF_CBRT_P1), u, HALF_CBRT_P0);
    f32 y = canonical(copysign(v * p, x));
    rare (raw_u32(a) >= 0x7f800000) { y = x; }
    return y; ]],
  derivation = "tools/fit/half.py",
}
