-- SPDX-License-Identifier: Apache-2.0
--
-- log(e^x + e^y) and its fellow to base 2, without overflow.
--
--     m = max(x, y),  d = min - m <= 0:      logaddexp(x, y) = m + log(1 + e^d)
--
-- The last sum cancels where e^x + e^y is near 1 (x, y < 0), so everything before it is in two parts: d + d_lo exactly,
-- e^d = v + v_lo as in exp.lua, log(1 + v + v_lo) by log_hi and log_lo of log.lua with e = 0 or 1, and the sum. What is
-- left is the error of the polynomials and of the low parts, 0.3 ULP of log(1 + e^d): so the result is within 1 ULP of
-- itself where it is at least as large as m, and within 1 ULP of m elsewhere. A bound relative to the result alone
-- there is none: near the zeros it would take exponentials to twice the precision and more.
--
-- To base 2, f32: d = k + r, k whole, is exact, and 2^r = e^a, a = r ln2 in two parts; the logarithm is to base 2 from its polynomial on:
--
--     log2(1 + f) = C f - C/2 f^2 + f^3 (C3 + C4 f + ...),   C = 1 / ln2
--
-- Where 2^d is below 2^-125 and does not round to 0, that is for d from -125 down to -152, it is rare, as infinities and NaN are, and
-- computed to base e, as f64 is:
--
-- A faint e^d, 2^-57 and less, is divided by ln2 before the factors of 2^n make it small: of a subnormal there would
-- be no low part left, and the division would be one more rounding.
--
-- An infinity or a NaN is rare; m + 0 there is what -0 and log(1 + 0) come to.

constants {
  -- e^d rounds to 0 below.
  LOGADDEXP_MIN_F32 = -104.0,
  LOGADDEXP_MIN_F64 = -746.0,

  -- e^d / ln2 rounds to 0 below; log(1 + e^d) is e^d.
  LOGADDEXP2_MIN_F32   = -105.0,
  LOGADDEXP2_MIN_F64   = -746.0,
  LOGADDEXP2_FAINT_F32 = -40.0,
  LOGADDEXP2_FAINT_F64 = -60.0,

  -- f32: C3 to C11, relative error of log2(1 + f) 2^-30.1.
  LOGADDEXP2_F32_C3  = 0x1.ec7088p-2,
  LOGADDEXP2_F32_C4  = -0x1.715486p-2,
  LOGADDEXP2_F32_C5  = 0x1.277f1ep-2,
  LOGADDEXP2_F32_C6  = -0x1.ec781p-3,
  LOGADDEXP2_F32_C7  = 0x1.a415fcp-3,
  LOGADDEXP2_F32_C8  = -0x1.6eb41p-3,
  LOGADDEXP2_F32_C9  = 0x1.5fbf58p-3,
  LOGADDEXP2_F32_C10 = -0x1.582442p-3,
  LOGADDEXP2_F32_C11 = 0x1.8a82d6p-4,

  -- sqrt(2) - 1, rounded up: 1 + v beyond is 2 (1 + (v - 1) / 2).
  LOGADDEXP_JOIN_F32 = 0x1.a8279ap-2,
  LOGADDEXP_JOIN_F64 = 0x1.a827999fcef35p-2,

  -- 1 / ln2 and ln2, each in two parts.
  LOGADDEXP_C_F32    = 0x1.715476p0,
  LOGADDEXP_C_LO_F32 = 0x1.4ae0cp-26,
  LOGADDEXP_C_F64    = 0x1.71547652b82fep0,
  LOGADDEXP_C_LO_F64 = 0x1.777d0ffda0d24p-56,
  LOGADDEXP_LN2_F32    = 0x1.62e43p-1,
  LOGADDEXP_LN2_LO_F32 = -0x1.05c61p-29,
  LOGADDEXP_LN2_F64    = 0x1.62e42fefa39efp-1,
  LOGADDEXP_LN2_LO_F64 = 0x1.abc9e3b39803fp-56,
}

func "logaddexp_least" {
  doc  = "The bound below which e^d rounds to 0, in d's type.",
  args = "d",
  f32  = [[ LOGADDEXP_MIN_F32 ]],
  f64  = [[ LOGADDEXP_MIN_F64 ]],
}

