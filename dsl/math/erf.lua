-- SPDX-License-Identifier: Apache-2.0
--
-- The error function and its complement, erf(x) = 2/sqrt(pi) * integral of e^(-t^2) from 0 to x, erfc = 1 - erf; and the
-- pieces that gelu of f64 shares with erfc.
--
-- erf in two polynomials, chosen per element:
--
--     |x| < join:   x + x P(x^2)                  erf is nearly 1.13 x: the large part, x, is added last, exactly
--     otherwise:    1 - Q(|x| - join)^2           with the sign of x; Q is the square root of erfc
--
-- Why a square root: erfc falls so steeply that a polynomial in x for it needs degree 14 (f32), 36 (f64); its root is
-- flatter and needs 11, 27, and the square costs nothing (the last fma squares). Higher roots need less still, but
-- multiply the rounding error of Q. Q is expanded at the join, where erfc is largest and accuracy counts.
--
-- erfc in the far tail is tiny but has full relative accuracy down to subnormals (x = 10.05 in f32, 27.22 in f64):
--
--     erfc(z) = e^(-z^2) R(z),  z = |x|,          erfc(-z) = 2 - erfc(z)
--
-- 1. e^(-z^2). z^2 is up to 740, so its rounding alone would cost hundreds of ULP: it is carried as s + s_lo (exact, one
--    fma), and reduced as in exp.lua: -z^2 = k ln2 + r_hi + r_lo, e^(-z^2) = 2^k (1 + r_hi + p).
-- 2. R(z) = e^(z^2) erfc(z) falls slowly, from 1 to 1 / (z sqrt(pi)). It is t (1 + v), t = 1 / (1 + slope z), which has
--    the same shape, so |v| < 0.16 (0.12 in f64) and its rounding errors count little:   v = (1 - t) (V0 + t W).
--    The factors hold v = 0 at z = 0 (t = 1) and its limit V0 at infinity (t = 0); W stays between 0.3 and 0.8.
--    In f32 W is a polynomial in t. In f64 its degree would be 40; in u = (z - a) / (z + a) it is 21, and one division
--    serves both denominators: i = 1 / (d g), 1/d = g i, 1/g = d i. u is worth only 52 bits so: W = W0 + (1 - t) X(u),
--    the factors of X hold its error down.
--    c is what is left of t: t (1 + c) = 1 / (1 + slope z) to twice the precision.
-- 3. The product t (1 + v) (1 + r_hi + p) is formed as high and low part, so that the result is rounded once.
-- 4. 2^k reaches below the normal range: the result is made 2^64 times too large (exact) and multiplied by 2^-64, which
--    rounds once more, and only for subnormals.
--
-- Measured: f32 over all inputs, f64 over 10^6 (erfc: 10^7) random and hard points (erf 0.88, erfc 0.992 ULP found).
-- Error budget of erfc, in ULP: 0.5 the last rounding, 0.2 v (fit 0.1, roundings 0.1), 0.1 t and u, 0.1 the sum
-- v (1 + r) + p, 0.05 e^r. The largest errors are where all meet just below a power of two.

constants {
  -- 3/2 * 2^23: adding it rounds to integer. 191 = 127 + 64, so that the low bits are the exponent field of 2^(k + 64).
  ERF_SHIFT_F32 = 0x1.8p23 + 191,
  ERF_SHIFT_F64 = 0x1.8p52 + 1087,

  -- Where erf changes polynomial. Lower, Q would exceed 1/2 and its rounding error double; higher, the errors of P grow.
  -- In f64 it is a point with sqrt(erfc) within 0.02 ULP of a float, by luck, the constant coefficient of Q.
  ERF_JOIN_F32 = 1,
  ERF_JOIN_F64 = 0x1.be8p-1,
}

