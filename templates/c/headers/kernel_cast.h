/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_cast.h: q_cast_A_B for every ordered pair of bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 (bool, f16, bf16 in their storage
   types). Each rounds once from the exact value, ties to even; a NaN result is the canonical one of its format; float to integer truncates,
   saturates and takes NaN to 0; integers wrap; to bool is != 0. Branch-free, so that each vectorises in a plain loop.
   Included by kernel.h. Casts from an integer to a float and from f16 are macros around q_zcast_A_B(x, zero): they take the opaque zero
   that Q_KERNEL_ENTRY declares. */
#ifndef QUERN_KERNEL_CAST_H
#define QUERN_KERNEL_CAST_H

/* Are there vector instructions between 64-bit integers and floats? Otherwise magic numbers do it. */
#if defined(__AVX512DQ__) || defined(__aarch64__)
#define Q_NATIVE_I64_FLOAT 1
#endif

/* ---- Between integers, to and from bool ---- */

#define Q_CAST_WRAP(A, B) \
  Q_FN B q_cast_##A##_##B(A x) { return (B)x; }
#define Q_CAST_TO_BOOL(A) \
  Q_FN bool_s q_cast_##A##_bool(A x) { return (bool_s)(x != 0); }
#define Q_CAST_FROM_BOOL(B) \
  Q_FN B q_cast_bool_##B(bool_s x) { return (B)(x != 0); }
#define Q_CAST_7(A, B, C, D, E, F, G, H)                                                                                        \
  Q_CAST_WRAP(A, B) Q_CAST_WRAP(A, C) Q_CAST_WRAP(A, D) Q_CAST_WRAP(A, E) Q_CAST_WRAP(A, F) Q_CAST_WRAP(A, G) Q_CAST_WRAP(A, H) \
  Q_CAST_TO_BOOL(A) Q_CAST_FROM_BOOL(A)
Q_CAST_7(i8, i16, i32, i64, u8, u16, u32, u64)
Q_CAST_7(i16, i8, i32, i64, u8, u16, u32, u64)
Q_CAST_7(i32, i8, i16, i64, u8, u16, u32, u64)
Q_CAST_7(i64, i8, i16, i32, u8, u16, u32, u64)
Q_CAST_7(u8, i8, i16, i32, i64, u16, u32, u64)
Q_CAST_7(u16, i8, i16, i32, i64, u8, u32, u64)
Q_CAST_7(u32, i8, i16, i32, i64, u8, u16, u64)
Q_CAST_7(u64, i8, i16, i32, i64, u8, u16, u32)
Q_CAST_TO_BOOL(f32)
Q_CAST_TO_BOOL(f64)
#undef Q_CAST_7
#undef Q_CAST_WRAP
#undef Q_CAST_TO_BOOL
#undef Q_CAST_FROM_BOOL

Q_FN bool_s q_cast_f16_bool(f16_s x) { return (bool_s)((x & 0x7fff) != 0); }
Q_FN bool_s q_cast_bf16_bool(bf16_s x) { return (bool_s)((x & 0x7fff) != 0); }
Q_FN f16_s q_cast_bool_f16(bool_s x) { return (f16_s)(x != 0 ? 0x3c00 : 0); }
Q_FN bf16_s q_cast_bool_bf16(bool_s x) { return (bf16_s)(x != 0 ? 0x3f80 : 0); }
Q_FN f32 q_cast_bool_f32(bool_s x) { return q_from_f32(x != 0 ? 0x3f800000u : 0u); }
Q_FN f64 q_cast_bool_f64(bool_s x) { return x != 0 ? 1.0 : 0.0; }

/* ---- Between floats ---- */

Q_FN f64 q_cast_f32_f64(f32 x) { return (f64)q_canon_f32(x); } /* fewer elements in a vector of f64 */
Q_FN f32 q_cast_f64_f32(f64 x) { return q_canon_f32((f32)x); }