func "logaddexp_join" {
  doc  = "The v beyond which 1 + v is halved, in v's type.",
  args = "v",
  f32  = [[ LOGADDEXP_JOIN_F32 ]],
  f64  = [[ LOGADDEXP_JOIN_F64 ]],
}

func "logaddexp_exp_hi" {
  doc  = "e^(d + d_lo), rounded.",
  args = "d, d_lo",
  body = [[
    T t = exp_shifted(d);
    T n = exp_count(t);
    return (exp_sum_hi(d, n) + exp_sum_lo(d, d_lo, n)) * exp_scale_a(t) * exp_scale_b(t); ]],
}

func "logaddexp_exp_lo" {
  doc  = "What logaddexp_exp_hi leaves out.",
  args = "d, d_lo",
  body = [[
    T t = exp_shifted(d);
    T n = exp_count(t);
    T h = exp_sum_hi(d, n);
    T l = exp_sum_lo(d, d_lo, n);
    return (l - (h + l - h)) * exp_scale_a(t) * exp_scale_b(t); ]],
}

func "logaddexp_log_hi" {
  doc  = "log(1 + v), 0 <= v <= 1, the leading part.",
  args = "v",
  body = [[
    bool far = v > logaddexp_join(v);
    return log_hi(far ? 1.0 : 0.0, far ? fma(v, 0.5, -0.5) : v); ]],
}

func "logaddexp_log_lo" {
  doc  = "What logaddexp_log_hi leaves out of log(1 + v + v_lo).",
  args = "v, v_lo",
  -- (v - 1) / 2 is rounded for v < 1/2. f_lo / (1 + f) = f_lo (1 - f + f^2 - ...)
  body = [[
    bool far = v > logaddexp_join(v);
    T f = far ? fma(v, 0.5, -0.5) : v;
    T f_lo = far ? fma(v_lo, 0.5, fma(v, 0.5, -0.5 - f)) : v_lo;
    return log_lo(far ? 1.0 : 0.0, f) + f_lo * fma(f, f, 1 - f); ]],
}

func "logaddexp" {
  doc  = "log(e^x + e^y).",
  args = "x, y",
  body = [[
    T m = x > y ? x : y;
    T n = x > y ? y : x;
    T c = x == y ? 0 : n - m;
    T c_lo = sum_lost(n, -m, n - m);
    bool gone = c < logaddexp_least(c);
    T d = gone ? logaddexp_least(c) : c;
    T d_lo = gone || x == y ? 0 : c_lo;
    T v = logaddexp_exp_hi(d, d_lo);
    T l = logaddexp_log_hi(v);
    T l_lo = logaddexp_log_lo(v, logaddexp_exp_lo(d, d_lo));
    T s = m + l;
    T z = s + (sum_lost(m, l, s) + l_lo);
    rare (!(c > -INFINITY && abs(m) < INFINITY)) { z = (x != x || y != y) ? NAN : m + 0.0; }
    return z; ]],
  ulp = { f32 = 0.95, f64 = 0.95 },    -- in the sense above
  derivation = "tools/fit/log.sollya",
}

func "logaddexp2_faint_hi" {
  doc  = "e^(d + d_lo) / ln2, rounded.",
  args = "d, d_lo",
  f32  = [[
    f32 t = exp_shifted(d);
    f32 n = exp_count(t);
    f32 h = exp_sum_hi(d, n);
    f32 u = fma(h, LOGADDEXP_C_F32, fma(h, LOGADDEXP_C_LO_F32, exp_sum_lo(d, d_lo, n) * LOGADDEXP_C_F32));
    return u * exp_scale_a(t) * exp_scale_b(t); ]],
  f64  = [[
    f64 t = exp_shifted(d);
    f64 n = exp_count(t);
    f64 h = exp_sum_hi(d, n);
    f64 u = fma(h, LOGADDEXP_C_F64, fma(h, LOGADDEXP_C_LO_F64, exp_sum_lo(d, d_lo, n) * LOGADDEXP_C_F64));
    return u * exp_scale_a(t) * exp_scale_b(t); ]],
}

