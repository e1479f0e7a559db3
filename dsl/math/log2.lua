-- The logarithms to base 2 and 10, by the reduction of log.lua:  x = 2^e m,  f = m - 1,  m in [sqrt(1/2), sqrt(2)) in f64.
-- In f32 m is in [0.6875, 1.375): at the upper end the square below counts for less, and for e = 1 log10 stays above 1/8.
--
-- In f32 log2(1 + f) has a polynomial of its own, f C + f^2 P(f), C = 1 / ln2, and log10 is e log10(2) + log10(1 + f) with
-- another. The leading terms are summed in two parts:
--
--     p + pl = f C (an fma has the rest),    u + ul = e L + p (e L is exact; the larger is subtracted first)
--
-- and f^2 P, at most 0.2 of the result, is rounded. In f64 it is log(1 + f) = f - (f^2/2 + ...) that is scaled:
-- f C in two parts, the bracket, from log_tail_a and log_tail_b, rounded but for what f^2/2 itself lost. Powers of the base
-- give integers: what precedes the last rounding is within 0.4 ULP of the true value, and an integer has no rounding to lose.

constants {
  -- C = 1 / ln2, 1 / ln10: rounded, and the rest.
  LOG2_C_F32     = 0x1.715476p0,
  LOG2_C_LO_F32  = 0x1.4ae0cp-26,
  LOG2_C_F64     = 0x1.71547652b82fep0,
  LOG2_C_LO_F64  = 0x1.777d0ffda0d24p-56,
  LOG10_C_F32    = 0x1.bcb7b2p-2,
  LOG10_C_LO_F32 = -0x1.5b235ep-27,
  LOG10_C_F64    = 0x1.bcb7b1526e50ep-2,
  LOG10_C_LO_F64 = 0x1.95355baaafad3p-57,

  -- L = log10(2) = HI + LO with HI short (16 and 42 bits): e HI is exact. In f32 e comes times 2^23, and L is less by as much.
  LOG10_2_HI_F32 = 0x1.3442p-25,
  LOG10_2_LO_F32 = -0x1.95ec1p-42,
  LOG10_2_HI_F64 = 0x1.34413509f78p-2,
  LOG10_2_LO_F64 = 0x1.fef311f12b358p-46,

  -- f32: 1+f in [0.6875, 1.375], the bits of 0.6875.
  LOG2_LOW_BITS_F32 = 0x3f300000,

  -- log2(1+f) = f C + f^2 (C2 + C3 f + ...): relative error 2^-29.4, 0.02 ULP.
  LOG2_F32_C2   = -0x1.715476p-1,
  LOG2_F32_C3   =  0x1.ec7088p-2,
  LOG2_F32_C4   = -0x1.71544p-2,
  LOG2_F32_C5   =  0x1.277e6p-2,
  LOG2_F32_C6   = -0x1.eca77ep-3,
  LOG2_F32_C7   =  0x1.a47a7p-3,
  LOG2_F32_C8   = -0x1.6b0266p-3,
  LOG2_F32_C9   =  0x1.57c3b6p-3,
  LOG2_F32_C10  = -0x1.6ddfcp-3,
  LOG2_F32_C11  =  0x1.edf7p-4,

  -- log10(1+f), the same: relative error 2^-30.2.
  LOG10_F32_C2  = -0x1.bcb7b2p-3,
  LOG10_F32_C3  =  0x1.287a6cp-3,
  LOG10_F32_C4  = -0x1.bcb6a6p-4,
  LOG10_F32_C5  =  0x1.63cd5cp-4,
  LOG10_F32_C6  = -0x1.28b2f8p-4,
  LOG10_F32_C7  =  0x1.fabf1ep-5,
  LOG10_F32_C8  = -0x1.b2f1cp-5,
  LOG10_F32_C9  =  0x1.98bf5ep-5,
  LOG10_F32_C10 = -0x1.c16232p-5,
  LOG10_F32_C11 =  0x1.3ed836p-5,
}

func "log2_exponent" {
  doc  = "e of x = 2^e m, m in [0.6875, 1.375), as a float times 2^23. For positive normal x.",
  args = "x",
  f32  = [[
    i32 k = (raw_i32(x) - LOG2_LOW_BITS_F32) & 0xff800000;
    return (f32)k; ]],
}

func "log2_mantissa" {
  doc  = "m of x = 2^e m, m in [0.6875, 1.375). For positive normal x.",
  args = "x",
  f32  = [[
    i32 b = raw_i32(x);
    i32 k = (b - LOG2_LOW_BITS_F32) & 0xff800000;
    return as_f32(b - k); ]],
}