/* q_f16_f32 leaves NaN payloads; q_f32_f16 takes numbers (a NaN becomes some NaN or infinity).
   Where conversion is an instruction that the compiler vectorises, it is used. Clang would move a comparison that follows it to the f16 side,
   where there are no instructions: the opaque zero stops that. GCC before 14 has vectors of it only in kernel_pack.h and kernel_strips.h. */
#if (defined(__clang__) && defined(__F16C__)) || defined(__aarch64__)
Q_FN f32 q_f16_f32(f16_s x, i32 zero) {
  union { u16 u; __fp16 h; } pun = {x};
  return q_from_f32(q_raw_f32((f32)pun.h) ^ (u32)zero);
}
Q_FN f16_s q_f32_f16(f32 x) {
  union { __fp16 h; u16 u; } pun = {(__fp16)x};
  return pun.u;
}
Q_FN f16_s q_cast_f32_f16(f32 x) {
  f16_s bits = q_f32_f16(x);
  return q_sel_u16(Q_MASK(m16, (i16)(bits & 0x7fff) > 0x7c00), 0x7e00, bits);
}
Q_FN f32 q_zcast_f16_f32(f16_s x, i32 zero) {
  return q_f16_f32(q_sel_u16(Q_MASK(m16, (i16)(x & 0x7fff) > 0x7c00), 0x7e00, x), zero);
}
#else
/* The bits are read as a float with an exponent too low by 112. A factor 2^-112 (from 112 above, so that infinity and NaN arrive at the top)
   corrects it; a subnormal is read as the low bits of 0.5 + x. */
Q_FN f32 q_f16_f32(f16_s x, i32 zero) {
  (void)zero;
  u32 magnitude = (u32)x & 0x7fffu, sign = ((u32)x & 0x8000u) << 16;
  f32 normal = q_from_f32((magnitude << 13) + (224u << 23)) * 0x1p-112f;
  f32 subnormal = q_from_f32(magnitude | 126u << 23) - 0.5f;
  return q_from_f32(sign | q_raw_f32(q_sel_f32(Q_MASK(m32, (i32)magnitude < 0x400), subnormal, normal)));
}
/* Normal results: the exponent is moved and the low 13 bits are rounded in integers, a carry going up to infinity as it should. Below 2^-14
   adding 0.5 lets the float adder round at 2^-24. */
Q_FN f16_s q_f32_f16(f32 x) {
  u32 raw = q_raw_f32(x), magnitude = raw & 0x7fffffffu, sign = raw >> 16 & 0x8000u;
  u32 normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
  u32 subnormal = q_raw_f32(q_from_f32(magnitude) + 0.5f) - 0x3f000000u;
  u32 finite = q_sel_u32(Q_MASK(m32, (i32)magnitude < 0x38800000), subnormal, normal);
  return (f16_s)(q_sel_u32(Q_MASK(m32, (i32)magnitude >= 0x47800000), 0x7c00u, finite) | sign);
}
Q_FN f16_s q_cast_f32_f16(f32 x) { return (f16_s)q_sel_u32(Q_MASK(m32, x == x), q_f32_f16(x), 0x7e00u); }
Q_FN f32 q_zcast_f16_f32(f16_s x, i32 zero) { return q_canon_f32(q_f16_f32(x, zero)); }
#endif

Q_FN f32 q_bf16_f32(bf16_s x) { return q_from_f32((u32)x << 16); }
Q_FN f32 q_cast_bf16_f32(bf16_s x) { return q_canon_f32(q_bf16_f32(x)); }
/* x rounded, in the upper half. q_half_bf16 takes numbers and the canonical NaN; another NaN may become infinity. In u32, the width of the casts'
   selects. */
