-- SPDX-License-Identifier: Apache-2.0
--
-- gelu(x) = x Phi(x) = x/2 erfc(-x / sqrt 2), Phi the distribution function of the standard normal.
--
-- Not through erfc: x / sqrt 2 would have to be carried in two parts. With z = |x|, Phi(x) = 1 - Phi(-x) gives one formula
--
--     gelu(x) = base - z Phi(-z),      base = x, but 0 for x < 0,      Phi(-z) = 1/2 e^(-z^2/2) G(z)
--
-- The left tail keeps full relative accuracy down to subnormal results (x = -14.4 in f32, -38.6 in f64) and ends in -0, the
-- limit, also at -infinity (where x * 0 would give NaN). Beyond its end base alone is the result, whatever the rest has
-- become. The sign is always that of x: base is -0 (f32), or the sign is set at the end (f64).
--
-- For x > 0 the subtraction must not cost a second rounding: where x is small, z Phi(-z) is nearly x/2, as large as the
-- result. So the product is in two parts, h + l times y, which is z and a power of two; base - y h is split exactly
-- (base >= y h) into hi and what its rounding lost, and one last sum rounds. All of it is scaled up by a power of two, so that
-- y stays a normal number.
--
-- f32, by tables of 16 items (looked up in registers, see templates/c/kernel_strips.h):
--
--     e^(-z^2/2) = 2^k T (1 + q),    T = 2^(j/16),    q = e^r - 1, |r| <= ln2/32
--     G(z) = C0 (1 + u p),           u = z - b,       p = C1 + C2 u + ... + C6 u^5
--
-- The exponent and two more bits of z + 1.1875 tell b and its coefficients: where G falls steeply the intervals are short, and
-- |u p| is at most 0.15. b is near the middle of its interval where G(b) is nearly a float; it is 0 in the first. So
-- h = T C0 has a known error, and what is added to it is small: 0.15 ULP for l, 0.1 each for y l, p and C1 to C6, and 0.5 for
-- the last rounding.
--
-- f64 has the shape of erfc's tail: see erf.lua for e^(-z^2/2) = 2^k (1 + r_hi + p), G(z) = t (1 + v) with
-- t = 1 / (1 + slope z), c, W, and the product in two parts. The scale 2^65 = 2^64 (see erf.lua) * 2 (the 1/2 of Phi(-z)).
-- Error budget, in ULP: 0.5 the last rounding, 0.2 v, 0.1 t and u, 0.1 the sum v (1 + r) + p, 0.05 e^r.

constants {
  -- 3/2 * 2^23 + 16 * (127 + 63): what is added to it is rounded to an integer m = 16 k + j; four bits hold j, those above
  -- them the exponent field of 2^(k + 63).
  GELU_SHIFT_F32 = 0x1.8p23 + 3040,

  -- 16 / ln2; ln2 / 16 = HI + LO, HI of 16 bits, so that m HI is exact.
  GELU_16_LN2_F32    = 0x1.715476p4,
  GELU_LN2_16_HI_F32 = 0x1.62e4p-5,
  GELU_LN2_16_LO_F32 = 0x1.7f7d1cp-24,

  -- The bits of 14.5: beyond it the result is x or -0.
  GELU_END_BITS_F32 = 0x41680000,

  -- e^r = 1 + r + r^2 (E2 + E3 r), |r| <= ln2/32: error 2^-29.2.
  GELU_E2_F32 = 0x1.00022ep-1,
  GELU_E3_F32 = 0x1.55564ep-3,
}