func "erf" {
  doc    = "The error function.",
  args   = "x",
  -- P: error 2^-29.3 (f64: 2^-56.3) of erf; Q^2: 2^-27.5 (f64: 2^-56.8).
  f32    = [[
    f32 z = abs(x);
    // P(x^2)
    f32 s = x * x;
    f32 p5 = fma(0x1.48edeep-14, s, -0x1.a3c95cp-11);
    f32 p4 = fma(p5, s, 0x1.53ff92p-8);
    f32 p3 = fma(p4, s, -0x1.b7f858p-6);
    f32 p2 = fma(p3, s, 0x1.ce2cfp-4);
    f32 p1 = fma(p2, s, -0x1.81273ep-2);
    f32 p0 = fma(p1, s, 0x1.06eba8p-3);
    // Q(|x| - ERF_JOIN_F32); from |x| = 4 on the result rounds to 1
    f32 t = (z > 4 ? 4 : z) - ERF_JOIN_F32;
    f32 q10 = fma(0x1.bf9116p-18, t, -0x1.a6afaep-14);
    f32 q9 = fma(q10, t, 0x1.37dcf4p-11);
    f32 q8 = fma(q9, t, -0x1.85b33p-10);
    f32 q7 = fma(q8, t, -0x1.79fbccp-15);
    f32 q6 = fma(q7, t, 0x1.d5ee6ep-8);
    f32 q5 = fma(q6, t, -0x1.216a44p-9);
    f32 q4 = fma(q5, t, -0x1.84742ep-5);
    f32 q3 = fma(q4, t, 0x1.efdd34p-5);
    f32 q2 = fma(q3, t, 0x1.6cab2cp-3);
    f32 q1 = fma(q2, t, -0x1.0bf09p-1);
    f32 q0 = fma(q1, t, 0x1.9620d6p-2);
    return z < ERF_JOIN_F32 ? fma(x, p0, x) : copysign(fma(-q0, q0, 1), x);
  ]],
  f64    = [[
    f64 z = abs(x);
    // P(x^2)
    f64 s = x * x;
    f64 s2 = s * s;
    f64 a9 = fma(-0x1.f4f70fbed2b8bp-31, s2, -0x1.5e9be5b2ecbb4p-23);
    f64 a7 = fma(a9, s2, -0x1.f4d279e852595p-17);
    f64 a5 = fma(a7, s2, -0x1.c02db4a101cecp-11);
    f64 a3 = fma(a5, s2, -0x1.b82ce312b240dp-6);
    f64 a1 = fma(a3, s2, -0x1.812746b0379ffp-2);
    f64 b8 = fma(0x1.ebf8e4a9c46b7p-27, s2, 0x1.b9dcc79e7375ap-20);
    f64 b6 = fma(b8, s2, 0x1.f9a331b8bcbcbp-14);
    f64 b4 = fma(b6, s2, 0x1.565bcd133f1c1p-8);
    f64 b2 = fma(b4, s2, 0x1.ce2f21a0437bap-4);
    f64 p1 = fma(b2, s, a1);
    f64 p0 = fma(p1, s, 0x1.06eba8214db69p-3);
    // Q(|x| - ERF_JOIN_F64); from |x| = 6 on the result rounds to 1
    f64 t = (z > 6 ? 6 : z) - ERF_JOIN_F64;
    f64 t2 = t * t;
    f64 c25 = fma(0x1.cb07b4a7fd747p-57, t2, 0x1.19664a9798421p-47);
    f64 c23 = fma(c25, t2, -0x1.f5294daea2e8p-40);
    f64 c21 = fma(c23, t2, -0x1.74063b25530fdp-32);
    f64 c19 = fma(c21, t2, -0x1.89f0640137809p-27);
    f64 c17 = fma(c19, t2, -0x1.d13f2c4af81e7p-24);
    f64 c15 = fma(c17, t2, -0x1.4119a7698b18cp-21);
    f64 c13 = fma(c15, t2, 0x1.b9520d6b29aecp-22);
    f64 c11 = fma(c13, t2, -0x1.e404069ae216ep-17);
    f64 c9 = fma(c11, t2, 0x1.418ae489f1037p-14);
    f64 c7 = fma(c9, t2, 0x1.986af50895a46p-13);
    f64 c5 = fma(c7, t2, -0x1.1424a75dc48e2p-7);
    f64 c3 = fma(c5, t2, 0x1.5825195f7e79fp-4);
    f64 c1 = fma(c3, t2, -0x1.218b62f44b5b3p-1);
    f64 d24 = fma(-0x1.2f5a59ffece38p-51, t2, -0x1.06e1041951c32p-50);
    f64 d22 = fma(d24, t2, 0x1.20a1c530ad598p-35);
    f64 d20 = fma(d22, t2, 0x1.41cc94baf8859p-29);
    f64 d18 = fma(d20, t2, 0x1.5cb7f08341e9ep-25);
    f64 d16 = fma(d18, t2, 0x1.0dd86b2aa5e33p-22);
    f64 d14 = fma(d16, t2, 0x1.1c3901eb6dbf7p-20);
    f64 d12 = fma(d14, t2, -0x1.3844d8b8b0a18p-18);
    f64 d10 = fma(d12, t2, 0x1.6452019931845p-14);
    f64 d8 = fma(d10, t2, -0x1.f8b77cc960ad3p-11);
    f64 d6 = fma(d8, t2, 0x1.023292ca40e74p-7);
    f64 d4 = fma(d6, t2, -0x1.67870671b810fp-5);
    f64 d2 = fma(d4, t2, 0x1.33c1feada21b3p-3);
    f64 q1 = fma(d2, t, c1);
    f64 q0 = fma(q1, t, 0x1.dd86543290082p-2);
    return z < ERF_JOIN_F64 ? fma(x, p0, x) : copysign(fma(-q0, q0, 1), x);
  ]],
  ulp    = { f32 = 0.991, f64 = 0.95 },
  derivation = "tools/fit/erf.py",
}

