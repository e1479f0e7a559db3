-- gelu(x) = x Phi(x) = x/2 erfc(-x / sqrt 2), Phi the distribution function of the standard normal.
--
-- Not through erfc: x / sqrt 2 would have to be carried in two parts. With z = |x|, Phi(x) = 1 - Phi(-x) gives one formula
--
--     gelu(x) = base - z Phi(-z),    base = x for x > 0, else 0
--
-- and Phi(-z) = 1/2 e^(-z^2/2) R(z) has exactly the shape of erfc's tail: see erf.lua for e^(-z^2/2) = 2^k (1 + r_hi + p),
-- R(z) = t (1 + v) with t = 1 / (1 + slope z), c, W, and the product in two parts. The left tail keeps full relative
-- accuracy down to subnormal results (x = -14.4 in f32, -38.6 in f64) and ends in -0, the limit, also at -infinity
-- (where x * 0 would give NaN).
--
-- For x > 0 the subtraction must not cost a second rounding: where x is small, z Phi(-z) is nearly x/2, as large as the
-- result. So base - y h is split exactly (base >= y h) into hi and what its rounding lost, and one last sum rounds.
-- The scale 2^65 = 2^64 (see erf.lua) * 2 (the 1/2 of Phi(-z)); beyond `end` base alone is the result, which also drops
-- the garbage that e^(-z^2/2) is there, and the overflow of base * 2^65. The sign is always that of x.
--
-- Error budget, in ULP: 0.5 the last rounding, 0.2 v, 0.1 t and u, 0.1 the sum v (1 + r) + p, 0.05 e^r.

func "gelu_product_lo" {
  doc  = "As erf_product_lo, for v with a low word, and with what the rounding of m_lo lost: without these two f64 gelu is 1.03 ULP off.",
  args = "t, v, v_lo, r, p",
  body = [[
    T e = 1 + (r + p);
    T m_lo = fma(v, e, p);
    T m = r + m_lo;
    T h = fma(t, m, t);
    T lost = fma(v_lo, e, fma(v, e, p - m_lo));
    return fma(t, (m_lo - (m - r)) + lost, fma(t, m, t - h));
  ]],
}

func "gelu" {
  doc    = "Gaussian error linear unit, exact: x times the normal distribution function of x.",
  args   = "x",
  -- W: error 2^-27.9 of Phi(-z) (f64, X: 2^-56.6).
  f32    = [[
    f32 z = abs(x);
    // e^(-z^2/2) = 2^k (1 + r_hi + p)
    f32 half_z = 0.5 * z;
    f32 s = z * half_z;
    f32 s_lo = fma(z, half_z, -s);
    f32 n = erf_shifted(s);
    f32 k = erf_count(n);
    f32 r_hi = exp_rest_hi(-s, k);
    f32 p = erf_exp_rest(r_hi, exp_rest_lo(k, -s_lo));
    // 2 e^(z^2/2) Phi(-z) = t (1 + c) (1 + v)
    f32 d = fma(z, 1.046875, 1);
    f32 d_lo = fma(z, 1.046875, 1 - d);
    f32 t = 1 / d;
    f32 c = fma(-d_lo, t, fma(-d, t, 1));
    f32 u = t - 0.46875;
    f32 u2 = u * u;
    f32 a10 = fma(-0x1.0320dcp5, u2, 0x1.751f62p2);
    f32 a8 = fma(a10, u2, 0x1.606378p2);
    f32 a6 = fma(a8, u2, 0x1.121cf4p-2);
    f32 a4 = fma(a6, u2, -0x1.61eba2p0);
    f32 a2 = fma(a4, u2, -0x1.216806p-3);
    f32 a0 = fma(a2, u2, 0x1.42a0bap-1);
    f32 b11 = fma(0x1.459d54p4, u2, 0x1.a8966ap3);
    f32 b9 = fma(b11, u2, -0x1.1657ecp3);
    f32 b7 = fma(b9, u2, -0x1.45f306p1);
    f32 b5 = fma(b7, u2, 0x1.16e33cp0);
    f32 b3 = fma(b5, u2, 0x1.d147d6p-1);
    f32 b1 = fma(b3, u2, -0x1.e83f32p-2);
    f32 w = fma(b1, u, a0);
    f32 v = (1 - t) * fma(w, t, -0x1.5155e4p-3);
    // base - z Phi(-z), times 2^65; base - y h is split into hi and what its rounding lost
    f32 h = erf_product_hi(t, v, r_hi, p);
    f32 h_lo = fma(h, c, erf_product_lo(t, v, r_hi, p));
    f32 base = x < 0 ? 0 : x;
    f32 scaled_base = base * 0x1p65;
    f32 y = z * erf_scale(n);
    f32 hi = fma(-y, h, scaled_base);
    f32 lo = fma(-y, h_lo, fma(-y, h, scaled_base - hi));
    return copysign(z > 14.75 ? base : (hi + lo) * 0x1p-65, x);
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
  ulp    = { f32 = 0.98, f64 = 1.0 },
  derivation = "tools/fit/erf.py",
}