-- b, C0 to C6; T and the logarithm of what its rounding left out.
tables {
  GELU_AT = { "f32",
    0x1.0ffdp0, 0x1.90002p0, 0x1.07fe52p1, 0x1.47febap1,
    0x1.a7ff1cp1, 0x1.14001ep2, 0x1.53ffcap2, 0x1.94018ap2,
    0x1.f40204p2, 0x1.39ff14p3, 0x1.79ff7ap3, 0x1.ba016p3,
    0x0p0, 0x1.8008ap-3, 0x1.bffeeep-2, 0x1.5ffb2cp-1,
  },
  GELU_C0 = { "f32",
    0x1.035032p-1, 0x1.9a28bcp-2, 0x1.506a7ap-2, 0x1.1bb802p-2,
    0x1.c915f8p-3, 0x1.692be2p-3, 0x1.29aefcp-3, 0x1.f99906p-4,
    0x1.9bc5f6p-4, 0x1.49b49ep-4, 0x1.12ba36p-4, 0x1.d6c422p-5,
    0x1p0, 0x1.bb92c6p-1, 0x1.74d82ap-1, 0x1.3eea56p-1,
  },
  GELU_C1 = { "f32",
    -0x1.069e32p-1, -0x1.b7cc52p-2, -0x1.76fb54p-2, -0x1.44e26ap-2,
    -0x1.0ccbcap-2, -0x1.b1dd1cp-3, -0x1.6a113p-3, -0x1.35e1e8p-3,
    -0x1.fc5c2ap-4, -0x1.992decp-4, -0x1.55f3cap-4, -0x1.258262p-4,
    -0x1.988454p-1, -0x1.7786fap-1, -0x1.50fd1p-1, -0x1.2fde6ep-1,
  },
  GELU_C2 = { "f32",
    0x1.d1f6p-3, 0x1.50d088p-3, 0x1.f53d22p-4, 0x1.7efe1cp-4,
    0x1.0b3db8p-4, 0x1.61eb6cp-5, 0x1.f217acp-6, 0x1.6f5a3p-6,
    0x1.f18128p-7, 0x1.43e50ep-7, 0x1.c5af4ap-8, 0x1.4ed444p-8,
    0x1.00008ap-1, 0x1.b9951cp-2, 0x1.6c91ap-2, 0x1.2f19f2p-2,
  },
  GELU_C3 = { "f32",
    -0x1.7241bap-4, -0x1.d71686p-5, -0x1.36c1cep-5, -0x1.a82b0ap-6,
    -0x1.fa7d44p-7, -0x1.16e16ap-7, -0x1.4de2f6p-8, -0x1.aaf2eep-9,
    -0x1.e016bcp-10, -0x1.fbfc42p-11, -0x1.2af4e2p-11, -0x1.7c1012p-12,
    -0x1.109cd2p-2, -0x1.bd7f3cp-3, -0x1.56fef4p-3, -0x1.0a3e54p-3,
  },
  GELU_C4 = { "f32",
    0x1.0d41bcp-5, 0x1.319694p-6, 0x1.698688p-7, 0x1.bd0288p-8,
    0x1.cbfdb2p-9, 0x1.a9d7acp-10, 0x1.b50244p-11, 0x1.e709d2p-12,
    0x1.c93db8p-13, 0x1.8acc14p-14, 0x1.877606p-15, 0x1.ad50e6p-16,
    0x1.0f857ap-3, 0x1.8fd0bp-4, 0x1.219346p-4, 0x1.a72af4p-5,
  },
  GELU_C5 = { "f32",
    -0x1.6f7fd6p-7, -0x1.76ab82p-8, -0x1.913dbap-9, -0x1.c0bfcp-10,
    -0x1.997be8p-11, -0x1.403804p-12, -0x1.1b0398p-13, -0x1.1440dap-14,
    -0x1.b82f5ap-16, -0x1.34ed9cp-17, -0x1.021b26p-18, -0x1.e89e42p-20,
    -0x1.3e4126p-3, -0x1.47c94cp-5, -0x1.bcec4ep-6, -0x1.369826p-6,
  },
  GELU_C6 = { "f32",
    0x1.d0347ep-9, 0x1.ad0d96p-10, 0x1.a5676cp-11, 0x1.af6446p-12,
    0x1.57ae5p-13, 0x1.ccae3ep-15, 0x1.625f74p-16, 0x1.3077a6p-17,
    0x1.977d7cp-19, 0x1.d6f42ap-21, 0x1.4df3eap-22, 0x1.127e0ep-23,
    0x1.1567f4p-1, 0x1.ecac9p-7, 0x1.3518ecp-7, 0x1.a7a152p-8,
  },
  GELU_POWER = { "f32",
    0x1p0, 0x1.0b5586p0, 0x1.172b84p0, 0x1.2387a6p0,
    0x1.306fep0, 0x1.3dea64p0, 0x1.4bfdaep0, 0x1.5ab07ep0,
    0x1.6a09e6p0, 0x1.7a1148p0, 0x1.8ace54p0, 0x1.9c4918p0,
    0x1.ae89fap0, 0x1.c199bep0, 0x1.d5818ep0, 0x1.ea4afap0,
  },
  GELU_POWER_LO = { "f32",
    0x0p0, 0x1.8d96d4p-25, -0x1.9c0c22p-27, 0x1.964902p-25,
    0x1.125002p-25, 0x1.370be4p-25, -0x1.0a3552p-25, -0x1.00d8acp-27,
    0x1.26055cp-26, -0x1.05cb44p-25, 0x1.67a1cap-28, 0x1.a3b5e4p-28,
    -0x1.f9c306p-27, -0x1.6961b4p-28, -0x1.a5217cp-28, 0x1.61428ep-28,
  },
}

