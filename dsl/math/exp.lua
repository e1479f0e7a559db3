-- SPDX-License-Identifier: Apache-2.0
--
-- e to the x, and the pieces from which other functions (pow, exp2, erfc, gelu, logaddexp...) are made.
--
-- The reduction, the same for both types:
--
--     x = n ln2 + r,   n = round(x / ln2),  |r| <= ln2 / 2,      e^x = 2^n e^r
--
-- n is found by adding a large constant ("the shifter"): fma(x, 1/ln2, SHIFT) is so large that its last mantissa bit is
-- worth 1, so the rounding of this one operation rounds to the nearest integer, and n is in the low bits of the
-- result, ready for the exponent field of 2^n; subtracting SHIFT gives n as a float. No conversion is needed.
--
-- r comes in two parts, r = hi + lo: hi = x - n LN2_HI is exact (an fma, and the subtraction cancels), lo = -n LN2_LO.
-- Rounding hi + lo to one float costs up to 0.2 ULP of e^r: exp itself can bear that, other functions keep both parts.
--
-- e^r = 1 + r + r^2 q(r), q a polynomial. The larger the part that is added last, exactly or with one rounding, the better.
--
-- 2^n: where the result is well within the normal range, n is added to its exponent field. Beyond, n runs from -150 to 128
-- (f32), more than the field of one factor holds, so the result is multiplied by two factors, each about 2^(n/2). Only the
-- second product can leave the normal range: it makes the subnormals, zero or infinity, with one rounding. exp_scaled gives the
-- same bits without a product that is subnormal.

constants {
  -- 3/2 * 2^23: adding it rounds to integer. 254 = 2 * 127 (two exponent biases) is added so that the low bits
  -- are those of the two factors of 2^n together, see exp_scale_a and exp_scale_b.
  EXP_SHIFT_F32 = 0x1.8p23 + 254,
  EXP_SHIFT_F64 = 0x1.8p52 + 2046,

  -- ln2 = HI + LO: HI is ln2 rounded to the type. x - n HI is then exact without HI being shortened: for n != 0 we have
  -- |x| >= ln2/2 and |x - n HI| <= 0.35, so the difference is a multiple of 2^-25 (f64: 2^-54) and fits the mantissa.
  EXP_LN2_HI_F32 =  0x1.62e43p-1,
  EXP_LN2_LO_F32 = -0x1.05c61p-29,
  EXP_LN2_HI_F64 =  0x1.62e42fefa39efp-1,
  EXP_LN2_LO_F64 =  0x1.abc9e3b39803fp-56,

  -- e^r = 1 + r + r^2/2 + r^3 (C3 + C4 r + ...), |r| <= 0.3467: relative error of e^r 2^-28.0, 0.06 ULP.
  EXP_F32_C3 = 0x1.5554a4p-3,
  EXP_F32_C4 = 0x1.55569p-5,
  EXP_F32_C5 = 0x1.122f2ap-7,
  EXP_F32_C6 = 0x1.6b6568p-10,

  -- The same for f64: relative error 2^-57.4, 0.05 ULP.
  EXP_F64_C3  = 0x1.5555555555501p-3,
  EXP_F64_C4  = 0x1.55555555531f3p-5,
  EXP_F64_C5  = 0x1.1111111128967p-7,
  EXP_F64_C6  = 0x1.6c16c17cca2b3p-10,
  EXP_F64_C7  = 0x1.a01a011be3b2fp-13,
  EXP_F64_C8  = 0x1.a019ab152991cp-16,
  EXP_F64_C9  = 0x1.71df55a0f27ebp-19,
  EXP_F64_C10 = 0x1.289fa4be66be7p-22,
  EXP_F64_C11 = 0x1.ad1fd0f731a3fp-26,

  -- The largest arguments with finite results.
  EXP_MAX_F32 = 0x1.62e42ep6,
  EXP_MAX_F64 = 0x1.62e42fefa39efp9,

  -- f32 for |r| <= 0.3592, see exp_normal: relative error 2^-27.6, 0.08 ULP.
  EXP_WIDE_F32_C3 = 0x1.555488p-3,
  EXP_WIDE_F32_C4 = 0x1.5556bp-5,
  EXP_WIDE_F32_C5 = 0x1.1244b6p-7,
  EXP_WIDE_F32_C6 = 0x1.6b690ep-10,
}