func "erf_shifted" {
  doc  = "-s / ln2 rounded to an integer k, as k + shifter: k + 64, biased, is in the low bits. For 0 <= s < 760.",
  args = "s",
  f32  = [[ fma(-s, LOG2E, ERF_SHIFT_F32) ]],
  f64  = [[ fma(-s, LOG2E, ERF_SHIFT_F64) ]],
}

func "erf_count" {
  doc  = "k as a float, from n = erf_shifted(s).",
  args = "n",
  f32  = [[ n - ERF_SHIFT_F32 ]],
  f64  = [[ n - ERF_SHIFT_F64 ]],
}

func "erf_scale" {
  doc  = "2^(k + 64), from n = erf_shifted(s); a normal number for every s that matters.",
  args = "n",
  f32  = [[ as_f32(raw_u32(n) << 23) ]],
  f64  = [[ as_f64(raw_u64(n) << 52) ]],
}

func "erf_exp_rest" {
  doc  = "p, where e^(hi + lo) = 1 + hi + p, |hi + lo| <= 0.3467.",
  args = "hi, lo",
  -- r^2 G(r) + lo: error 2^-32.9 (f64: 2^-57.6) of e^r. exp_tail has one coefficient less, and a budget only for exp.
  f32  = [[
    f32 r = hi + lo;
    f32 g4 = fma(0x1.9a6b3ap-13, r, 0x1.6d4f08p-10);
    f32 g3 = fma(g4, r, 0x1.1115c8p-7);
    f32 g2 = fma(g3, r, 0x1.5554e6p-5);
    f32 g1 = fma(g2, r, 0x1.555552p-3);
    f32 g0 = fma(g1, r, 0x1p-1);
    return fma(r * r, g0, lo);
  ]],
  f64  = [[
    f64 r = hi + lo;
    f64 r2 = r * r;
    f64 a6 = fma(0x1.28b0ac705a4dp-22, r2, 0x1.a019960993714p-16);
    f64 a4 = fma(a6, r2, 0x1.6c16c185ec874p-10);
    f64 a2 = fma(a4, r2, 0x1.555555554fe5fp-5);
    f64 a0 = fma(a2, r2, 0x1.000000000000cp-1);
    f64 b7 = fma(0x1.adfd8401e73dp-26, r2, 0x1.71ded4ca0ef5ap-19);
    f64 b5 = fma(b7, r2, 0x1.a01a014ee7b4bp-13);
    f64 b3 = fma(b5, r2, 0x1.1111111120dd7p-7);
    f64 b1 = fma(b3, r2, 0x1.5555555555516p-3);
    f64 g = fma(b1, r, a0);
    return fma(r2, g, lo);
  ]],
  derivation = "tools/fit/erf.py",
}