Q_FN u32 q_half_bf16(f32 x) {
  u32 raw = q_raw_f32(x);
  return raw + 0x7fffu + (raw >> 16 & 1u);
}
Q_FN u32 q_cast_half_bf16(f32 x) { return q_sel_u32(Q_MASK(m32, x == x), q_half_bf16(x), 0x7fc00000u); }
Q_FN u32 q_f32_bf16(f32 x) { return q_half_bf16(x) >> 16; }
/* Two elements, the first one in the lower half. */
Q_FN f32 q_low_bf16(u32 pair) { return q_from_f32(pair << 16); }
Q_FN f32 q_high_bf16(u32 pair) { return q_from_f32(pair & 0xffff0000u); }
Q_FN u32 q_join_bf16(u32 low, u32 high) { return low >> 16 | (high & 0xffff0000u); }
Q_FN bf16_s q_cast_f32_bf16(f32 x) { return (bf16_s)q_sel_u32(Q_MASK(m32, x == x), q_f32_bf16(x), 0x7fc0u); }

Q_FN bf16_s q_zcast_f16_bf16(f16_s x, i32 zero) { return q_cast_f32_bf16(q_f16_f32(x, zero)); } /* f16 to f32 is exact */
Q_FN f16_s q_cast_bf16_f16(bf16_s x) { return q_cast_f32_f16(q_bf16_f32(x)); } /* so is bf16 to f32 */
Q_FN f64 q_zcast_f16_f64(f16_s x, i32 zero) { return q_cast_f32_f64(q_f16_f32(x, zero)); }
Q_FN f64 q_cast_bf16_f64(bf16_s x) { return q_cast_f32_f64(q_bf16_f32(x)); }

/* f64 to f32 for a further rounding to f16 or bf16: rounded to odd at 16 significant bits. That is enough for both (11 and 8, and two more)
   and so few that the conversion to f32 is exact down to 2^-134, half the smallest bf16; smaller numbers become zero either way. */
Q_FN f32 q_odd_f32(f64 x) {
  const u64 low = ((u64)1 << 37) - 1;
  u64 raw = q_raw_f64(x);
  return (f32)q_from_f64((raw | ((raw & low) + low)) & ~low);
}
Q_FN f16_s q_cast_f64_f16(f64 x) { return q_cast_f32_f16(q_odd_f32(x)); }
Q_FN bf16_s q_cast_f64_bf16(f64 x) { return q_cast_f32_bf16(q_odd_f32(x)); }

/* ---- Float to integer ---- */

/* Clamped before the conversion, which C leaves undefined outside the range; HIGH is the largest F that converts. NaN, which fails every
   comparison, becomes LOW, so a signed cast takes it to 0 first. */
#define Q_CLAMP(F, M)                                       \
  Q_FN F q_clamp_##F(F x, F low, F high) {                  \
    F above = q_sel_##F(Q_MASK(M, x > low), x, low);        \
    return q_sel_##F(Q_MASK(M, above < high), above, high); \
  }                                                         \
  Q_FN F q_number_##F(F x) { return q_sel_##F(Q_MASK(M, x == x), x, 0); }
Q_CLAMP(f32, m32)
Q_CLAMP(f64, m64)
#undef Q_CLAMP

#define Q_CAST_TRUNC_SIGNED(F, B, LOW, HIGH) \
  Q_FN B q_cast_##F##_##B(F x) { return (B)(i32)q_clamp_##F(q_number_##F(x), LOW, HIGH); }
#define Q_CAST_TRUNC_UNSIGNED(F, B, HIGH) \
  Q_FN B q_cast_##F##_##B(F x) { return (B)(i32)q_clamp_##F(x, 0, HIGH); }
Q_CAST_TRUNC_SIGNED(f32, i8, -128.0f, 127.0f)
Q_CAST_TRUNC_SIGNED(f32, i16, -32768.0f, 32767.0f)
Q_CAST_TRUNC_SIGNED(f64, i8, -128.0, 127.0)
Q_CAST_TRUNC_SIGNED(f64, i16, -32768.0, 32767.0)
Q_CAST_TRUNC_SIGNED(f64, i32, -2147483648.0, 2147483647.0)
Q_CAST_TRUNC_UNSIGNED(f32, u8, 255.0f)
Q_CAST_TRUNC_UNSIGNED(f32, u16, 65535.0f)
Q_CAST_TRUNC_UNSIGNED(f64, u8, 255.0)
Q_CAST_TRUNC_UNSIGNED(f64, u16, 65535.0)
#undef Q_CAST_TRUNC_SIGNED
#undef Q_CAST_TRUNC_UNSIGNED

