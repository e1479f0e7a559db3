-- SPDX-License-Identifier: Apache-2.0
--
-- The logarithms to base 2 and 10, by the reductions of log.lua.
--
-- f32, log being that to base 2 or 10, C = 1 / ln2 or 1 / ln10, L = log 2, which is 1 to base 2:
--
--     log x = e L - log c + log(1 + r),      log(1 + r) = r C + r^2 P(r)
--
-- e L - log c and r C are summed as u + ul, exact but for their small parts (an fma has what u lost).
--
-- f64:  log(1 + f) = f - (f^2/2 + ...), the natural one, is multiplied by C. The leading terms are summed in two parts,
--
--     p + pl = f C (an fma has the rest),    u + ul = e L + p (e L is exact; the larger is subtracted first)
--
-- and the bracket, from log_tail_a and log_tail_b, is rounded but for what f^2/2 itself lost.
--
-- Powers of the base give integers: what precedes the last rounding is within 0.41 ULP (f32: 0.03) of the true value, and an
-- integer has no rounding to lose.

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

  -- f32: log2(1+r) = r C + r^2 (C2 + C3 r + ...), |r| <= 0.0342: relative error 2^-30.4; log10 likewise, 2^-30.6.
  LOG2_F32_C2 = -0x1.715472p-1,
  LOG2_F32_C3 =  0x1.ec7094p-2,
  LOG2_F32_C4 = -0x1.71b7acp-2,
  LOG2_F32_C5 =  0x1.27d534p-2,
  LOG10_F64_C2  = -0x1.bcb7b1526e50ep-3, -- relative error 2^-60.8
  LOG10_F64_C3  =  0x1.287a7636f42bp-3,
  LOG10_F64_C4  = -0x1.bcb7b1526ea7ap-4,
  LOG10_F64_C5  =  0x1.63c6277803fe1p-4,
  LOG10_F64_C6  = -0x1.287a763795454p-4,
  LOG10_F64_C7  =  0x1.fc3f6b3e3c78cp-5,
  LOG10_F64_C8  = -0x1.bcb77fdcfcd36p-5,
  LOG10_F64_C9  =  0x1.8c398a3359939p-5,
  LOG10_F64_C10 = -0x1.64a3173bb46bep-5,
  LOG10_F32_C2 = -0x1.bcb7aep-3,
  LOG10_F32_C3 =  0x1.287a72p-3,
  LOG10_F32_C4 = -0x1.bd201p-4,
  LOG10_F32_C5 =  0x1.642a72p-4,
}

-- Of the c of log.lua: -log2 c and -log10 c = HI + LO, HI a multiple of 2^-16 (log10: 2^-17), as 2^23 LOG10_2_HI is.
tables {
  LOG2_HI = { "f32",
    -0x1.6e24p-2, -0x1.244p-2, -0x1.fbcp-3, -0x1.acf8p-3, -0x1.08c8p-3, -0x1.664p-4, -0x1.6bap-5, 0x0p0,
    0x1.7d6p-4, 0x1.564p-3, 0x1.f6p-3, 0x1.4f7p-2, 0x1.8a88p-2, 0x1.e7ep-2, 0x1.14c6p-1, 0x1.25cp-1,
  },
  LOG2_LO = { "f32",
    0x1.e3263p-18, -0x1.eac382p-20, -0x1.6b9026p-19, 0x1.0e9258p-18,
    0x1.3b992cp-18, 0x1.20a6dep-21, -0x1.a6eb1ep-18, 0x0p0,
    0x1.25b3eep-22, -0x1.1eb002p-18, -0x1.3ab7cep-18, -0x1.134c4ep-20,
    0x1.80abfcp-18, -0x1.40358ep-19, -0x1.3e032ep-18, 0x1.408c78p-18,
  },
  LOG10_HI_F64 = { "f64",
    -0x1.b8de4d3ab4p-4, -0x1.5fe80488bp-4, -0x1.31b3055c48p-4, -0x1.02428c1f08p-4,
    -0x1.3ed1199a6p-5, -0x1.af5f92b01p-6, -0x1.b5e908eb2p-7, 0x0p0,
    0x1.cb38fccd9p-6, 0x1.9c197abfp-5, 0x1.2e3a740b78p-4, 0x1.93e7de0fc4p-4,
    0x1.db11ed766cp-4, 0x1.25ba8215bp-3, 0x1.4d43f8275ap-3, 0x1.61b6939984p-3,
  },
  LOG10_LO_F64 = { "f64",
    0x1.340511b402e0ap-47, 0x1.606adb567e739p-45, 0x1.dcffc97be8c9cp-45, -0x1.5ea6bc2bc8c2cp-52,
    0x1.bdafc8ad828b8p-45, 0x1.9f05921f59258p-46, 0x1.90dfe0d1601cap-44, 0x0p0,
    -0x1.00925a535ae72p-44, 0x1.badcf3d6e4566p-46, 0x1.d288560689912p-53, -0x1.80743406505e6p-48,
    -0x1.40bcd23c3e44cp-44, -0x1.007bf2d8bf07ap-44, 0x1.20ca9a2bcc728p-45, -0x1.f70dc69c572dap-44,
  },
  LOG10_HI = { "f32",
    -0x1.b8ep-4, -0x1.5fe8p-4, -0x1.31bp-4, -0x1.024p-4, -0x1.3edp-5, -0x1.af6p-6, -0x1.b6p-7, 0x0p0,
    0x1.cb4p-6, 0x1.9c2p-5, 0x1.2e38p-4, 0x1.93e8p-4, 0x1.db1p-4, 0x1.25bcp-3, 0x1.4d44p-3, 0x1.61b8p-3,
  },
  LOG10_LO = { "f32",
    0x1.b2c54cp-20, -0x1.222bd4p-26, -0x1.82ae24p-19, -0x1.460f84p-19,
    -0x1.199a5ep-21, 0x1.b53fc6p-24, 0x1.6f714ep-19, 0x0p0,
    -0x1.c0cc9ep-20, -0x1.a1504p-19, 0x1.3a05bcp-19, -0x1.0f81ep-23,
    0x1.ed766ap-20, -0x1.7dea5p-19, -0x1.f6296ep-25, -0x1.6c667cp-19,
  },
}