func "log2_sum" {
  doc  = "e + log2(1 + f), 1 + f in [0.6875, 1.375) (f32, and e times 2^23), [sqrt(1/2), sqrt(2)) (f64).",
  args = "e, f",
  f32  = [[
    f32 f2 = f * f;
    f32 a = fma(f, LOG2_F32_C4, LOG2_F32_C3);
    f32 b = fma(f, LOG2_F32_C6, LOG2_F32_C5);
    f32 c = fma(f, LOG2_F32_C8, LOG2_F32_C7);
    f32 d = fma(f, LOG2_F32_C10, LOG2_F32_C9);
    f32 g = fma(f2, fma(f2, LOG2_F32_C11, d), c);
    f32 q = fma(f, fma(f2 * f2, g, fma(f2, b, a)), LOG2_F32_C2);    // C2 last and alone: each rounding at its size counts
    f32 p = f * LOG2_C_F32;
    f32 pl = fma(f, LOG2_C_LO_F32, fma(f, LOG2_C_F32, -p));
    f32 u = fma(e, 0x1p-23, p);
    f32 ul = p - fma(e, -0x1p-23, u);
    return u + fma(f2, q, ul + pl); ]],
  f64  = [[
    f64 v = -0.5 * f * f;
    f64 w = fma(log_tail_a(f), log_tail_b(f), v);
    f64 p = f * LOG2_C_F64;
    f64 pl = fma(fma(-0.5 * f, f, -v), LOG2_C_F64, fma(f, LOG2_C_LO_F64, fma(f, LOG2_C_F64, -p)));
    f64 u = e + p;
    f64 ul = p - (u - e);
    return u + fma(w, LOG2_C_F64, ul + pl); ]],
  derivation = "tools/fit/log2.sollya",
}

func "log10_sum" {
  doc  = "e log10(2) + log10(1 + f), 1 + f in [0.6875, 1.375) (f32, and e times 2^23), [sqrt(1/2), sqrt(2)) (f64).",
  args = "e, f",
  f32  = [[
    f32 f2 = f * f;
    f32 a = fma(f, LOG10_F32_C4, LOG10_F32_C3);
    f32 b = fma(f, LOG10_F32_C6, LOG10_F32_C5);
    f32 c = fma(f, LOG10_F32_C8, LOG10_F32_C7);
    f32 d = fma(f, LOG10_F32_C10, LOG10_F32_C9);
    f32 g = fma(f2, fma(f2, LOG10_F32_C11, d), c);
    f32 q = fma(f, fma(f2 * f2, g, fma(f2, b, a)), LOG10_F32_C2);    // C2 last and alone: each rounding at its size counts
    f32 p = f * LOG10_C_F32;
    f32 pl = fma(f, LOG10_C_LO_F32, fma(f, LOG10_C_F32, -p));
    f32 u = fma(e, LOG10_2_HI_F32, p);
    f32 ul = p - fma(e, -LOG10_2_HI_F32, u);
    return u + fma(f2, q, fma(e, LOG10_2_LO_F32, ul + pl)); ]],
  f64  = [[
    f64 v = -0.5 * f * f;
    f64 w = fma(log_tail_a(f), log_tail_b(f), v);
    f64 p = f * LOG10_C_F64;
    f64 pl = fma(fma(-0.5 * f, f, -v), LOG10_C_F64, fma(f, LOG10_C_LO_F64, fma(f, LOG10_C_F64, -p)));
    f64 u = fma(e, LOG10_2_HI_F64, p);
    f64 ul = p - fma(e, -LOG10_2_HI_F64, u);
    return u + fma(w, LOG10_C_F64, fma(e, LOG10_2_LO_F64, ul + pl)); ]],
  derivation = "tools/fit/log2.sollya",
}

func "log2" {
  doc  = "The logarithm to base 2.",
  args = "x",
  f32  = [[
    f32 y = log2_sum(log2_exponent(x), log2_mantissa(x) - 1.0);
    rare (log_beyond(x)) {
      f32 n = x * 0x1p23;
      f32 z = log2_sum(log2_exponent(n) - 0x1.7p27, log2_mantissa(n) - 1.0);
      y = log_ends(x, z);
    }
    return y; ]],
  f64  = [[
    f64 y = log2_sum(log_exponent(x), log_mantissa(x) - 1.0);
    rare (log_beyond(x)) {
      f64 n = x * 0x1p52;
      f64 z = log2_sum(log_exponent(n) - 52.0, log_mantissa(n) - 1.0);
      y = log_ends(x, z);
    }
    return y; ]],
  ulp = { f32 = 0.94, f64 = 0.92 },    -- f32: over all arguments, 0.929; f64: 0.901 measured
  derivation = "tools/fit/log2.sollya",
}

func "log10" {
  doc  = "The logarithm to base 10.",
  args = "x",
  f32  = [[
    f32 y = log10_sum(log2_exponent(x), log2_mantissa(x) - 1.0);
    rare (log_beyond(x)) {
      f32 n = x * 0x1p23;
      f32 z = log10_sum(log2_exponent(n) - 0x1.7p27, log2_mantissa(n) - 1.0);
      y = log_ends(x, z);
    }
    return y; ]],
  f64  = [[
    f64 y = log10_sum(log_exponent(x), log_mantissa(x) - 1.0);
    rare (log_beyond(x)) {
      f64 n = x * 0x1p52;
      f64 z = log10_sum(log_exponent(n) - 52.0, log_mantissa(n) - 1.0);
      y = log_ends(x, z);
    }
    return y; ]],
  ulp = { f32 = 0.85, f64 = 0.85 },    -- f32: over all arguments, 0.833; f64: 0.836 measured
  derivation = "tools/fit/log2.sollya",
}