Q_FN i32 q_cast_f32_i32(f32 x) {
  i32 inside = (i32)q_clamp_f32(q_number_f32(x), -0x1p31f, 0x1.fffffep30f);
  return q_sel_i32(Q_MASK(m32, x >= 0x1p31f), 0x7fffffff, inside);
}
Q_FN u32 q_cast_f32_u32(f32 x) {
  u32 inside = (u32)q_clamp_f32(x, 0, 0x1.fffffep31f);
  return q_sel_u32(Q_MASK(m32, x >= 0x1p32f), 0xffffffffu, inside);
}
Q_FN u32 q_cast_f64_u32(f64 x) {
  f64 inside = q_clamp_f64(x, 0, 4294967295.0);
#if defined(Q_NATIVE_I64_FLOAT)
  return (u32)inside;
#else
  return q_u32_of_f64(inside);
#endif
}

#define Q_I64_MAX ((i64)0x7fffffffffffffff)

#if defined(Q_NATIVE_I64_FLOAT)
Q_FN i64 q_cast_f64_i64(f64 x) {
  i64 inside = (i64)q_clamp_f64(q_number_f64(x), -0x1p63, 0x1.fffffffffffffp62);
  return q_sel_i64(Q_MASK(m64, x >= 0x1p63), Q_I64_MAX, inside);
}
Q_FN u64 q_cast_f64_u64(f64 x) {
  u64 inside = (u64)q_clamp_f64(x, 0, 0x1.fffffffffffffp63);
  return q_sel_u64(Q_MASK(m64, x >= 0x1p64), ~(u64)0, inside);
}
#else
/* Split at 2^32; a float plus 2^52 (and half of it more for a signed one) shows its integer value in its low bits. Nothing here is undefined
   outside the range, so the ends are put in afterwards. */
Q_FN i64 q_cast_f64_i64(f64 x) {
  f64 whole = q_trunc_f64(x), high = q_floor_f64(whole * 0x1p-32), low = whole - high * 0x1p32;
  i64 inside = (i64)(q_raw_f64(high + 0x1.8p52) << 32 | (q_raw_f64(low + 0x1p52) & 0xffffffffu));
  i64 above = q_sel_i64(Q_MASK(m64, x >= 0x1p63), Q_I64_MAX, inside);
  i64 both = q_sel_i64(Q_MASK(m64, x < -0x1p63), -Q_I64_MAX - 1, above);
  return both & Q_MASK(m64, x == x);
}
Q_FN u64 q_cast_f64_u64(f64 x) {
  f64 whole = q_trunc_f64(x), high = q_floor_f64(whole * 0x1p-32), low = whole - high * 0x1p32;
  u64 inside = q_raw_f64(high + 0x1p52) << 32 | (q_raw_f64(low + 0x1p52) & 0xffffffffu);
  u64 above = q_sel_u64(Q_MASK(m64, x >= 0x1p64), ~(u64)0, inside);
  return above & (u64)Q_MASK(m64, x > 0);
}
#endif
Q_FN i64 q_cast_f32_i64(f32 x) { return q_cast_f64_i64((f64)x); }
Q_FN u64 q_cast_f32_u64(f32 x) { return q_cast_f64_u64((f64)x); }

#define Q_CAST_F16(B) \
  Q_FN B q_zcast_f16_##B(f16_s x, i32 zero) { return q_cast_f32_##B(q_f16_f32(x, zero)); }
#define Q_CAST_BF16(B) \
  Q_FN B q_cast_bf16_##B(bf16_s x) { return q_cast_f32_##B(q_bf16_f32(x)); }