func "erf_product_hi" {
  doc  = "t (1 + v) (1 + r + p), rounded.",
  args = "t, v, r, p",
  -- (1 + v) (1 + r + p) = 1 + m, m = r + (v (1 + r + p) + p)
  body = [[
    T m = r + fma(v, 1 + (r + p), p);
    return fma(t, m, t);
  ]],
}

func "erf_product_lo" {
  doc  = "What the rounding of m and of erf_product_hi lost.",
  args = "t, v, r, p",
  body = [[
    T m_lo = fma(v, 1 + (r + p), p);
    T m = r + m_lo;
    T h = fma(t, m, t);
    return fma(t, m_lo - (m - r), fma(t, m, t - h));
  ]],
}

func "erfc" {
  doc    = "The complementary error function, 1 - erf(x), with full relative accuracy for large x.",
  args   = "x",
  -- W: error 2^-27.0 of erfc (f64, X: 2^-57.1).
  f32    = [[
    f32 a = abs(x);
    f32 z = a > 10.5 ? 10.5 : a;
    // e^(-z^2) = 2^k (1 + r_hi + p)
    f32 s = z * z;
    f32 s_lo = fma(z, z, -s);
    f32 n = erf_shifted(s);
    f32 k = erf_count(n);
    f32 r_hi = exp_rest_hi(-s, k);
    f32 p = erf_exp_rest(r_hi, exp_rest_lo(k, -s_lo));
    // e^(z^2) erfc(z) = t (1 + c) (1 + v)
    f32 d = fma(z, 1.5, 1);
    f32 d_lo = fma(z, 1.5, 1 - d);
    f32 t = 1 / d;
    f32 c = fma(-d_lo, t, fma(-d, t, 1));
    f32 u = t - 0.5;
    f32 u2 = u * u;
    f32 a12 = fma(-0x1.dc929ep2, u2, -0x1.604db8p4);
    f32 a10 = fma(a12, u2, 0x1.28d99cp3);
    f32 a8 = fma(a10, u2, 0x1.b4cb0ap1);
    f32 a6 = fma(a8, u2, -0x1.424b78p-2);
    f32 a4 = fma(a6, u2, -0x1.4220dp0);
    f32 a2 = fma(a4, u2, -0x1.fa28b8p-6);
    f32 a0 = fma(a2, u2, 0x1.3e505p-1);
    f32 b11 = fma(0x1.a8419ap4, u2, -0x1.086332p-1);
    f32 b9 = fma(b11, u2, -0x1.9cb8d6p2);
    f32 b7 = fma(b9, u2, -0x1.5bfe48p0);
    f32 b5 = fma(b7, u2, 0x1.36684ep0);
    f32 b3 = fma(b5, u2, 0x1.7a17ccp-1);
    f32 b1 = fma(b3, u2, -0x1.059dd8p-1);
    f32 w = fma(b1, u, a0);
    f32 v = (1 - t) * fma(w, t, -0x1.3acf42p-3);
    // sign and base: erfc(x) for x >= 0, 2 - erfc(-x) for x < 0, times 2^64
    f32 h = erf_product_hi(t, v, r_hi, p);
    f32 erfc_z = h + fma(h, c, erf_product_lo(t, v, r_hi, p));
    f32 scale = erf_scale(n);
    f32 base = x < 0 ? (f32)0x1p65 : 0;
    return fma(x < 0 ? -scale : scale, erfc_z, base) * 0x1p-64;
  ]],
  f64    = [[
    f64 a = abs(x);
    f64 z = a > 27.25 ? 27.25 : a;
    // e^(-z^2) = 2^k (1 + r_hi + p)
    f64 s = z * z;
    f64 s_lo = fma(z, z, -s);
    f64 n = erf_shifted(s);
    f64 k = erf_count(n);
    f64 r_hi = exp_rest_hi(-s, k);
    f64 p = erf_exp_rest(r_hi, exp_rest_lo(k, -s_lo));
    // e^(z^2) erfc(z) = t (1 + c) (1 + v)
    f64 d = fma(z, 1.5625, 1);
    f64 d_lo = fma(z, 1.5625, 1 - d);
    f64 g = z + 3.5;
    f64 i = 1 / (d * g);
    f64 t1 = g * i;
    f64 t = fma(t1, fma(-d_lo, t1, fma(-d, t1, 1)), t1);
    f64 c = fma(-d_lo, t, fma(-d, t, 1));
    f64 u = (z - 3.5) * (d * i);
    f64 u2 = u * u;
    f64 a18 = fma(-0x1.4e793ab351becp-24, u2, 0x1.5884e14ba68afp-21);
    f64 a16 = fma(a18, u2, -0x1.fce05975b8cp-19);
    f64 a14 = fma(a16, u2, 0x1.58302dfc9804ep-16);
    f64 a12 = fma(a14, u2, -0x1.6a2d90ebbbd7fp-14);
    f64 a10 = fma(a12, u2, -0x1.cf087222b6534p-14);
    f64 a8 = fma(a10, u2, 0x1.f312784050ae1p-8);
    f64 a6 = fma(a8, u2, -0x1.50363cd72178fp-11);
    f64 a4 = fma(a6, u2, -0x1.51cc42713fa5p-4);
    f64 a2 = fma(a4, u2, -0x1.3f540c15312bcp-5);
    f64 a0 = fma(a2, u2, 0x1.ea54f763132dbp-2);
    f64 b19 = fma(-0x1.9846995e44979p-26, u2, 0x1.f502a2821a935p-24);
    f64 b17 = fma(b19, u2, -0x1.1c0c0a30f6709p-21);
    f64 b15 = fma(b17, u2, 0x1.1176480a8c16cp-18);
    f64 b13 = fma(b15, u2, -0x1.557a7bd5652c1p-15);
    f64 b11 = fma(b13, u2, 0x1.942e919af96cep-12);
    f64 b9 = fma(b11, u2, -0x1.3b484b78df141p-9);
    f64 b7 = fma(b9, u2, -0x1.583487404dd57p-7);
    f64 b5 = fma(b7, u2, 0x1.20b1789d1249dp-5);
    f64 b3 = fma(b5, u2, 0x1.9e91c33ec2fb9p-4);
    f64 b1 = fma(b3, u2, -0x1.f0be0abe547d4p-4);
    f64 x_u = fma(b1, u, a0);
    f64 o = 1 - t;
    f64 w = fma(x_u, o, 0x1.95cd561f5fa7cp-2);
    f64 v = o * fma(w, t, -0x1.e52fc94bf692dp-4);
    // sign and base: erfc(x) for x >= 0, 2 - erfc(-x) for x < 0, times 2^64
    f64 h = erf_product_hi(t, v, r_hi, p);
    f64 erfc_z = h + fma(h, c, erf_product_lo(t, v, r_hi, p));
    f64 scale = erf_scale(n);
    f64 base = x < 0 ? (f64)0x1p65 : 0;
    return fma(x < 0 ? -scale : scale, erfc_z, base) * 0x1p-64;
  ]],
  ulp    = { f32 = 0.99, f64 = 1.0 },
  derivation = "tools/fit/erf.py",
}