func "gelu_product_lo" {
  doc  = "As erf_product_lo, for v with a low word, and with what the rounding of m_lo lost: gelu is 1.03 ULP off without these.",
  args = "t, v, v_lo, r, p",
  f64  = [[
    f64 e = 1 + (r + p);
    f64 m_lo = fma(v, e, p);
    f64 m = r + m_lo;
    f64 h = fma(t, m, t);
    f64 lost = fma(v_lo, e, fma(v, e, p - m_lo));
    return fma(t, (m_lo - (m - r)) + lost, fma(t, m, t - h));
  ]],
}

func "gelu" {
  doc    = "Gaussian error linear unit, exact: x times the normal distribution function of x.",
  args   = "x",
  -- f32: error of G 2^-27.3 at most; f64, X: 2^-56.6 of Phi(-z).
  f32    = [[
    f32 z = abs(x);
    // e^(-z^2/2) = 2^k T (1 + q), q = e^r - 1
    f32 half_z = -0.5 * z;
    f32 s = z * half_z;
    f32 n = fma(s, GELU_16_LN2_F32, GELU_SHIFT_F32);
    f32 m = n - GELU_SHIFT_F32;
    f32 s_lo = fma(z, half_z, -s);
    f32 r_lo = fma(-m, GELU_LN2_16_LO_F32, lookup(GELU_POWER_LO, raw_u32(n))) + s_lo;
    f32 r = fma(-m, GELU_LN2_16_HI_F32, s) + r_lo;
    f32 q = fma(r * r, fma(r, GELU_E3_F32, GELU_E2_F32), r);
    f32 power = lookup(GELU_POWER, raw_u32(n));
    // 2 e^(z^2/2) Phi(-z) = c0 (1 + u p)
    u32 i = raw_u32(z + 1.1875) >> 21;
    f32 u = z - lookup(GELU_AT, i);
    f32 p5 = fma(lookup(GELU_C6, i), u, lookup(GELU_C5, i));
    f32 p3 = fma(fma(p5, u, lookup(GELU_C4, i)), u, lookup(GELU_C3, i));
    f32 p = fma(fma(p3, u, lookup(GELU_C2, i)), u, lookup(GELU_C1, i));
    f32 c = lookup(GELU_C0, i);
    // T c (1 + q) (1 + u p) = h + l
    f32 h = power * c;
    f32 l = fma(fma(h, q, h) * u, p, fma(h, q, fma(power, c, -h)));
    // base - z Phi(-z), times 2^64; base - y h is split into hi and what its rounding lost
    f32 base = x < 0 ? -0.0 : x;
    f32 scaled_base = base * 0x1p64;
    f32 y = z * as_f32(raw_u32(n) >> 4 << 23);
    f32 hi = fma(-y, h, scaled_base);
    f32 lo = fma(-y, l, fma(-y, h, scaled_base - hi));
    return raw_u32(z) - 1 < GELU_END_BITS_F32 ? (hi + lo) * 0x1p-64 : base;
  ]],
  f64    = [[
    f64 z = abs(x);
    // e^(-z^2/2) = 2^k (1 + r_hi + p)
    f64 half_z = 0.5 * z;
    f64 s = z * half_z;
    f64 s_lo = fma(z, half_z, -s);
    f64 n = erf_shifted(s);
    f64 k = erf_count(n);
    f64 r_hi = exp_rest_hi(-s, k);
    f64 p = erf_exp_rest(r_hi, exp_rest_lo(k, -s_lo));
    // 2 e^(z^2/2) Phi(-z) = t (1 + c) (1 + v)
    f64 d = fma(z, 1.109375, 1);
    f64 d_lo = fma(z, 1.109375, 1 - d);
    f64 g = z + 5;
    f64 i = 1 / (d * g);
    f64 t1 = g * i;
    f64 t = fma(t1, fma(-d_lo, t1, fma(-d, t1, 1)), t1);
    f64 c = fma(-d_lo, t, fma(-d, t, 1));
    f64 u = (z - 5) * (d * i);
    f64 u2 = u * u;
    f64 a18 = fma(-0x1.70c89903bf1e1p-24, u2, 0x1.714ba55f8d9ebp-21);
    f64 a16 = fma(a18, u2, -0x1.13a8759c4d93p-18);
    f64 a14 = fma(a16, u2, 0x1.88d51d8916a67p-16);
    f64 a12 = fma(a14, u2, -0x1.d16ac93ebbdd6p-14);
    f64 a10 = fma(a12, u2, 0x1.91d25de4589f9p-16);
    f64 a8 = fma(a10, u2, 0x1.05486dab6b4cap-7);
    f64 a6 = fma(a8, u2, -0x1.c1489304c3f92p-10);
    f64 a4 = fma(a6, u2, -0x1.57d925b2fcfb4p-4);
    f64 a2 = fma(a4, u2, -0x1.3f603f953337cp-5);
    f64 a0 = fma(a2, u2, 0x1.f177c906535b7p-2);
    f64 b19 = fma(-0x1.69b6e25c58738p-26, u2, 0x1.16dddb3d1ae33p-24);
    f64 b17 = fma(b19, u2, -0x1.79f22f81a7a5ep-23);
    f64 b15 = fma(b17, u2, 0x1.30fe5662dc118p-19);
    f64 b13 = fma(b15, u2, -0x1.1ae6c61d544cep-15);
    f64 b11 = fma(b13, u2, 0x1.953cdbb3bd06p-12);
    f64 b9 = fma(b11, u2, -0x1.681887754a60cp-9);
    f64 b7 = fma(b9, u2, -0x1.53b3c309299e3p-7);
    f64 b5 = fma(b7, u2, 0x1.2f1daae1ad50cp-5);
    f64 b3 = fma(b5, u2, 0x1.a073960940005p-4);
    f64 b1 = fma(b3, u2, -0x1.ecc2dc18cd6fcp-4);
    f64 x_u = fma(b1, u, a0);
    f64 o = 1 - t;
    f64 w = fma(x_u, o, 0x1.951f39cf98f7cp-2);
    f64 q = fma(w, t, -0x1.d6699d4049df5p-4);
    f64 v = o * q;
    f64 v_lo = fma(1 - o - t, q, fma(o, q, -v)); // what the roundings of o and v lost
    // base - z Phi(-z), times 2^65; base - y h is split into hi and what its rounding lost
    f64 h = erf_product_hi(t, v, r_hi, p);
    f64 h_lo = fma(h, c, gelu_product_lo(t, v, v_lo, r_hi, p));
    f64 base = x < 0 ? 0 : x;
    f64 scaled_base = base * 0x1p65;
    f64 y = z * erf_scale(n);
    f64 hi = fma(-y, h, scaled_base);
    f64 lo = fma(-y, h_lo, fma(-y, h, scaled_base - hi));
    return copysign(z > 38.75 ? base : (hi + lo) * 0x1p-65, x);
  ]],
  ulp    = { f32 = 0.96, f64 = 1.0 },
  derivation = "tools/fit/gelu.py (f32), tools/fit/erf.py (f64)",
}