Q_CAST_F16(i8) Q_CAST_F16(i16) Q_CAST_F16(i32) Q_CAST_F16(u8) Q_CAST_F16(u16) Q_CAST_F16(u32)
Q_CAST_BF16(i8) Q_CAST_BF16(i16) Q_CAST_BF16(i32) Q_CAST_BF16(i64)
Q_CAST_BF16(u8) Q_CAST_BF16(u16) Q_CAST_BF16(u32) Q_CAST_BF16(u64)
#undef Q_CAST_F16
#undef Q_CAST_BF16
/* A finite f16 is below 2^16, so the ends of the 32-bit range mean infinity; u32's is -1 when read as i32. */
Q_FN i64 q_zcast_f16_i64(f16_s x, i32 zero) {
  i32 y = q_zcast_f16_i32(x, zero);
  i64 wide = q_sel_i64(Q_MASK(m64, y == 0x7fffffff), Q_I64_MAX, (i64)y);
  return q_sel_i64(Q_MASK(m64, y == -0x7fffffff - 1), -Q_I64_MAX - 1, wide);
}
Q_FN u64 q_zcast_f16_u64(f16_s x, i32 zero) { return (u64)(i64)(i32)q_zcast_f16_u32(x, zero); }

/* ---- Integer to float ---- */

#define Q_ZCAST_BY_I32(A)                                                    \
  Q_FN f32 q_zcast_##A##_f32(A x, i32 zero) { return (f32)((i32)x ^ zero); } \
  Q_FN f64 q_zcast_##A##_f64(A x, i32 zero) { return (f64)((i32)x ^ zero); }
Q_ZCAST_BY_I32(i8)
Q_ZCAST_BY_I32(i16)
Q_ZCAST_BY_I32(i32)
Q_ZCAST_BY_I32(u8)
Q_ZCAST_BY_I32(u16)
#undef Q_ZCAST_BY_I32
Q_FN f32 q_zcast_u32_f32(u32 x, i32 zero) { return (f32)(x ^ (u32)zero); }
Q_FN f64 q_zcast_u32_f64(u32 x, i32 zero) {
#if defined(Q_NATIVE_I64_FLOAT)
  return (f64)(x ^ (u32)zero);
#else
  (void)zero;
  return q_from_f64((u64)x | (u64)0x433 << 52) - 0x1p52;
#endif
}

#if defined(Q_NATIVE_I64_FLOAT)
Q_FN f64 q_zcast_i64_f64(i64 x, i32 zero) { return (f64)(x ^ (i64)zero); }
Q_FN f64 q_zcast_u64_f64(u64 x, i32 zero) { return (f64)(x ^ (u64)(i64)zero); }
#else
/* The halves are put as mantissas under 2^84 and 2^52; taking 2^84 and 2^52 (and the sign's 2^63) off the high one is exact, so the last
   addition is the only rounding. No cast here that a compiler could pair. */
Q_FN f64 q_zcast_u64_f64(u64 x, i32 zero) {
  f64 high = q_from_f64(x >> 32 | (u64)0x453 << 52), low = q_from_f64((x & 0xffffffffu) | (u64)0x433 << 52);
  (void)zero;
  return (high - 0x1.00000001p84) + low;
}
Q_FN f64 q_zcast_i64_f64(i64 x, i32 zero) {
  u64 biased = (u64)x ^ (u64)1 << 63;
  f64 high = q_from_f64(biased >> 32 | (u64)0x453 << 52), low = q_from_f64((biased & 0xffffffffu) | (u64)0x433 << 52);
  (void)zero;
  return (high - 0x1.00000801p84) + low;
}
#endif

/* Wide integers on their way to a narrower float are first rounded to odd at the precision P of the float in between (f64 53, f32 24 bits):
   if the integer does not fit, its low bits are ored into the lowest remaining bit. */
