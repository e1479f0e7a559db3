-- SPDX-License-Identifier: Apache-2.0
--
-- The hyperbolic sine and cosine, from the even and the odd part of e^r.
--
--     |x| = k ln2 + r,  |r| <= ln2 / 2,      e^|x| = 2^k (cosh r + sinh r),   e^-|x| = 2^-k (cosh r - sinh r)
--
--     sinh|x| = d cosh r + c sinh r        c = (2^k + 2^-k) / 2
--     cosh x  = c cosh r + d sinh r        d = (2^k - 2^-k) / 2
--
-- There is no division, and for k = 0 (c = 1, d = 0) the sine is sinh r, accurate however small. r = h + l as in exp.lua.
-- The leading terms, d + c h (or c + d h), are summed as v and what its rounding loses (an exact subtraction and an fma), for at
-- k = 1, h = -0.346, they cancel from 0.75 to 0.32; to that belongs what the rounding of d (or c) itself loses from k = 12 on
-- (f64: 27). The terms from r^2 / 2 on are at most 0.13 of the result and are rounded.
--
-- The largest errors of the sine in f32 are at k = 12, where c is 1 + 2^-24 and rounds to 1.
--
-- Everything is a fourth of what is written above, since 2^k / 2 overflows before the result does: the last operation
-- multiplies by 4. 2^-k is made of the bits of 2^k; where its field would be negative, it is of no account, and the mask
-- keeps it small. Halving loses the last bits of subnormals: tiny x is its own sine.

constants {
  -- 3/2 * 2^23 (f64: 2^52): adding it rounds to integer. With the exponent bias less 3 added, the low bits of the sum are the
  -- exponent field of 2^(k-3). Fields of 2^(k-3) and 2^(-k-3) add up to twice that.
  SINH_SHIFT_F32   = 0x1.8p23 + 124,
  SINH_SHIFT_F64   = 0x1.8p52 + 1020,
  SINH_TWICE_F32   = 0x7c000000,
  SINH_TWICE_F64   = 0x7f80000000000000,

  -- The results are infinite from 89.42 (f64: 710.48) on.
  SINH_MAX_F32 = 90.0,
  SINH_MAX_F64 = 711.0,

  -- ln2 = HI + LO: HI is ln2 rounded to the type, and x - k HI is exact all the same, see exp.lua.
  SINH_LN2_HI_F32 =  0x1.62e43p-1,
  SINH_LN2_LO_F32 = -0x1.05c61p-29,
  SINH_LN2_HI_F64 =  0x1.62e42fefa39efp-1,
  SINH_LN2_LO_F64 =  0x1.abc9e3b39803fp-56,

  -- cosh r = 1 + r^2/2 + C4 r^4 + ...: relative error 2^-33.2 (f64: 2^-57.3). sinh r = r + S3 r^3 + ...: 2^-34.1 (f64: 2^-61.6).
  SINH_F32_C4   =  0x1.5554e6p-5,
  SINH_F32_C6   =  0x1.6d4f0cp-10,
  SINH_F32_S3   =  0x1.555556p-3,
  SINH_F32_S5   =  0x1.110fe2p-7,
  SINH_F32_S7   =  0x1.a28f3ep-13,

  SINH_F64_C4   =  0x1.55555555531c8p-5,
  SINH_F64_C6   =  0x1.6c16c17cd87bfp-10,
  SINH_F64_C8   =  0x1.a019aae7283bap-16,
  SINH_F64_C10  =  0x1.289fd2d25632bp-22,
  SINH_F64_S3   =  0x1.5555555555559p-3,
  SINH_F64_S5   =  0x1.111111110f652p-7,
  SINH_F64_S7   =  0x1.a01a01b0053f1p-13,
  SINH_F64_S9   =  0x1.71ddf80a073e6p-19,
  SINH_F64_S11  =  0x1.af5f36d38b1ffp-26,
}

