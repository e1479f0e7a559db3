-- SPDX-License-Identifier: Apache-2.0
--
-- 1 with the sign of x, or no bits of it where x is a zero.

func "sign_of_number" {
  doc  = "1 where x is positive, -1 where it is negative, 0 for the zeros, NaN for NaN.",
  args = "x",
  f32  = [[
    u32 one = (raw_u32(x) & 0x80000000) | 0x3f800000;
    return canonical(x == x ? as_f32(x != 0 ? one : 0) : NAN); ]],
  f64  = [[
    u64 one = (raw_u64(x) & 0x8000000000000000) | 0x3ff0000000000000;
    return canonical(x == x ? as_f64(x != 0 ? one : 0) : NAN); ]],
}