func "logaddexp2_faint_lo" {
  doc  = "What logaddexp2_faint_hi leaves out before the factors of 2^n.",
  args = "d, d_lo",
  f32  = [[
    f32 t = exp_shifted(d);
    f32 n = exp_count(t);
    f32 h = exp_sum_hi(d, n);
    f32 w = fma(h, LOGADDEXP_C_LO_F32, exp_sum_lo(d, d_lo, n) * LOGADDEXP_C_F32);
    return (fma(h, LOGADDEXP_C_F32, -fma(h, LOGADDEXP_C_F32, w)) + w) * exp_scale_a(t) * exp_scale_b(t); ]],
  f64  = [[
    f64 t = exp_shifted(d);
    f64 n = exp_count(t);
    f64 h = exp_sum_hi(d, n);
    f64 w = fma(h, LOGADDEXP_C_LO_F64, exp_sum_lo(d, d_lo, n) * LOGADDEXP_C_F64);
    return (fma(h, LOGADDEXP_C_F64, -fma(h, LOGADDEXP_C_F64, w)) + w) * exp_scale_a(t) * exp_scale_b(t); ]],
}

func "logaddexp2_near" {
  doc  = "log2(2^x + 2^y) for finite x and y where neither 2^-|x - y| is a subnormal number nor x - y infinite.",
  args = "x, y",
  f32  = [[
    f32 m = x > y ? x : y;
    f32 n = x > y ? y : x;
    f32 c = n - m;
    f32 c_lo = sum_lost(n, -m, c);
    // 2^(c + c_lo) = v + v_lo
    f32 t = c + 0x1.8p23;
    f32 r = c - (t - 0x1.8p23);
    f32 a = r * LOGADDEXP_LN2_F32;
    f32 a_lo = fma(c_lo, LOGADDEXP_LN2_F32, fma(r, LOGADDEXP_LN2_LO_F32, fma(r, LOGADDEXP_LN2_F32, -a)));
    f32 w = a + a_lo;
    f32 h = 1 + a;
    f32 l = (a - (h - 1)) + fma(w * w, exp_tail(w), a_lo);
    f32 g = h + l;
    bool gone = c < -126;
    f32 v = gone ? 0 : exp_raised(g, t);
    f32 v_lo = gone ? 0 : (l - (g - h)) * exp_raised(1, t);
    // log2(1 + v + v_lo) = s + s_lo + ...; v beyond sqrt(2) - 1: 1 + log2(1 + f), f = (v - 1) / 2
    bool far = v > LOGADDEXP_JOIN_F32;
    f32 f = far ? fma(v, 0.5, -0.5) : v;
    f32 f_lo = far ? fma(v_lo, 0.5, fma(v, 0.5, -0.5 - f)) : v_lo;
    f32 k = far ? 1 : 0;
    f32 p = f * LOGADDEXP_C_F32;
    f32 p_lo = fma(f, LOGADDEXP_C_LO_F32, fma(f, LOGADDEXP_C_F32, -p));
    f32 u = k + p;
    f32 half = -0.5 * f;
    f32 q = half * LOGADDEXP_C_F32;
    f32 q_lo = fma(half, LOGADDEXP_C_LO_F32, fma(half, LOGADDEXP_C_F32, -q));
    f32 s = fma(q, f, u);
    f32 s_lo = fma(q_lo, f, fma(q, f, u - s));
    f32 f2 = f * f;
    f32 b3 = fma(f, LOGADDEXP2_F32_C4, LOGADDEXP2_F32_C3);
    f32 b5 = fma(f, LOGADDEXP2_F32_C6, LOGADDEXP2_F32_C5);
    f32 b7 = fma(f, LOGADDEXP2_F32_C8, LOGADDEXP2_F32_C7);
    f32 b9 = fma(f, LOGADDEXP2_F32_C10, LOGADDEXP2_F32_C9);
    f32 b = fma(f2 * f2, fma(f2, fma(f2, LOGADDEXP2_F32_C11, b9), b7), fma(f2, b5, b3));
    f32 tail = fma(f2 * f, b, (p - (u - k)) + p_lo) + s_lo;
    f32 low = fma(f_lo, fma(f, fma(f, LOGADDEXP_C_F32, -LOGADDEXP_C_F32), LOGADDEXP_C_F32), tail);
    f32 z = m + s;
    return z + (sum_lost(m, s, z) + low); ]],
  derivation = "tools/fit/logaddexp2.py",
}