func "sinh_shifted" {
  doc  = "a / ln2 rounded to an integer k, as k + shifter, for a >= 0, cut off where the result is infinite.",
  args = "a",
  f32  = [[ fma(a > SINH_MAX_F32 ? SINH_MAX_F32 : a, LOG2E, SINH_SHIFT_F32) ]],
  f64  = [[ fma(a > SINH_MAX_F64 ? SINH_MAX_F64 : a, LOG2E, SINH_SHIFT_F64) ]],
}

func "sinh_grown" {
  doc  = "2^k / 8, from t = sinh_shifted(a).",
  args = "t",
  f32  = [[ as_f32(raw_u32(t) << 23) ]],
  f64  = [[ as_f64(raw_u64(t) << 52) ]],
}

func "sinh_shrunk" {
  doc  = "2^-k / 8, from t = sinh_shifted(a); beyond the range of exponents something as small beside 2^k.",
  args = "t",
  f32  = [[ as_f32((SINH_TWICE_F32 - (raw_u32(t) << 23)) & 0x3fffffff) ]],
  f64  = [[ as_f64((SINH_TWICE_F64 - (raw_u64(t) << 52)) & 0x3fffffffffffffff) ]],
}

func "sinh_rest_hi" {
  doc  = "h of r = a - k ln2 = h + l, exact.",
  args = "a, t",
  f32  = [[ fma(t - SINH_SHIFT_F32, -SINH_LN2_HI_F32, a > SINH_MAX_F32 ? SINH_MAX_F32 : a) ]],
  f64  = [[ fma(t - SINH_SHIFT_F64, -SINH_LN2_HI_F64, a > SINH_MAX_F64 ? SINH_MAX_F64 : a) ]],
}

func "sinh_rest_lo" {
  doc  = "l of r = a - k ln2 = h + l.",
  args = "t",
  f32  = [[ (t - SINH_SHIFT_F32) * -SINH_LN2_LO_F32 ]],
  f64  = [[ (t - SINH_SHIFT_F64) * -SINH_LN2_LO_F64 ]],
}

func "sinh_sum" {
  doc  = "p cosh r + q sinh r for p + q h > 0.3 p, p >= 0.6 q (or p = 0), where p_lo is left out of p.",
  args = "p, p_lo, q, h, l",
  f32  = [[
    f32 v = fma(q, h, p);
    f32 e = fma(q, h, p - v) + p_lo;
    f32 r = h + l;
    f32 z = r * r;
    f32 g = z * fma(fma(SINH_F32_C6, z, SINH_F32_C4), z, 0.5);
    f32 s = fma(r * z, fma(fma(SINH_F32_S7, z, SINH_F32_S5), z, SINH_F32_S3), l);
    return v + fma(q, s, fma(p, g, e)); ]],
  f64  = [[
    f64 v = fma(q, h, p);
    f64 e = fma(q, h, p - v) + p_lo;
    f64 r = h + l;
    f64 z = r * r;
    f64 w = z * z;
    f64 g = z * fma(w, fma(fma(SINH_F64_C10, z, SINH_F64_C8), z, SINH_F64_C6), fma(SINH_F64_C4, z, 0.5));
    f64 s = fma(r * z, fma(w, fma(fma(SINH_F64_S11, z, SINH_F64_S9), z, SINH_F64_S7), fma(SINH_F64_S5, z, SINH_F64_S3)), l);
    return v + fma(q, s, fma(p, g, e)); ]],
  derivation = "tools/fit/sinh.sollya",
}

