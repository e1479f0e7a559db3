-- SPDX-License-Identifier: Apache-2.0
--
-- gelu(x) = x Phi(x) = x/2 erfc(-x / sqrt 2), Phi the distribution function of the standard normal.
--
-- Not through erfc: x / sqrt 2 would have to be carried in two parts. With z = |x|, Phi(x) = 1 - Phi(-x) gives one formula
--
--     gelu(x) = base - z Phi(-z),      base = x, but 0 for x < 0,      Phi(-z) = 1/2 e^(-z^2/2) G(z)
--
-- The left tail keeps full relative accuracy down to subnormal results (x = -14.4 in f32, -38.6 in f64) and ends in -0, the
-- limit, also at -infinity (where x * 0 would give NaN). Beyond its end base alone is the result: f32's product is less than any result
-- shows, f64's may have become anything. The sign is always that of x: base is -0 (f32), or the sign is set at the end (f64).
--
-- For x > 0 the subtraction must not cost a second rounding: where x is small, z Phi(-z) is nearly x/2, as large as the
-- result. So the product is in two parts, and base less the first is split exactly (base is 0 or not less) into hi and what its
-- rounding lost; one last sum rounds. All of it is scaled up by a power of two, so that the tail's products stay normal numbers.
--
-- f32, by tables of 16 items (looked up in registers, see templates/c/headers/kernel_strips.h):
--
--     2^((K z^2 + S) / 16) = 2^k (1 + j/16) 2^(s/16),   K = -8 / ln2, rounded: the left side is nearly e^(-z^2/2) 2^(S/16)
--     16 k + j = K z^2, rounded: m;  s = K z^2 - m + R_j,  R_j = j - 16 log2(1 + j/16) + S,  |s| <= 1.2: S centres it
--     2 Phi(-z) / 2^((K z^2 + S) / 16) = G(z) = C0 (1 + u p),  u = z - b,  p = C1 + C2 u + ... + C6 u^5
--
-- So G has what the rounding of K changes. 1 + j/16 has 5 bits and C0 19: their product is exact; b is where G(b) is nearly such a C0. The
-- exponent and two more bits of z + 1 tell b and its coefficients: where G falls steeply the intervals are short, and |u p| is
-- at most 0.126. h = 2^k (1 + j/16) C0 and what is added to it, l, which is small, are Phi(-z) times a power of two: of errors, 0.12 ULP
-- are those of l, 0.12 of its sum with what hi's rounding lost, 0.1 each of u p and C1 to C6, and 0.5 of the last rounding.
--
-- f64 has the shape of erfc's tail: see erf.lua for e^(-z^2/2) = 2^k (1 + r_hi + p), G(z) = t (1 + v) with
-- t = 1 / (1 + slope z), c, W, and the product in two parts. The scale 2^65 = 2^64 (see erf.lua) * 2 (the 1/2 of Phi(-z)).
-- Error budget, in ULP: 0.5 the last rounding, 0.2 v, 0.1 t and u, 0.1 the sum v (1 + r) + p, 0.05 e^r.

constants {
  -- -16 / (2 ln2)
  GELU_K_F32 = -0x1.715476p3,

  -- 3/2 * 2^23 + 16 * (127 + 63): what is added to it is rounded to an integer 16 k + j; its bits, shifted to the left by 19, are those of
  -- 2^(k + 63) (1 + j/16).
  GELU_SHIFT_F32 = 0x1.8p23 + 3040,

  -- The bits of 14.5: from there on Phi(-z) is less than any result shows. Those of 2^63: beyond, base scaled up may be infinite.
  GELU_END_BITS_F32   = 0x41680000,
  GELU_LARGE_BITS_F32 = 0x5f000000,

  -- 2^(s/16) = 1 + s (D1 + D2 s + ...), |s| <= 1.2: relative error 2^-31.
  GELU_D1_F32 = 0x1.62e43p-5,
  GELU_D2_F32 = 0x1.ebfbe4p-11,
  GELU_D3_F32 = 0x1.c6bd76p-17,
  GELU_D4_F32 = 0x1.3afbaap-23,
}

