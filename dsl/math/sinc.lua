-- SPDX-License-Identifier: Apache-2.0
--
-- sinc, normalised: sin(pi x) / (pi x), and 1 at 0. It is even: a = |x|.
--
-- The reduction is exact, for every float: b = a - 2k within [-1, 1], then b = n/2 + r, |r| <= 1/4. With pi divided out,
--
--     sin(pi r) / pi = r + r^3 S(r^2),     cos(pi r) / pi = 1/pi - pi/2 r^2 + r^4 C(r^2),
--
-- and n picks one of the two and its sign, as in sin.lua; what is left is a division by a, which is exact. The numerator is a
-- sum of two parts, p + pl, and the quotient y = p (1/a) is corrected by its remainder: (p + pl - y a) / a.
-- Zeros, at every integer but 0, are +0. Near 0 a is held at a value with a sinc that rounds to 1. The limit at infinity is 0, but
-- b is NaN there, as sin is.
--
-- The derivative is (cos(pi x) - sinc(x)) / x = pi (Q - P / (pi a)) / a, where Q and P are cos(pi a) / pi and sin(pi a) / pi, in
-- two parts each, and so is the quotient: near a zero, where the two are close, what is left of them is right. Up to 1/2, where
-- they are close to 1, it is -4 x D(x^2), D a polynomial.

constants {
  SINC_LOW_F32 = 0x1p-14,
  SINC_LOW_F64 = 0x1p-30,

  -- 3/2 * 2^23 (f64: 2^52): adding it rounds to integer, n is in the low bits.
  SINC_SHIFT_F32 = 0x1.8p23,
  SINC_SHIFT_F64 = 0x1.8p52,

  -- 1/pi and pi/2 in two parts.
  SINC_1_PI_HI_F32 =  0x1.45f306p-2,
  SINC_1_PI_LO_F32 =  0x1.b9391p-27,
  SINC_PI_2_HI_F32 =  0x1.921fb6p0,
  SINC_PI_2_LO_F32 = -0x1.777a5cp-25,
  SINC_1_PI_HI_F64 =  0x1.45f306dc9c883p-2,
  SINC_1_PI_LO_F64 = -0x1.6b01ec5417056p-56,
  SINC_PI_2_HI_F64 =  0x1.921fb54442d18p0,
  SINC_PI_2_LO_F64 =  0x1.1a62633145c07p-54,

  -- |r| <= 1/4. Relative error of sin 2^-27.9, of cos 2^-32.8.
  SINC_F32_S0 = -0x1.a51a52p0,
  SINC_F32_S1 =  0x1.9f8dacp-1,
  SINC_F32_S2 = -0x1.803b5p-3,
  SINC_F32_C0 =  0x1.4abbc4p0,
  SINC_F32_C1 = -0x1.b32e1cp-2,
  SINC_F32_C2 =  0x1.2e52aep-4,

  -- The same for f64: 2^-57.9, 2^-63.7.
  SINC_F64_S0 = -0x1.a51a6625307c3p0,
  SINC_F64_S1 =  0x1.9f9cb402b9dc2p-1,
  SINC_F64_S2 = -0x1.86a8e46e2e595p-3,
  SINC_F64_S3 =  0x1.ac680016ae929p-6,
  SINC_F64_S4 = -0x1.337d22bef074fp-9,
  SINC_F64_S5 =  0x1.341ec34524521p-13,
  SINC_F64_C0 =  0x1.4abbce625be49p0,
  SINC_F64_C1 = -0x1.b33a5df476de8p-2,
  SINC_F64_C2 =  0x1.32d2cce39de43p-4,
  SINC_F64_C3 = -0x1.0d2cf3ac4d1c9p-7,
  SINC_F64_C4 =  0x1.4200c48b9bfdap-11,
  SINC_F64_C5 = -0x1.14b05902c427bp-15,

  -- D for |x| <= 1/2: pi^2/12, what is left of that, and so on. Relative error 2^-29.6, 2^-63.1.
  SINC_F32_D  =  0x1.a51a66p-1,
  SINC_F32_D0 =  0x1.ca3df4p-29,
  SINC_F32_D1 = -0x1.9f9caep-1,
  SINC_F32_D2 =  0x1.24fd3ap-2,
  SINC_F32_D3 = -0x1.abe934p-5,
  SINC_F32_D4 =  0x1.6e61ccp-8,
  SINC_F64_D  =  0x1.a51a6625307d3p-1,
  SINC_F64_D0 =  0x1.16efb61bd6f82p-56,
  SINC_F64_D1 = -0x1.9f9cb402bc46cp-1,
  SINC_F64_D2 =  0x1.24feab558a457p-2,
  SINC_F64_D3 = -0x1.ac6805cf31558p-5,
  SINC_F64_D4 =  0x1.8061c54b58ee3p-8,
  SINC_F64_D5 = -0x1.d2eaa5906bf25p-12,
  SINC_F64_D6 =  0x1.999f77544f8c3p-16,
  SINC_F64_D7 = -0x1.0fa8413218b74p-20,
  SINC_F64_D8 =  0x1.11d998eb5ebap-25,
}