func "exp_shifted" {
  doc  = "x / ln2 rounded to an integer n, as n + shifter: n is in the low bits. For |x| < 2^20.",
  args = "x",
  f32  = [[ fma(x, LOG2E, EXP_SHIFT_F32) ]],
  f64  = [[ fma(x, LOG2E, EXP_SHIFT_F64) ]],
  derivation = "tools/fit/exp.sollya",
}

func "exp_count" {
  doc  = "n as a float, from t = exp_shifted(x).",
  args = "t",
  f32  = [[ t - EXP_SHIFT_F32 ]],
  f64  = [[ t - EXP_SHIFT_F64 ]],
}

func "exp_rest_hi" {
  doc  = "The leading part of r = x - n ln2, exact.",
  args = "x, n",
  f32  = [[ fma(n, -EXP_LN2_HI_F32, x) ]],
  f64  = [[ fma(n, -EXP_LN2_HI_F64, x) ]],
  derivation = "tools/fit/exp.sollya",
}

func "exp_rest_lo" {
  doc  = "The small part of r = lo + x - n ln2, where x + lo is the argument in two parts (lo = 0 for one part).",
  args = "n, lo",
  f32  = [[ fma(n, -EXP_LN2_LO_F32, lo) ]],
  f64  = [[ fma(n, -EXP_LN2_LO_F64, lo) ]],
  derivation = "tools/fit/exp.sollya",
}

func "exp_tail" {
  doc  = "q(r), where e^r = 1 + r + r^2 q(r), |r| <= 0.3467.",
  args = "r",
  f32  = [[
    f32 q5 = fma(r, EXP_F32_C6, EXP_F32_C5);
    f32 q4 = fma(r, q5, EXP_F32_C4);
    f32 q3 = fma(r, q4, EXP_F32_C3);
    return fma(r, q3, 0.5); ]],
  f64  = [[
    f64 z = r * r;                                        // even and odd powers: half the steps that wait for one another
    f64 e4 = fma(z, fma(z, EXP_F64_C10, EXP_F64_C8), EXP_F64_C6);
    f64 o5 = fma(z, fma(z, EXP_F64_C11, EXP_F64_C9), EXP_F64_C7);
    f64 e = fma(z, fma(z, e4, EXP_F64_C4), 0.5);
    f64 o = fma(z, fma(z, o5, EXP_F64_C5), EXP_F64_C3);
    return fma(r, o, e); ]],
  derivation = "tools/fit/exp.sollya",
}

func "exp_tail_wide" {
  doc  = "q(r) as exp_tail has it, for |r| <= 0.3592; by r^2, which is needed anyway: fewer steps that wait for one another.",
  args = "r",
  f32  = [[
    f32 z = r * r;
    f32 q4 = fma(z, EXP_WIDE_F32_C6, fma(r, EXP_WIDE_F32_C5, EXP_WIDE_F32_C4));
    return fma(z, q4, fma(r, EXP_WIDE_F32_C3, 0.5)); ]],
  derivation = "tools/fit/exp.sollya",
}

func "exp_scale_a" {
  doc  = "The first factor of 2^n: 2^floor(n/2), from t = exp_shifted(x).",
  args = "t",
  -- The low bits of t are N = n + 2 * bias. The field of the first factor is N >> 1, its last bit dropped by the mask.
  f32  = [[ as_f32((raw_u32(t) << 22) & 0x7f800000) ]],
  f64  = [[ as_f64((raw_u64(t) << 51) & 0x7ff0000000000000) ]],
}