#define Q_ODD(I, U, M, BITS, P)                                                                           \
  Q_FN U q_odd_##U(U x) {                                                                                 \
    const U low = ((U)1 << (BITS - P)) - 1;                                                               \
    return q_sel_##U(Q_MASK(M, x >> P == 0), x, (x | ((x & low) + low)) & ~low);                          \
  }                                                                                                       \
  Q_FN I q_odd_##I(I x) {                                                                                 \
    const U low = ((U)1 << (BITS - P)) - 1, u = (U)x;                                                     \
    return (I)q_sel_##U(Q_MASK(M, (u + ((U)1 << P)) >> (P + 1) == 0), u, (u | ((u & low) + low)) & ~low); \
  }
Q_ODD(i32, u32, m32, 32, 24)
Q_ODD(i64, u64, m64, 64, 53)
#undef Q_ODD

#if defined(Q_NATIVE_I64_FLOAT)
Q_FN f32 q_zcast_i64_f32(i64 x, i32 zero) { return (f32)(x ^ (i64)zero); }
Q_FN f32 q_zcast_u64_f32(u64 x, i32 zero) { return (f32)(x ^ (u64)(i64)zero); }
#else
Q_FN f32 q_zcast_i64_f32(i64 x, i32 zero) { return (f32)q_zcast_i64_f64(q_odd_i64(x), zero); }
Q_FN f32 q_zcast_u64_f32(u64 x, i32 zero) { return (f32)q_zcast_u64_f64(q_odd_u64(x), zero); }
#endif

/* To f16: f32 holds every integer below 2^24, and larger ones are infinite in f16, so rounding to f32 first does no harm. */
#define Q_ZCAST_F16(A) \
  Q_FN f16_s q_zcast_##A##_f16(A x, i32 zero) { return q_f32_f16(q_zcast_##A##_f32(x, zero)); }
Q_ZCAST_F16(i8) Q_ZCAST_F16(i16) Q_ZCAST_F16(i32) Q_ZCAST_F16(u8) Q_ZCAST_F16(u16) Q_ZCAST_F16(u32)
#undef Q_ZCAST_F16
/* 64 bits: what is beyond +-2^17, infinite in f16, becomes +-2^17. */
Q_FN f16_s q_zcast_u64_f16(u64 x, i32 zero) {
  return q_zcast_i32_f16((i32)q_sel_u64(Q_MASK(m64, x >> 17 == 0), x, 0x20000), zero);
}
Q_FN f16_s q_zcast_i64_f16(i64 x, i32 zero) {
  m64 negative = Q_MASK(m64, x < 0), inside = Q_MASK(m64, ((u64)x + 0x20000) >> 18 == 0);
  return q_zcast_i32_f16((i32)q_sel_i64(inside, x, 0x20000 ^ (negative & (0x20000 ^ -0x20000))), zero);
}

/* To bf16: exact in f32 up to 24 bits, beyond by rounding to odd. */
Q_FN bf16_s q_zcast_i8_bf16(i8 x, i32 zero) { return q_cast_f32_bf16(q_zcast_i8_f32(x, zero)); }
Q_FN bf16_s q_zcast_i16_bf16(i16 x, i32 zero) { return q_cast_f32_bf16(q_zcast_i16_f32(x, zero)); }
Q_FN bf16_s q_zcast_u8_bf16(u8 x, i32 zero) { return q_cast_f32_bf16(q_zcast_u8_f32(x, zero)); }
Q_FN bf16_s q_zcast_u16_bf16(u16 x, i32 zero) { return q_cast_f32_bf16(q_zcast_u16_f32(x, zero)); }
Q_FN bf16_s q_zcast_i32_bf16(i32 x, i32 zero) { return q_cast_f32_bf16(q_zcast_i32_f32(q_odd_i32(x), zero)); }
Q_FN bf16_s q_zcast_u32_bf16(u32 x, i32 zero) { return q_cast_f32_bf16(q_zcast_u32_f32(q_odd_u32(x), zero)); }
Q_FN bf16_s q_zcast_i64_bf16(i64 x, i32 zero) { return q_cast_f64_bf16(q_zcast_i64_f64(q_odd_i64(x), zero)); }
Q_FN bf16_s q_zcast_u64_bf16(u64 x, i32 zero) { return q_cast_f64_bf16(q_zcast_u64_f64(q_odd_u64(x), zero)); }