func "sinc_folded" {
  doc  = "b = a - 2k within [-1, 1]: exact.",
  args = "a",
  body = [[ fma(rint(0.5 * a), -2.0, a) ]],
}

func "sinc_steps" {
  doc  = "2 b rounded to an integer n, as n + shifter: n is in the low bits.",
  args = "a",
  f32  = [[ fma(sinc_folded(a), 2.0, SINC_SHIFT_F32) ]],
  f64  = [[ fma(sinc_folded(a), 2.0, SINC_SHIFT_F64) ]],
}

func "sinc_rest" {
  doc  = "r = b - n/2, |r| <= 1/4, from t = sinc_steps(a): exact.",
  args = "a, t",
  f32  = [[ fma(t - SINC_SHIFT_F32, -0.5, sinc_folded(a)) ]],
  f64  = [[ fma(t - SINC_SHIFT_F64, -0.5, sinc_folded(a)) ]],
}

func "sinc_turned" {
  doc  = "Whether n is odd, so that sin and cos change places, from t = sinc_steps(a).",
  args = "t",
  result = "bool",
  f32  = [[ (raw_u32(t) & 1) != 0 ]],
  f64  = [[ (raw_u64(t) & 1) != 0 ]],
}

func "sinc_sin_tail" {
  doc  = "sin(pi r) / pi - r, |r| <= 1/4.",
  args = "r",
  f32  = [[
    f32 z = r * r;
    return z * r * fma(z, fma(z, SINC_F32_S2, SINC_F32_S1), SINC_F32_S0); ]],
  f64  = [[
    f64 z = r * r;
    f64 s3 = fma(z, fma(z, SINC_F64_S5, SINC_F64_S4), SINC_F64_S3);
    return z * r * fma(z, fma(z, fma(z, s3, SINC_F64_S2), SINC_F64_S1), SINC_F64_S0); ]],
  derivation = "tools/fit/sinc.sollya",
}

func "sinc_cos_head" {
  doc  = "1/pi - pi/2 r^2, rounded: cos(pi r) / pi = sinc_cos_head + sinc_cos_tail.",
  args = "r",
  f32  = [[ fma(r * r, -SINC_PI_2_HI_F32, SINC_1_PI_HI_F32) ]],
  f64  = [[ fma(r * r, -SINC_PI_2_HI_F64, SINC_1_PI_HI_F64) ]],
}

func "sinc_cos_tail" {
  doc  = "cos(pi r) / pi - sinc_cos_head(r), |r| <= 1/4.",
  args = "r",
  -- e: what the rounding of the head lost, what r^2 lost, the low parts of pi/2 and 1/pi.
  f32  = [[
    f32 z = r * r;
    f32 c = fma(z, fma(z, SINC_F32_C2, SINC_F32_C1), SINC_F32_C0);
    f32 e = fma(z, -SINC_PI_2_HI_F32, SINC_1_PI_HI_F32 - sinc_cos_head(r));
    f32 l = fma(fma(r, r, -z), -SINC_PI_2_HI_F32, fma(z, -SINC_PI_2_LO_F32, SINC_1_PI_LO_F32));
    return fma(z * z, c, e + l); ]],
  f64  = [[
    f64 z = r * r;
    f64 c3 = fma(z, fma(z, SINC_F64_C5, SINC_F64_C4), SINC_F64_C3);
    f64 c = fma(z, fma(z, fma(z, c3, SINC_F64_C2), SINC_F64_C1), SINC_F64_C0);
    f64 e = fma(z, -SINC_PI_2_HI_F64, SINC_1_PI_HI_F64 - sinc_cos_head(r));
    f64 l = fma(fma(r, r, -z), -SINC_PI_2_HI_F64, fma(z, -SINC_PI_2_LO_F64, SINC_1_PI_LO_F64));
    return fma(z * z, c, e + l); ]],
  derivation = "tools/fit/sinc.sollya",
}

func "sinc_quotient" {
  doc  = "(head + tail) / a, |tail| < |head|.",
  args = "head, tail, a",
  body = [[
    T p = head + tail;
    T pl = tail - (p - head);
    T i = 1.0 / a;
    T y = p * i;
    return fma(fma(-y, a, p) + pl, i, y); ]],
}

func "sinc_held" {
  doc  = "a, or where sinc rounds to 1 something a little larger than 0.",
  args = "a",
  f32  = [[ a < SINC_LOW_F32 ? SINC_LOW_F32 : a ]],
  f64  = [[ a < SINC_LOW_F64 ? SINC_LOW_F64 : a ]],
}

func "sinc_signed" {
  doc  = "y, its sign turned where n is 2 or 3 mod 4, from t = sinc_steps(a).",
  args = "y, t",
  f32  = [[ as_f32(raw_u32(y) ^ ((raw_u32(t) << 30) & 0x80000000)) ]],
  f64  = [[ as_f64(raw_u64(y) ^ ((raw_u64(t) << 62) & 0x8000000000000000)) ]],
}

