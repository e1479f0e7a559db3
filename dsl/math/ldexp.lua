-- SPDX-License-Identifier: Apache-2.0
--
-- x times a power of two: three factors 2^n1, 2^n2, 2^n3, which the exponents of their bits are, so that any sum n1 + n2 + n3
-- that matters is met. The last takes what it can of n, so the product is rounded once: where one of the first two has made it
-- subnormal, the last is the least there is and makes it 0.
--
-- Where 2^n is a normal number, one product is all: rare is what is beyond.

func "power_of_two" {
  doc  = "2 to the n, a whole number such that this is normal: added to a large constant its low bits are the exponent's.",
  args = "n",
  f32  = [[ as_f32(as_i32(n + (0x1.8p23 + 127)) << 23) ]],
  f64  = [[ as_f64(as_u64(n + (0x1.8p52 + 1023)) << 52) ]],
}

func "ldexp_far" {
  doc  = "x times 2 to the n, n rounded to a whole number: what ldexp does where 2^n is no normal number.",
  args = "x, n",
  f32  = [[
    f32 all = rint(minimum(maximum(n, -300), 300));
    f32 n3 = minimum(maximum(all, -126), 127);
    f32 n2 = minimum(maximum(all - n3, -126), 127);
    f32 product = x * power_of_two(all - n3 - n2) * power_of_two(n2) * power_of_two(n3);
    return n == n ? product : NAN; ]],
  f64  = [[
    f64 all = rint(minimum(maximum(n, -2200), 2200));
    f64 n3 = minimum(maximum(all, -1022), 1023);
    f64 n2 = minimum(maximum(all - n3, -1022), 1023);
    f64 product = x * power_of_two(all - n3 - n2) * power_of_two(n2) * power_of_two(n3);
    return n == n ? product : NAN; ]],
}

func "ldexp" {
  doc  = "x times 2 to the n, n rounded to a whole number.",
  args = "x, n",
  f32  = [[
    f32 y = x * as_f32((raw_u32(n + 0x1.8p23) + 127) << 23);
    rare (!(abs(n) < 126.0)) { y = ldexp_far(x, n); }
    return y; ]],
  f64  = [[
    f64 y = x * as_f64((raw_u64(n + 0x1.8p52) + 1023) << 52);
    rare (!(abs(n) < 1022.0)) { y = ldexp_far(x, n); }
    return y; ]],
}

func "ldexp_whole" {
  doc  = "ldexp of an integer.",
  args = "x, i32 n",
  f32  = [[
    u32 above_least = (u32)n + 126;
    f32 y = x * as_f32((above_least << 23) + 0x800000);
    rare (above_least >= 254) { y = ldexp_far(x, (f32)n); }
    return y; ]],
  f64  = [[
    u32 above_least = (u32)n + 1022;
    f64 y = x * as_f64(((u64)above_least << 52) + 0x10000000000000);
    rare (above_least >= 2046) { y = ldexp_far(x, (f64)n); }
    return y; ]],
}