func "sinh" {
  doc  = "Hyperbolic sine.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 t = sinh_shifted(a);
    f32 s = sinh_grown(t);
    f32 i = sinh_shrunk(t);
    f32 d = s - i;
    f32 y = 4 * sinh_sum(d, (s - d) - i, s + i, sinh_rest_hi(a, t), sinh_rest_lo(t));
    return a < 0x1p-12 ? x : copysign(y, x); ]],
  f64  = [[
    f64 a = abs(x);
    f64 t = sinh_shifted(a);
    f64 s = sinh_grown(t);
    f64 i = sinh_shrunk(t);
    f64 d = s - i;
    f64 y = 4 * sinh_sum(d, (s - d) - i, s + i, sinh_rest_hi(a, t), sinh_rest_lo(t));
    return a < 0x1p-27 ? x : copysign(y, x); ]],
  ulp = { f32 = 0.95, f64 = 0.95 },    -- f32: over all arguments, 0.94; f64: 0.878 measured
  derivation = "tools/fit/sinh.sollya",
}

func "cosh" {
  doc  = "Hyperbolic cosine.",
  args = "x",
  body = [[
    T a = abs(x);
    T t = sinh_shifted(a);
    T s = sinh_grown(t);
    T i = sinh_shrunk(t);
    T c = s + i;
    return 4 * sinh_sum(c, i - (c - s), s - i, sinh_rest_hi(a, t), sinh_rest_lo(t)); ]],
  ulp = { f32 = 0.79, f64 = 0.90 },    -- f32: over all arguments, 0.788; f64: 0.871 measured
  derivation = "tools/fit/sinh.sollya",
}

func "sinh_near" {
  doc  = "Hyperbolic sine, the same bits, quicker: where 2^k is normal and the result finite nothing is bounded or scaled.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 t = fma(a, LOG2E, 0x1.8p23 + 126);
    f32 k = t - (0x1.8p23 + 126);
    f32 s = as_f32(raw_u32(t) << 23);
    f32 i = as_f32(0x7e000000 - (raw_u32(t) << 23));
    f32 d = s - i;
    f32 y = canonical(copysign(sinh_sum(d, (s - d) - i, s + i, fma(k, -SINH_LN2_HI_F32, a), k * -SINH_LN2_LO_F32), x));
    rare (!(a < 87.0)) { y = sinh(x); }
    return y; ]],
  f64  = [[
    f64 a = abs(x);
    f64 t = fma(a, LOG2E, 0x1.8p52 + 1022);
    f64 k = t - (0x1.8p52 + 1022);
    f64 s = as_f64(raw_u64(t) << 52);
    f64 i = as_f64(0x7fc0000000000000 - (raw_u64(t) << 52));
    f64 d = s - i;
    f64 y = canonical(copysign(sinh_sum(d, (s - d) - i, s + i, fma(k, -SINH_LN2_HI_F64, a), k * -SINH_LN2_LO_F64), x));
    rare (!(a < 708.0)) { y = sinh(x); }
    return y; ]],
}

func "cosh_near" {
  doc  = "Hyperbolic cosine, as sinh_near.",
  args = "x",
  f32  = [[
    f32 a = abs(x);
    f32 t = fma(a, LOG2E, 0x1.8p23 + 126);
    f32 k = t - (0x1.8p23 + 126);
    f32 s = as_f32(raw_u32(t) << 23);
    f32 i = as_f32(0x7e000000 - (raw_u32(t) << 23));
    f32 c = s + i;
    f32 y = canonical(sinh_sum(c, i - (c - s), s - i, fma(k, -SINH_LN2_HI_F32, a), k * -SINH_LN2_LO_F32));
    rare (!(a < 87.0)) { y = cosh(x); }
    return y; ]],
  f64  = [[
    f64 a = abs(x);
    f64 t = fma(a, LOG2E, 0x1.8p52 + 1022);
    f64 k = t - (0x1.8p52 + 1022);
    f64 s = as_f64(raw_u64(t) << 52);
    f64 i = as_f64(0x7fc0000000000000 - (raw_u64(t) << 52));
    f64 c = s + i;
    f64 y = canonical(sinh_sum(c, i - (c - s), s - i, fma(k, -SINH_LN2_HI_F64, a), k * -SINH_LN2_LO_F64));
    rare (!(a < 708.0)) { y = cosh(x); }
    return y; ]],
}