-- b, C0 to C6, R.
tables {
  GELU_AT = { "f32",
    0x1.393e58p0, 0x1.ba25e2p0, 0x1.1d7548p1, 0x1.5dcd84p1,
    0x1.b8688ap1, 0x1.1cd40ap2, 0x1.5d528ap2, 0x1.9da482p2,
    0x1.f8688p2, 0x1.3ceb7ap3, 0x1.7d50cep3, 0x1.b81d3ap3,
    0x1.d905ecp-4, 0x1.7761a8p-2, 0x1.3bddd4p-1, 0x1.bc6dp-1,
  },
  GELU_C0 = { "f32",
    0x1.d0974p-2, 0x1.73a64p-2, 0x1.338f4p-2, 0x1.05388p-2,
    0x1.ad33cp-3, 0x1.549cp-3, 0x1.19b04p-3, 0x1.dfd3p-4,
    0x1.8c4ecp-4, 0x1.3d22cp-4, 0x1.08608p-4, 0x1.cae5p-5,
    0x1.c64dcp-1, 0x1.7b77p-1, 0x1.42fc8p-1, 0x1.1726cp-1,
  },
  GELU_C1 = { "f32",
    -0x1.eeff74p-2, -0x1.a0827cp-2, -0x1.64c5aap-2, -0x1.36694ap-2,
    -0x1.04ecdep-2, -0x1.a66beep-3, -0x1.617388p-3, -0x1.2f40fp-3,
    -0x1.f82e38p-4, -0x1.958c72p-4, -0x1.530eb6p-4, -0x1.26bee8p-4,
    -0x1.83c29ep-1, -0x1.5b5568p-1, -0x1.38b6cep-1, -0x1.1adc44p-1,
  },
  GELU_C2 = { "f32",
    0x1.a2510cp-3, 0x1.30a10ep-3, 0x1.c8b1dep-4, 0x1.5f651ap-4,
    0x1.f8f29ep-5, 0x1.501344p-5, 0x1.db3978p-6, 0x1.601728p-6,
    0x1.e976d2p-7, 0x1.3e3914p-7, 0x1.be155p-8, 0x1.51a3fep-8,
    0x1.d3383ap-2, 0x1.80ac52p-2, 0x1.3f140ep-2, 0x1.0a78cap-2,
  },
  GELU_C3 = { "f32",
    -0x1.3ec14p-4, -0x1.992992p-5, -0x1.106548p-5, -0x1.771aecp-6,
    -0x1.d2aad6p-7, -0x1.02a892p-7, -0x1.37aa8p-8, -0x1.9114acp-9,
    -0x1.d4adfcp-10, -0x1.eed236p-11, -0x1.23887p-11, -0x1.80d9ep-12,
    -0x1.e10da2p-3, -0x1.711b78p-3, -0x1.1db5b6p-3, -0x1.bde384p-4,
  },
  GELU_C4 = { "f32",
    0x1.bec52cp-6, 0x1.ffe85ep-7, 0x1.32185ap-7, 0x1.7c74b6p-8,
    0x1.9e5ac2p-9, 0x1.82717ep-10, 0x1.8f9168p-11, 0x1.c0a268p-12,
    0x1.bb864ap-13, 0x1.7d7f6p-14, 0x1.7adf32p-15, 0x1.b4ab54p-16,
    0x1.b79ff8p-4, 0x1.3d1e06p-4, 0x1.cdc7e4p-5, 0x1.535c54p-5,
  },
  GELU_C5 = { "f32",
    -0x1.258048p-7, -0x1.2fd932p-8, -0x1.470acp-9, -0x1.74f942p-10,
    -0x1.67395ap-11, -0x1.1b5b9ap-12, -0x1.f986ccp-14, -0x1.f2dd2ep-15,
    -0x1.a51072p-16, -0x1.278a04p-17, -0x1.ecfccap-19, -0x1.ef5c54p-20,
    -0x1.6b1c58p-5, -0x1.f0428cp-6, -0x1.5be6d8p-6, -0x1.df72aap-7,
  },
  GELU_C6 = { "f32",
    0x1.52f264p-9, 0x1.4907b8p-10, 0x1.2ba8d2p-11, 0x1.5cc74p-12,
    0x1.1345ep-13, 0x1.77df56p-15, 0x1.2987d8p-16, 0x1.14b962p-17,
    0x1.633e5ap-19, 0x1.aaa48cp-21, 0x1.256d96p-22, 0x1.03d942p-23,
    0x1.dfb862p-7, 0x1.40d66cp-7, 0x1.0a3bd2p-7, 0x1.4b6106p-8,
  },
  GELU_REST = { "f32",
    0x1.6p-1, 0x1.270242p-2, -0x1.0068e8p-5, -0x1.1e0b5cp-2,
    -0x1.da784cp-2, -0x1.2ddd44p-1, -0x1.53a9fp-1, -0x1.6105p-1,
    -0x1.580348p-1, -0x1.3a784cp-1, -0x1.0a008ep-1, -0x1.9013acp-2,
    -0x1.d767f6p-3, -0x1.4948f6p-5, 0x1.6b024cp-3, 0x1.ae729ap-2,
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
  -- f32: error of G 2^-27.4 at most; f64, X: 2^-56.6 of Phi(-z).
  f32    = [[
    u32 size = raw_u32(x) & 0x7fffffff;
    f32 z = as_f32(size < GELU_END_BITS_F32 ? size : GELU_END_BITS_F32);
    // e^(-z^2/2) = 2^k (1 + j/16) (1 + q)
    f32 kz = z * GELU_K_F32;
    f32 n = fma(z, kz, GELU_SHIFT_F32);
    f32 m = n - GELU_SHIFT_F32;
    f32 s = fma(z, kz, -m) + fma(z, fma(z, GELU_K_F32, -kz), lookup(GELU_REST, raw_u32(n)));
    f32 q = s * fma(s, fma(s, fma(s, GELU_D4_F32, GELU_D3_F32), GELU_D2_F32), GELU_D1_F32);
    // 2 e^(z^2/2) Phi(-z) = c0 (1 + u p)
    u32 i = raw_u32(z + 1) >> 21;
    f32 u = z - lookup(GELU_AT, i);
    f32 p5 = fma(lookup(GELU_C6, i), u, lookup(GELU_C5, i));
    f32 p3 = fma(fma(p5, u, lookup(GELU_C4, i)), u, lookup(GELU_C3, i));
    f32 p = fma(fma(p3, u, lookup(GELU_C2, i)), u, lookup(GELU_C1, i));
    // h (1 + q) (1 + u p) = h + l
    f32 h = as_f32(raw_u32(n) << 19) * lookup(GELU_C0, i);
    f32 l = fma(fma(h, q, h) * u, p, h * q);
    // base - z Phi(-z), times 2^64; base - z h is hi less what its rounding lost
    u32 bits = raw_u32(x);
    f32 base = as_f32(bits < 0x80000000 ? bits : 0x80000000) * 0x1p64;
    f32 hi = fma(-z, h, base);
    f32 lo = fma(z, l, fma(z, h, hi - base));
    f32 y = canonical((hi - lo) * 0x1p-64);
    rare (size >= GELU_LARGE_BITS_F32) { y = x < 0 ? -0.0 : x; }
    return y;
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
  ulp    = { f32 = 0.99, f64 = 1.0 },
  derivation = "tools/fit/gelu.py (f32), tools/fit/erf.py (f64)",
}