func "logaddexp2_any" {
  doc  = "The logarithm to base 2 of 2^x + 2^y.",
  args = "x, y",
  -- d is taken to base e and the logarithm back to base 2, each in two parts.
  f32  = [[
    f32 m = x > y ? x : y;
    f32 n = x > y ? y : x;
    f32 c = x == y ? 0 : n - m;
    f32 c_lo = sum_lost(n, -m, n - m);
    f32 e = c * LOGADDEXP_LN2_F32;
    f32 e_lo = fma(c_lo, LOGADDEXP_LN2_F32, fma(c, LOGADDEXP_LN2_LO_F32, fma(c, LOGADDEXP_LN2_F32, -e)));
    bool gone = e < LOGADDEXP2_MIN_F32;
    f32 d = gone ? LOGADDEXP2_MIN_F32 : e;
    f32 d_lo = gone || x == y ? 0 : e_lo;
    f32 v = logaddexp_exp_hi(d, d_lo);
    f32 l = logaddexp_log_hi(v);
    f32 l_lo = logaddexp_log_lo(v, logaddexp_exp_lo(d, d_lo));
    bool faint = d < LOGADDEXP2_FAINT_F32;
    f32 lc = l * LOGADDEXP_C_F32;
    f32 lc_lo = fma(l_lo, LOGADDEXP_C_F32, fma(l, LOGADDEXP_C_LO_F32, fma(l, LOGADDEXP_C_F32, -lc)));
    f32 u = faint ? logaddexp2_faint_hi(d, d_lo) : lc;
    f32 u_lo = faint ? logaddexp2_faint_lo(d, d_lo) : lc_lo;
    f32 s = m + u;
    f32 z = s + (sum_lost(m, u, s) + u_lo);
    bool is_plain = c > -INFINITY && abs(m) < INFINITY;
    return is_plain ? z : (x != x || y != y) ? NAN : m + 0.0; ]],
  ulp = { f32 = 0.95 },
}

func "logaddexp2" {
  doc  = "The logarithm to base 2 of 2^x + 2^y.",
  args = "x, y",
  f32  = [[
    f32 m = x > y ? x : y;
    f32 n = x > y ? y : x;
    f32 z = canonical(logaddexp2_near(x, y));
    // the bits of n - m from -125 down to -152
    rare (!(abs(m - (n - m)) < INFINITY) || raw_u32(n - m) - 0xc3180001 >= 0xffe1ffff) { z = logaddexp2_any(x, y); }
    return z; ]],
  f64  = [[
    f64 m = x > y ? x : y;
    f64 n = x > y ? y : x;
    f64 c = x == y ? 0 : n - m;
    f64 c_lo = sum_lost(n, -m, n - m);
    f64 e = c * LOGADDEXP_LN2_F64;
    f64 e_lo = fma(c_lo, LOGADDEXP_LN2_F64, fma(c, LOGADDEXP_LN2_LO_F64, fma(c, LOGADDEXP_LN2_F64, -e)));
    bool gone = e < LOGADDEXP2_MIN_F64;
    f64 d = gone ? LOGADDEXP2_MIN_F64 : e;
    f64 d_lo = gone || x == y ? 0 : e_lo;
    f64 v = logaddexp_exp_hi(d, d_lo);
    f64 l = logaddexp_log_hi(v);
    f64 l_lo = logaddexp_log_lo(v, logaddexp_exp_lo(d, d_lo));
    bool faint = d < LOGADDEXP2_FAINT_F64;
    f64 lc = l * LOGADDEXP_C_F64;
    f64 lc_lo = fma(l_lo, LOGADDEXP_C_F64, fma(l, LOGADDEXP_C_LO_F64, fma(l, LOGADDEXP_C_F64, -lc)));
    f64 u = faint ? logaddexp2_faint_hi(d, d_lo) : lc;
    f64 u_lo = faint ? logaddexp2_faint_lo(d, d_lo) : lc_lo;
    f64 s = m + u;
    f64 z = s + (sum_lost(m, u, s) + u_lo);
    rare (!(c > -INFINITY && abs(m) < INFINITY)) { z = (x != x || y != y) ? NAN : m + 0.0; }
    return z; ]],
  ulp = { f32 = 0.95, f64 = 0.95 },
  derivation = "tools/fit/log.sollya",
}