func "log2_by_table" {
  doc  = "log2 x, for e = log_exponent(x).",
  args = "e, x",
  f32  = [[
    f32 r = log_rest(x);
    f32 k = fma(e, 0x1p-23, lookup(LOG2_HI, log_bits_f32(x) >> 19));
    f32 u = fma(r, LOG2_C_F32, k);
    f32 ul = fma(r, LOG2_C_F32, k - u);
    f32 p = fma(r, fma(r, fma(r, LOG2_F32_C5, LOG2_F32_C4), LOG2_F32_C3), LOG2_F32_C2);
    return canonical(u + fma(r, fma(r, p, LOG2_C_LO_F32), lookup(LOG2_LO, log_bits_f32(x) >> 19) + ul)); ]],
  derivation = "tools/fit/log2.sollya",
}

func "log10_by_table" {
  doc  = "log10 x, for e = log_table_exponent(x).",
  args = "e, x",
  f32  = [[
    f32 r = log_rest(x);
    f32 k = fma(e, LOG10_2_HI_F32, lookup(LOG10_HI, log_bits_f32(x) >> 19));
    f32 k_lo = fma(e, LOG10_2_LO_F32, lookup(LOG10_LO, log_bits_f32(x) >> 19));
    f32 u = fma(r, LOG10_C_F32, k);
    f32 ul = fma(r, LOG10_C_F32, k - u);
    f32 p = fma(r, fma(r, fma(r, LOG10_F32_C5, LOG10_F32_C4), LOG10_F32_C3), LOG10_F32_C2);
    return canonical(u + fma(r, fma(r, p, LOG10_C_LO_F32), k_lo + ul)); ]],
  f64  = [[
    f64 r = log_table_rest(x);
    f64 k = fma(e, LOG10_2_HI_F64, lookup(LOG10_HI_F64, log_table_bits(x) >> 48));
    f64 k_lo = fma(e, LOG10_2_LO_F64, lookup(LOG10_LO_F64, log_table_bits(x) >> 48));
    f64 u = fma(r, LOG10_C_F64, k);
    f64 ul = fma(r, LOG10_C_F64, k - u);
    f64 w = r * r;
    f64 p8 = fma(LOG10_F64_C10, w, fma(LOG10_F64_C9, r, LOG10_F64_C8));
    f64 p6 = fma(p8, w, fma(LOG10_F64_C7, r, LOG10_F64_C6));
    f64 p4 = fma(p6, w, fma(LOG10_F64_C5, r, LOG10_F64_C4));
    f64 p2 = fma(p4, w, fma(LOG10_F64_C3, r, LOG10_F64_C2));
    return canonical(u + fma(r, fma(r, p2, LOG10_C_LO_F64), k_lo + ul)); ]],
  derivation = "tools/fit/log2.sollya",
}

func "log2_sum" {
  doc  = "e + log2(1 + f), 1 + f in [sqrt(1/2), sqrt(2)).",
  args = "e, f",
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

func "log2" {
  doc  = "The logarithm to base 2.",
  args = "x",
  f32  = [[
    f32 y = log2_by_table(log_exponent(x), x);
    rare (log_beyond(x)) {
      f32 n = x * 0x1p23;
      y = log_ends(x, log2_by_table(log_exponent(n) - 0x1.7p27, n));
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
  ulp = { f32 = 0.55, f64 = 0.92 },    -- f32: over all arguments, 0.524; f64: 0.901 measured
  derivation = "tools/fit/log2.sollya",
}

func "log10" {
  doc  = "The logarithm to base 10.",
  args = "x",
  f32  = [[
    f32 y = log10_by_table(log_exponent(x), x);
    rare (log_beyond(x)) {
      f32 n = x * 0x1p23;
      y = log_ends(x, log10_by_table(log_exponent(n) - 0x1.7p27, n));
    }
    return y; ]],
  f64  = [[
    f64 y = log10_by_table(log_table_exponent(x), x);
    rare (log_beyond(x)) {
      f64 n = x * 0x1p52;
      y = log_ends(x, log10_by_table(log_table_exponent(n) - 52.0, n));
    }
    return y; ]],
  ulp = { f32 = 0.55, f64 = 0.6 },     -- f32: over all arguments, 0.526
  derivation = "tools/fit/log2.sollya",
}