func "exp_scale_b" {
  doc  = "The second factor of 2^n: 2^(n - floor(n/2)), from t = exp_shifted(x).",
  args = "t",
  f32  = [[
    u32 b = raw_u32(t);
    return as_f32((b << 23) - ((b << 22) & 0x7f800000)); ]],
  f64  = [[
    u64 b = raw_u64(t);
    return as_f64((b << 52) - ((b << 51) & 0x7ff0000000000000)); ]],
}

func "exp_sum_hi" {
  doc  = "1 + r, rounded, for r = hi + lo - n ln2: e^r = exp_sum_hi + exp_sum_lo.",
  args = "hi, n",
  body = [[ 1.0 + exp_rest_hi(hi, n) ]],
}

func "exp_sum_lo" {
  doc  = "What 1 + r, rounded, leaves out of e^r, r = hi + lo - n ln2.",
  args = "hi, lo, n",
  -- rh - (s - 1) is exactly what the rounding of s = 1 + rh lost: no bit of hi is lost before the last rounding.
  body = [[
    T rh = exp_rest_hi(hi, n);
    T rl = exp_rest_lo(n, lo);
    T r = rh + rl;
    T s = exp_sum_hi(hi, n);
    return (rh - (s - 1.0)) + fma(r * r, exp_tail(r), rl); ]],
}

func "exp_two_part" {
  doc  = "e^(hi + lo), |lo| <= ULP(hi), hi within [-104.6, 89.1] (f32), [-746.4, 710.4] (f64): subnormal, 0 and inf results too.",
  args = "hi, lo",
  body = [[
    T t = exp_shifted(hi);
    T n = exp_count(t);
    T a = exp_scale_a(t);
    return fma(exp_sum_lo(hi, lo, n), a, exp_sum_hi(hi, n) * a) * exp_scale_b(t); ]],
  ulp = { f32 = 0.78, f64 = 0.78 },
  derivation = "tools/fit/exp.sollya",
}

func "exp_steps" {
  doc  = "x / ln2 rounded to an integer n, as n + shifter. As exp_shifted, but without a bias: the low bits are n itself.",
  args = "x",
  f32  = [[ fma(x, LOG2E, 0x1.8p23) ]],
  f64  = [[ fma(x, LOG2E, 0x1.8p52) ]],
}

func "exp_steps_count" {
  doc  = "n as a float, from t = exp_steps(x).",
  args = "t",
  f32  = [[ t - 0x1.8p23 ]],
  f64  = [[ t - 0x1.8p52 ]],
}

func "exp_raised" {
  doc  = "2^n y, from t = exp_steps(x): n is added to the exponent field as an integer. y and the result are normal.",
  args = "y, t",
  f32  = [[ as_f32(raw_u32(y) + (raw_u32(t) << 23)) ]],
  f64  = [[ as_f64(raw_u64(y) + (raw_u64(t) << 52)) ]],
}