func "sinc" {
  doc  = "sin(pi x) / (pi x), 1 at 0.",
  args = "x",
  body = [[
    T a = sinc_held(abs(x));
    T t = sinc_steps(a);
    T r = sinc_rest(a, t);
    bool turned = sinc_turned(t);
    T y = sinc_quotient(turned ? sinc_cos_head(r) : r, turned ? sinc_cos_tail(r) : sinc_sin_tail(r), a);
    return sinc_signed(y, t) + 0.0; ]],
  derivation = "tools/fit/sinc.sollya",
}

func "sinc_slope_near_0" {
  doc  = "The derivative of sinc by -4 x, |x| <= 1/2: D(x^2).",
  args = "x",
  f32  = [[
    f32 z = x * x;
    f32 d1 = fma(z, fma(z, fma(z, SINC_F32_D4, SINC_F32_D3), SINC_F32_D2), SINC_F32_D1);
    return SINC_F32_D + fma(z, d1, SINC_F32_D0); ]],
  f64  = [[
    f64 z = x * x;
    f64 d5 = fma(z, fma(z, fma(z, SINC_F64_D8, SINC_F64_D7), SINC_F64_D6), SINC_F64_D5);
    f64 d1 = fma(z, fma(z, fma(z, fma(z, d5, SINC_F64_D4), SINC_F64_D3), SINC_F64_D2), SINC_F64_D1);
    return SINC_F64_D + fma(z, d1, SINC_F64_D0); ]],
  derivation = "tools/fit/sinc.sollya",
}

func "sinc_pi_hi" {
  doc  = "pi x by the high part of pi, rounded.",
  args = "x",
  f32  = [[ 2 * x * SINC_PI_2_HI_F32 ]],
  f64  = [[ 2 * x * SINC_PI_2_HI_F64 ]],
}

func "sinc_pi_lo" {
  doc  = "What sinc_pi_hi(x) leaves out of pi x.",
  args = "x",
  f32  = [[ fma(2 * x, SINC_PI_2_LO_F32, fma(2 * x, SINC_PI_2_HI_F32, -sinc_pi_hi(x))) ]],
  f64  = [[ fma(2 * x, SINC_PI_2_LO_F64, fma(2 * x, SINC_PI_2_HI_F64, -sinc_pi_hi(x))) ]],
}

func "sinc_pi_of_sum" {
  doc  = "pi (x + xl), |xl| < |x|.",
  args = "x, xl",
  f32  = [[ fma(2 * x, SINC_PI_2_HI_F32, fma(2 * x, SINC_PI_2_LO_F32, sinc_pi_hi(xl))) ]],
  f64  = [[ fma(2 * x, SINC_PI_2_HI_F64, fma(2 * x, SINC_PI_2_LO_F64, sinc_pi_hi(xl))) ]],
}

func "sinc_difference" {
  doc  = "pi (q - p / (pi a)), q and p of two parts, for a up to where sinc is 0 at all floats.",
  args = "q, ql, p, pl, a",
  body = [[
    T v = sinc_pi_hi(a);
    T vl = sinc_pi_lo(a);
    T i = 1.0 / v;
    T y = p * i;
    T yl = (fma(-y, v, p) + fma(-y, vl, pl)) * i;
    T e = q - y;
    return sinc_pi_of_sum(e, sum_lost(q, -y, e) + (ql - yl)); ]],
}

func "sinc_capped" {
  doc  = "a, or where it is larger a number from which on sinc is 0 at all floats.",
  args = "a",
  f32  = [[ a < 0x1p24 ? a : 0x1p24 ]],
  f64  = [[ a < 0x1p53 ? a : 0x1p53 ]],
}

func "sinc_slope_signed" {
  doc  = "As sinc_signed, but turned once more where x has a sign: the derivative is odd.",
  args = "y, t, x",
  f32  = [[ as_f32(raw_u32(y) ^ (((raw_u32(t) << 30) ^ raw_u32(x)) & 0x80000000)) ]],
  f64  = [[ as_f64(raw_u64(y) ^ (((raw_u64(t) << 62) ^ raw_u64(x)) & 0x8000000000000000)) ]],
}

func "sinc_slope" {
  doc  = "grad (cos(pi x) - sinc(x)) / x, 0 at 0. Nothing leaves the range on the way before the result does.",
  args = "grad, x",
  body = [[
    T a = abs(x);
    T t = sinc_steps(a);
    T r = sinc_rest(a, t);
    bool turned = sinc_turned(t);
    T c = sinc_cos_head(r);
    T cl = sinc_cos_tail(r);
    T s = sinc_sin_tail(r);
    T e = sinc_difference(turned ? -r : c, turned ? -s : cl, turned ? c : r, turned ? cl : s, sinc_capped(a));
    T d = sinc_slope_signed(e, t, x);
    T far = grad * (d / (a < 4 ? a : 4)) / (a < 4 ? 1 : 0.25 * a);
    return a <= 0.5 ? grad * sinc_slope_near_0(x) * (-4 * x) : far; ]],
  derivation = "tools/fit/sinc.sollya",
}
