-- SPDX-License-Identifier: Apache-2.0
--
-- The cube root, from the inverse cube root: no division, error 0.501 ULP.
--
-- 1. z, a to the power -1/3, a = |x|. The bits of a float are its logarithm to base 2, but for 0.09: a constant less a third of
--    the bits of a are those of z to 3.4%. With h = 1 - a z^3 the true value is z (1 - h)^(-1/3): a polynomial in h takes
--    the error to 2^-14.2 (f64: 2^-18.4).
-- 2. y = a z^2, the cube root to twice that error, and its remainder e = a - y^3, with y^2 in two parts.
-- 3. d = e / a:   y (1 - d)^(-1/3) = y + y d (1/3 + 2/9 d + 14/81 d^2 + ...). y d = e z^2 and, nearly, d = e z^2 z: that
--    is d sqrt(1 - d), which makes the last coefficient 23/81. f32 needs two terms, f64 three.
--
-- Very small a are scaled up first, for e would be subnormal.

constants {
  -- (4/3 bias - 0.068) 2^p, p the places of the exponent field: the constant for which the largest |h| is least, 0.1021.
  -- f32: in units of 2^13, with the shifter 3/2 * 2^23. f64: in units of 2^32, with 3/2 * 2^52 and what the 2^52 that
  -- has the bits of a in its low end comes to.
  CBRT_START_F32 = 173327.70133333333 + 0x1.8p23,
  CBRT_START_F64 = 1430186360.832 + 0x1.8p52 + 0x1.5555555555555p50,

  -- (1 - h)^(-1/3) = 1 + h (R1 + R2 h + ...), |h| <= 0.103.
  CBRT_F32_R1 = 0x1.56bb2p-2,
  CBRT_F32_R2 = 0x1.ca443p-3,
  CBRT_F64_R1 = 0x1.5553c94f4e3c2p-2,
  CBRT_F64_R2 = 0x1.c9b8f6df3816bp-3,
  CBRT_F64_R3 = 0x1.65d99b8450558p-3,
}

func "cbrt" {
  doc  = "The cube root.",
  args = "x",
  f32  = [[
    f32 size = abs(x);
    bool tiny = size < 0x1p-90;
    f32 a = tiny ? size * 0x1p72 : size;

    f32 t = fma((f32)raw_i32(a), -0x1.555556p-15, CBRT_START_F32);
    f32 z0 = as_f32(raw_u32(t) << 13);
    f32 h = fma(-(a * z0), z0 * z0, 1);
    f32 z = fma(z0 * h, fma(CBRT_F32_R2, h, CBRT_F32_R1), z0);

    f32 z2 = z * z;
    f32 y = a * z2;
    f32 y2 = y * y;
    f32 e = fma(-fma(y, y, -y2), y, fma(-y2, y, a));
    f32 w = e * z2;
    f32 r = fma(w, fma(w * z, 0x1.c71c72p-3, 0x1.555556p-2), y) * (tiny ? 0x1p-24 : 1.0);
    return size < INFINITY ? copysign(r, x) : x; ]],
  f64  = [[
    f64 size = abs(x);
    bool tiny = size < 0x1p-900;
    f64 a = tiny ? size * 0x1p180 : size;

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
    f64 r = fma(w, fma(d, fma(d, 0x1.22c3f35ba7819p-2, 0x1.c71c71c71c71cp-3), 0x1.5555555555555p-2), y);
    return size < INFINITY ? copysign(tiny ? r * 0x1p-60 : r, x) : x; ]],
  ulp = { f32 = 0.51, f64 = 0.51 },    -- f32: over all arguments; f64: 0.5002 measured
  derivation = "tools/fit/cbrt.sollya",
}