func "exp_normal" {
  doc  = "e^(hi + lo) within the normal range: |hi| <= 87, |lo| <= 0.0123 (f32); |hi| <= 708, |lo| <= 2^-11 |hi| (f64).",
  args = "hi, lo",
  -- f32: two roundings show, that of r + r^2 q(r), at most 0.25 ULP of the result, and the last one. n is that of hi alone, so
  -- that it need not wait for lo. What lo adds, up to 0.0123 (pow's), is left in r: |r| <= 0.3592. f64: the last one shows.
  f32  = [[
    f32 t = exp_steps(hi);
    f32 n = exp_steps_count(t);
    f32 rh = exp_rest_hi(hi, n);
    f32 rl = exp_rest_lo(n, lo);
    f32 r = rh + rl;
    return exp_raised(1.0 + (rh + fma(r * r, exp_tail_wide(r), rl)), t); ]],
  f64  = [[
    f64 t = exp_steps(hi + lo);
    f64 n = exp_steps_count(t);
    return exp_raised(exp_sum_hi(hi, n) + exp_sum_lo(hi, lo, n), t); ]],
  ulp = { f32 = 0.95, f64 = 0.68 },
  derivation = "tools/fit/exp.sollya",
}

func "exp_scaled" {
  doc  = "2^n y, rounded once where it is subnormal or 0, from t = exp_steps(x): n >= -150 (f32), -1076 (f64), y within [1/2, 2).",
  args = "y, t",
  -- Let c be 2^(-127 - n) (f64: 2^(-1023 - n)). The last place of w = y / 2 + c, times 2^n, is that of subnormal numbers: w is rounded as
  -- a subnormal result is. n added to its exponent field takes c away, too. w is larger than y where 2^n y is subnormal, else smaller or
  -- equal. A subnormal product would take processors several times as long.
  f32  = [[
    f32 w = fma(y, 0.5, as_f32(0 - (raw_u32(t) << 23)));
    return exp_raised(y > w ? y : w, t); ]],
  f64  = [[
    f64 w = fma(y, 0.5, as_f64(0 - (raw_u64(t) << 52)));
    return exp_raised(y > w ? y : w, t); ]],
}

func "exp_any" {
  doc  = "e to the x for all x: what exp does where exp_near cannot.",
  args = "x",
  -- Below the first bound all results round to 0, above the second all are inf. One bound is put on the argument, one on the result: of
  -- two selects in a row GCC makes nested ones. x + INFINITY is NaN where x is.
  f32  = [[
    f32 z = x < -104.0 ? -104.0 : x;
    f32 t = exp_steps(z);
    f32 n = exp_steps_count(t);
    f32 y = exp_scaled(exp_sum_hi(z, n) + exp_sum_lo(z, 0.0, n), t);
    return x <= EXP_MAX_F32 ? y : x + INFINITY; ]],
  f64  = [[
    f64 z = x < -746.0 ? -746.0 : x;
    f64 t = exp_steps(z);
    f64 n = exp_steps_count(t);
    f64 y = exp_scaled(exp_sum_hi(z, n) + exp_sum_lo(z, 0.0, n), t);
    return x <= EXP_MAX_F64 ? y : x + INFINITY; ]],
  ulp = { f32 = 0.78, f64 = 0.78 },
}

func "exp_near" {
  doc  = "e^x where the result is well within the normal range: |x| <= 87 (f32), 708 (f64).",
  args = "x",
  -- Three roundings show: that of r, 0.18 ULP of the result, that of 1 + r q(r), 0.18 ULP, and the last one.
  body = [[
    T t = exp_steps(x);
    T n = exp_steps_count(t);
    T r = exp_rest_lo(n, exp_rest_hi(x, n));
    return exp_raised(fma(r, fma(r, exp_tail(r), 1.0), 1.0), t); ]],
  ulp = { f32 = 0.93, f64 = 0.93 },
  derivation = "tools/fit/exp.sollya",
}

func "exp" {
  doc  = "e to the x.",
  args = "x",
  -- Where e^x rounds to 0 (masked logits, -inf), exp_near takes 0, so that no more than light blocks run.
  f32  = [[
    f32 z = x;
    rare (!(abs(x) < 87.0)) { z = x < -104.0 ? 0.0 : x; }
    f32 y = canonical(exp_near(z));
    rare (!(abs(x) < 87.0)) { y = canonical(x < -104.0 ? 0.0 : y); }
    rare (!(abs(z) < 87.0)) { y = exp_any(x); }
    return y; ]],
  f64  = [[
    f64 z = x;
    rare (!(abs(x) < 708.0)) { z = x < -746.0 ? 0.0 : x; }
    f64 y = canonical(exp_near(z));
    rare (!(abs(x) < 708.0)) { y = canonical(x < -746.0 ? 0.0 : y); }
    rare (!(abs(z) < 708.0)) { y = exp_any(x); }
    return y; ]],
  -- f32: over all arguments, 0.909.
  ulp = { f32 = 0.93, f64 = 0.93 },
  derivation = "tools/fit/exp.sollya",
}