#define q_cast_f16_i8(x) q_zcast_f16_i8(x, q_zero)
#define q_cast_f16_i16(x) q_zcast_f16_i16(x, q_zero)
#define q_cast_f16_i32(x) q_zcast_f16_i32(x, q_zero)
#define q_cast_f16_i64(x) q_zcast_f16_i64(x, q_zero)
#define q_cast_f16_u8(x) q_zcast_f16_u8(x, q_zero)
#define q_cast_f16_u16(x) q_zcast_f16_u16(x, q_zero)
#define q_cast_f16_u32(x) q_zcast_f16_u32(x, q_zero)
#define q_cast_f16_u64(x) q_zcast_f16_u64(x, q_zero)
#define q_cast_f16_bf16(x) q_zcast_f16_bf16(x, q_zero)
#define q_cast_f16_f32(x) q_zcast_f16_f32(x, q_zero)
#define q_cast_f16_f64(x) q_zcast_f16_f64(x, q_zero)
#define q_cast_i8_f16(x) q_zcast_i8_f16(x, q_zero)
#define q_cast_i8_bf16(x) q_zcast_i8_bf16(x, q_zero)
#define q_cast_i8_f32(x) q_zcast_i8_f32(x, q_zero)
#define q_cast_i8_f64(x) q_zcast_i8_f64(x, q_zero)
#define q_cast_i16_f16(x) q_zcast_i16_f16(x, q_zero)
#define q_cast_i16_bf16(x) q_zcast_i16_bf16(x, q_zero)
#define q_cast_i16_f32(x) q_zcast_i16_f32(x, q_zero)
#define q_cast_i16_f64(x) q_zcast_i16_f64(x, q_zero)
#define q_cast_i32_f16(x) q_zcast_i32_f16(x, q_zero)
#define q_cast_i32_bf16(x) q_zcast_i32_bf16(x, q_zero)
#define q_cast_i32_f32(x) q_zcast_i32_f32(x, q_zero)
#define q_cast_i32_f64(x) q_zcast_i32_f64(x, q_zero)
#define q_cast_i64_f16(x) q_zcast_i64_f16(x, q_zero)
#define q_cast_i64_bf16(x) q_zcast_i64_bf16(x, q_zero)
#define q_cast_i64_f32(x) q_zcast_i64_f32(x, q_zero)
#define q_cast_i64_f64(x) q_zcast_i64_f64(x, q_zero)
#define q_cast_u8_f16(x) q_zcast_u8_f16(x, q_zero)
#define q_cast_u8_bf16(x) q_zcast_u8_bf16(x, q_zero)
#define q_cast_u8_f32(x) q_zcast_u8_f32(x, q_zero)
#define q_cast_u8_f64(x) q_zcast_u8_f64(x, q_zero)
#define q_cast_u16_f16(x) q_zcast_u16_f16(x, q_zero)
#define q_cast_u16_bf16(x) q_zcast_u16_bf16(x, q_zero)
#define q_cast_u16_f32(x) q_zcast_u16_f32(x, q_zero)
#define q_cast_u16_f64(x) q_zcast_u16_f64(x, q_zero)
#define q_cast_u32_f16(x) q_zcast_u32_f16(x, q_zero)
#define q_cast_u32_bf16(x) q_zcast_u32_bf16(x, q_zero)
#define q_cast_u32_f32(x) q_zcast_u32_f32(x, q_zero)
#define q_cast_u32_f64(x) q_zcast_u32_f64(x, q_zero)
#define q_cast_u64_f16(x) q_zcast_u64_f16(x, q_zero)
#define q_cast_u64_bf16(x) q_zcast_u64_bf16(x, q_zero)
#define q_cast_u64_f32(x) q_zcast_u64_f32(x, q_zero)
#define q_cast_u64_f64(x) q_zcast_u64_f64(x, q_zero)

#endif
