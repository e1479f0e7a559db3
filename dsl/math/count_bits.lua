-- SPDX-License-Identifier: Apache-2.0
--
-- How many bits of an unsigned integer are 1: of pairs, of groups of four, of bytes, then of all bytes added up by shifts
-- (a multiplication of 64 bits is several instructions where there is no AVX-512).

func "count_bits" {
  doc    = "The bits that are 1.",
  args   = "x",
  result = "u8",
  u8  = [[
    u8 a = x - ((x >> 1) & 0x55);
    u8 b = (a & 0x33) + ((a >> 2) & 0x33);
    return (b + (b >> 4)) & 0x0f; ]],
  u16 = [[
    u16 a = x - ((x >> 1) & 0x5555);
    u16 b = (a & 0x3333) + ((a >> 2) & 0x3333);
    u16 c = (b + (b >> 4)) & 0x0f0f;
    return (u8)((c + (c >> 8)) & 0x1f); ]],
  u32 = [[
    u32 a = x - ((x >> 1) & 0x55555555);
    u32 b = (a & 0x33333333) + ((a >> 2) & 0x33333333);
    u32 c = (b + (b >> 4)) & 0x0f0f0f0f;
    u32 d = c + (c >> 8);
    return (u8)((d + (d >> 16)) & 0x3f); ]],
  u64 = [[
    u64 a = x - ((x >> 1) & 0x5555555555555555);
    u64 b = (a & 0x3333333333333333) + ((a >> 2) & 0x3333333333333333);
    u64 c = (b + (b >> 4)) & 0x0f0f0f0f0f0f0f0f;
    u64 d = c + (c >> 8);
    u64 e = d + (d >> 16);
    return (u8)((e + (e >> 32)) & 0x7f); ]],
}
