-- SPDX-License-Identifier: Apache-2.0
--
-- Radians to degrees and back: a product by a constant of two parts, the small one first, rounded once but for its own last
-- bits. Both parts are positive: those of opposite signs would give NaN at infinity.

constants {
  -- 180/pi and pi/180, the first part rounded down.
  DEGREES_HI_F32 = 0x1.ca5dcp5,
  DEGREES_LO_F32 = 0x1.a63c2p-19,
  DEGREES_HI_F64 = 0x1.ca5dc1a63c1f7p5,
  DEGREES_LO_F64 = 0x1.70c2a5d4dfd03p-48,
  RADIANS_HI_F32 = 0x1.1df46ap-6,
  RADIANS_LO_F32 = 0x1.294e9cp-33,
  RADIANS_HI_F64 = 0x1.1df46a2529d39p-6,
  RADIANS_LO_F64 = 0x1.5c1d8becdd291p-62,
}

func "degrees" {
  doc  = "An angle in degrees, from radians.",
  args = "x",
  f32  = [[ fma(x, DEGREES_HI_F32, x * DEGREES_LO_F32) ]],
  f64  = [[ fma(x, DEGREES_HI_F64, x * DEGREES_LO_F64) ]],
  derivation = "tools/fit/degrees.sollya",
}

func "radians" {
  doc  = "An angle in radians, from degrees.",
  args = "x",
  f32  = [[ fma(x, RADIANS_HI_F32, x * RADIANS_LO_F32) ]],
  f64  = [[ fma(x, RADIANS_HI_F64, x * RADIANS_LO_F64) ]],
  derivation = "tools/fit/degrees.sollya",
}
