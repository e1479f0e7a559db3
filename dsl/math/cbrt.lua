-- SPDX-License-Identifier: Apache-2.0
--
-- The cube root, from the inverse cube root: no division.
--
-- The bits of a float are its logarithm to base 2, but for 0.09: a constant less a third of the bits of a = |x| are those of z,
-- which is a to the power -1/3 but for some percent.
--
-- f64, error 0.501 ULP:
--
-- 1. z to 3.4%. With h = 1 - a z^3 the true value is z (1 - h)^(-1/3): a polynomial in h takes the error to 2^-18.4.
-- 2. y = a z^2, the cube root to twice that error, and its remainder e = a - y^3, with y^2 in two parts.
-- 3. d = e / a:   y (1 - d)^(-1/3) = y + y d (1/3 + 2/9 d + 14/81 d^2 + ...). y d = e z^2 and, nearly, d = e z^2 z: that
--    is d sqrt(1 - d), which makes the last coefficient 23/81.
--
-- f32: z is smaller by sqrt(3), since a^(-2/3) / 3 is needed twice, and z^2 P(u), u = a z^3, is that with an error of 2^-18.3.
-- Three times a times it is y, and (a - y^3) times it the correction, with one rounding that shows before the last, that of y^2:
-- 0.24 ULP.
--
-- Very small a are scaled up first, for the remainder would be subnormal; these and infinity are rare.

constants {
  -- (4/3 bias - 0.068) 2^p, p the places of the exponent field: the constant for which the largest |h| is least, 0.1021. f64: in
  -- units of 2^32, with the shifter 3/2 * 2^52 and what the 2^52 that has the bits of a in its low end comes to. f32: in units of
  -- 2^13, with 3/2 * 2^23, less log2(sqrt 3); the quotient of the largest u and the least is smallest.
  CBRT_START_F32 = 12755400.0,
  CBRT_START_F64 = 1430186360.832 + 0x1.8p52 + 0x1.5555555555555p50,

  -- f32: u^(-2/3) / 3, u from 0.1668 to 0.1983: relative error 2^-18.3.
  CBRT_F32_P0 =  0x1.6922cp+1,
  CBRT_F32_P1 = -0x1.29b38cp+4,
  CBRT_F32_P2 =  0x1.fea3a8p+5,
  CBRT_F32_P3 = -0x1.5351f6p+6,

  -- The bits of the least a that is not scaled up, 2^-110, and those of infinity less these.
  CBRT_LEAST_BITS_F32 = 0x08800000,
  CBRT_RANGE_BITS_F32 = 0x77000000,
  CBRT_LEAST_BITS_F64 = 0x07b0000000000000, -- of 2^-900
  CBRT_RANGE_BITS_F64 = 0x7840000000000000,

  -- f64: (1 - h)^(-1/3) = 1 + h (R1 + R2 h + ...), |h| <= 0.103.
  CBRT_F64_R1 = 0x1.5553c94f4e3c2p-2,
  CBRT_F64_R2 = 0x1.c9b8f6df3816bp-3,
  CBRT_F64_R3 = 0x1.65d99b8450558p-3,
}

func "cbrt_near" {
  doc  = "The cube root of a number that is not negative; of zero, and from 2^-110 (f64: 2^-900) up.",
  args = "a",
  f32  = [[
    f32 t = fma((f32)raw_i32(a), -0x1.555556p-15, CBRT_START_F32);
    f32 z = as_f32(raw_u32(t) << 13);
    f32 s = z * z;
    f32 u = a * s * z;
    f32 z2 = s * fma(fma(fma(CBRT_F32_P3, u, CBRT_F32_P2), u, CBRT_F32_P1), u, CBRT_F32_P0);

    f32 third = a * z2;
    f32 y = 3 * third;
    return fma(fma(-(y * y), y, a), z2, y); ]],
  f64  = [[
    f64 t = fma(as_f64((raw_u64(a) >> 32) | 0x4330000000000000), -0x1.5555555555555p-2, CBRT_START_F64);
    f64 z0 = as_f64(raw_u64(t) << 32);
    f64 h = fma(-(a * z0), z0 * z0, 1);
    f64 z = fma(z0 * h, fma(fma(CBRT_F64_R3, h, CBRT_F64_R2), h, CBRT_F64_R1), z0);

    f64 z2 = z * z;
    f64 y = a * z2;
    f64 y2 = y * y;
    f64 e = fma(-fma(y, y, -y2), y, fma(-y2, y, a));
    f64 w = e * z2;
    f64 d = w * z;
    return fma(w, fma(d, fma(d, 0x1.22c3f35ba7819p-2, 0x1.c71c71c71c71cp-3), 0x1.5555555555555p-2), y); ]],
}

func "cbrt" {
  doc  = "The cube root.",
  args = "x",
  f32  = [[
    f32 size = abs(x);
    u32 key = raw_u32(size) - CBRT_LEAST_BITS_F32;
    f32 y = canonical(copysign(cbrt_near(size), x));
    rare (key >= CBRT_RANGE_BITS_F32) {
      f32 r = cbrt_near(size * 0x1p72) * 0x1p-24;
      y = size < INFINITY ? copysign(r, x) : x;
    }
    return y; ]],
  f64  = [[
    f64 size = abs(x);
    u64 key = raw_u64(size) - CBRT_LEAST_BITS_F64;
    f64 y = canonical(copysign(cbrt_near(size), x));
    rare (key >= CBRT_RANGE_BITS_F64) {
      f64 r = cbrt_near(size * 0x1p180) * 0x1p-60;
      y = size < INFINITY ? copysign(r, x) : x;
    }
    return y; ]],
  ulp = { f32 = 0.76, f64 = 0.51 },    -- f32: over all arguments, 0.75; f64: 0.5002 measured
  derivation = "tools/fit/cbrt.py",
}
