/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_strips.h: the operations of loops over strips. A strip has as many elements as a vector of the widest type in the computation, a
   wide strip as many as two. Arrays of that size, written by one short loop and read by the next, become registers. Between these loops are
   the operations that compilers do not vectorise by themselves, above all lookups in tables of one or a few registers. */
#ifndef QUERN_KERNEL_STRIPS_H
#define QUERN_KERNEL_STRIPS_H

/* GCC aligns arrays on the stack to 64 bytes for AVX-512, where its address sanitizer keeps to 32 (its bug 110027). */
#if defined(__AVX512F__) && (defined(__clang__) || !defined(__SANITIZE_ADDRESS__))
#define Q_STRIP_BYTES 64
#elif defined(__AVX2__)
#define Q_STRIP_BYTES 32
#else
#define Q_STRIP_BYTES 16
#endif
#define Q_STRIP_32 (Q_STRIP_BYTES / 4)
#define Q_STRIP_64 (Q_STRIP_BYTES / 8)
#define Q_WIDE_32 (2 * Q_STRIP_32)
#define Q_WIDE_64 (2 * Q_STRIP_64)
/* Q_WIDE_BYTES: the bytes of a vector for compilers that keep wide strips in registers; else 0. Clang 14 keeps them in memory: loops take 5 to 8
   times the time. So does Clang in process, by the few passes that expressions are compiled with: 1.9 to 2.6 times. */
#if defined(__clang__) ? __clang_major__ >= 19 && !defined(Q_NO_PACK) : __GNUC__ >= 12
#define Q_WIDE_BYTES Q_STRIP_BYTES
#else
#define Q_WIDE_BYTES 0
#endif

/* Q_IVDEP_STRIP precedes a loop over a strip: the loop becomes one vector iteration; compilers would otherwise unroll it to scalars first.
   Q_IVDEP_WIDE precedes one over a wide strip, which becomes two. Q_EACH_VECTOR precedes a statement for each vector of a wide strip, which
   begins at q_part.
   Q_NOT_VECTORISED is for the loop over the rest, less than a strip: vector code would only be larger. */
#if defined(__clang__)
#define Q_IVDEP_STRIP _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#define Q_IVDEP_WIDE _Pragma("clang loop vectorize(assume_safety) interleave_count(2) unroll(disable)")
#define Q_UNROLL_WIDE _Pragma("clang loop unroll(full)")
#else
#define Q_IVDEP_STRIP _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
#define Q_IVDEP_WIDE _Pragma("GCC unroll 2") _Pragma("GCC ivdep")
#define Q_UNROLL_WIDE _Pragma("GCC unroll 2")
#endif
#define Q_EACH_VECTOR(BITS) Q_UNROLL_WIDE for (int q_part = 0; q_part < Q_WIDE_##BITS; q_part += Q_STRIP_##BITS)
#define Q_NOT_VECTORISED __asm__ volatile("")

/* ---- Elements of a strip in memory ---- */

/* q_strip_X_BITS: a strip of X where the widest type has BITS; q_strip_X_BITS_u: the same at any address. A strip in memory is read into
   a variable before it is cast: GCC would merge read and cast into a read of the other type, at an address aligned for it.
   q_take: all at once. GCC would load a short loop's elements one by one where it needs them twice. */
#define Q_STRIP(X, BITS)                                                                           \
  typedef X q_strip_##X##_##BITS __attribute__((vector_size(sizeof(X) * Q_STRIP_##BITS)));         \
  typedef q_strip_##X##_##BITS q_strip_##X##_##BITS##_u __attribute__((aligned(1), may_alias));    \
  Q_FN void q_take_##X##_##BITS(X *to, const X##_u *from) {                                        \
    *(q_strip_##X##_##BITS##_u *)to = *(const q_strip_##X##_##BITS##_u *)from;                     \
  }
#define Q_STRIPS(X) Q_STRIP(X, 32) Q_STRIP(X, 64)
Q_STRIPS(f32) Q_STRIPS(f64)
Q_STRIPS(i8) Q_STRIPS(i16) Q_STRIPS(i32) Q_STRIPS(i64)
Q_STRIPS(u8) Q_STRIPS(u16) Q_STRIPS(u32) Q_STRIPS(u64)
Q_STRIPS(bool_s) Q_STRIPS(f16_s) Q_STRIPS(bf16_s)
#undef Q_STRIPS
#undef Q_STRIP

/* ---- Conditions in memory ---- */

/* Stored by the loop that computes them, they would limit GCC's vectors to as many elements as fit one vector as bytes. */
#define Q_GIVE_BOOL_SINGLY(BITS)                                            \
  Q_FN void q_give_bool_##BITS(bool_s_u *to, const m##BITS *from) {         \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = (bool_s)(from[l] & 1); \
  }
#if Q_STRIP_BYTES == 64
Q_FN void q_give_bool_32(bool_s_u *to, const m32 *from) {
  const q_strip_i32_32 masks = *(const q_strip_i32_32_u *)from;
  *(q_strip_bool_s_32_u *)to = __builtin_convertvector(masks, q_strip_bool_s_32) & 1;
}
#elif Q_STRIP_BYTES == 32
typedef i32 q_i32x4 __attribute__((vector_size(16)));
typedef q_i32x4 q_i32x4_u __attribute__((aligned(1), may_alias));
typedef char q_char_x16 __attribute__((vector_size(16)));
typedef long long q_ll_x2 __attribute__((vector_size(16)));
Q_FN void q_give_bool_32(bool_s_u *to, const m32 *from) {
  const q_i32x4 low = ((const q_i32x4_u *)from)[0], high = ((const q_i32x4_u *)from)[1];
  const q_strip_i16_32 halves = __builtin_ia32_packssdw128(low, high);
  const q_char_x16 bytes = (q_char_x16)__builtin_ia32_packsswb128(halves, halves) & 1;
  *(u64_u *)to = (u64)((q_ll_x2)bytes)[0];
}
#else
Q_GIVE_BOOL_SINGLY(32)
#endif
Q_GIVE_BOOL_SINGLY(64)
#undef Q_GIVE_BOOL_SINGLY

/* ---- Conditions of elements wider than bytes, many at a time ---- */

/* Q_PACKS_BOOLS: GCC takes two to three instructions for each of Clang's to make bytes of wide masks, so the masks of Q_BOOLS elements are packed by
   hand: q_give_bools_BITS. (Of 16 elements GCC would unroll the loop before it vectorises it.) With AVX-512 GCC joins mask registers, but only
   where it selects a byte that it does not know: Q_BOOL is the stored value of a mask, `one` or 0. */
#define Q_BOOLS 32
#if defined(__clang__) || !defined(__SSE4_2__) || defined(__AVX512F__)
#define Q_PACKS_BOOLS 0
#define Q_IVDEP_BOOLS Q_IVDEP
#define Q_REST_OF_BOOLS ((void)0)
#else
#define Q_PACKS_BOOLS 1
#define Q_IVDEP_BOOLS
#define Q_REST_OF_BOOLS Q_NOT_VECTORISED
#endif
#if defined(__AVX512F__) && !defined(__clang__)
Q_FN u8 q_opaque_one(void) {
  u8 one = 1;
  __asm__("" : "+r"(one));
  return one;
}
#define Q_BOOL(mask) ((mask) ? one : (u8)0)
#else
Q_FN u8 q_opaque_one(void) { return 1; }
#define Q_BOOL(mask) ((bool_s)((mask) & one))
#endif

#if Q_PACKS_BOOLS
#define Q_BOOLS_BYTES (Q_STRIP_BYTES == 16 ? 16 : 32)
typedef char q_bools __attribute__((vector_size(Q_BOOLS_BYTES)));
typedef q_bools q_bools_u __attribute__((aligned(1), may_alias));
typedef i16 q_masks_16 __attribute__((vector_size(Q_BOOLS_BYTES)));
typedef i32 q_masks_32 __attribute__((vector_size(Q_BOOLS_BYTES)));
typedef q_masks_32 q_masks_32_u __attribute__((aligned(1), may_alias));
typedef f32 q_masks_f32 __attribute__((vector_size(Q_BOOLS_BYTES)));
typedef long long q_masks_64 __attribute__((vector_size(Q_BOOLS_BYTES)));
/* q_pack_BITS: the masks of a, then those of b, as masks of half as many bits; of vectors of 32 bytes by halves. */
#if Q_STRIP_BYTES == 16
Q_FN q_masks_32 q_pack_64(q_masks_32 a, q_masks_32 b) { return (q_masks_32)__builtin_ia32_shufps((q_masks_f32)a, (q_masks_f32)b, 0x88); }
Q_FN q_masks_16 q_pack_32(q_masks_32 a, q_masks_32 b) { return __builtin_ia32_packssdw128(a, b); }
Q_FN q_bools q_pack_16(q_masks_16 a, q_masks_16 b) { return (q_bools)__builtin_ia32_packsswb128(a, b); }
Q_FN void q_give_bools_32(bool_s_u *to, const m32 *from) {
  const q_masks_32_u *const m = (const q_masks_32_u *)from;
  ((q_bools_u *)to)[0] = q_pack_16(q_pack_32(m[0], m[1]), q_pack_32(m[2], m[3])) & 1;
  ((q_bools_u *)to)[1] = q_pack_16(q_pack_32(m[4], m[5]), q_pack_32(m[6], m[7])) & 1;
}
Q_FN void q_give_bools_64(bool_s_u *to, const m64 *from) {
  m32 narrow[Q_BOOLS];
  const q_masks_32_u *const m = (const q_masks_32_u *)from;
  for (int k = 0; k < 8; k++) ((q_masks_32_u *)narrow)[k] = q_pack_64(m[2 * k], m[2 * k + 1]);
  q_give_bools_32(to, narrow);
}
#else
Q_FN q_masks_32 q_pack_64(q_masks_32 a, q_masks_32 b) { return (q_masks_32)__builtin_ia32_shufps256((q_masks_f32)a, (q_masks_f32)b, 0x88); }
Q_FN q_masks_16 q_pack_32(q_masks_32 a, q_masks_32 b) { return __builtin_ia32_packssdw256(a, b); }
Q_FN q_bools q_pack_16(q_masks_16 a, q_masks_16 b) { return (q_bools)__builtin_ia32_packsswb256(a, b); }
Q_FN void q_give_bools_32(bool_s_u *to, const m32 *from) {
  const q_masks_32_u *const m = (const q_masks_32_u *)from;
  const q_bools bytes = q_pack_16(q_pack_32(m[0], m[1]), q_pack_32(m[2], m[3]));
  const q_masks_32 quads_in_turn = {0, 4, 1, 5, 2, 6, 3, 7};
  *(q_bools_u *)to = (q_bools)__builtin_ia32_permvarsi256((q_masks_32)bytes, quads_in_turn) & 1;
}
Q_FN void q_give_bools_64(bool_s_u *to, const m64 *from) {
  const q_masks_32_u *const m = (const q_masks_32_u *)from;
  const q_masks_16 low = q_pack_32(q_pack_64(m[0], m[1]), q_pack_64(m[2], m[3]));
  const q_masks_16 high = q_pack_32(q_pack_64(m[4], m[5]), q_pack_64(m[6], m[7]));
  const q_bools pairs_in_turn = {0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15, 0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15};
  const q_bools halves = (q_bools)__builtin_ia32_permdi256((q_masks_64)q_pack_16(low, high), 0xd8);
  *(q_bools_u *)to = (q_bools)__builtin_ia32_pshufb256(halves, pairs_in_turn) & 1;
}
#endif
#endif

/* ---- Conversion of a strip between f16 and f32 ---- */

/* q_widen keeps NaN payloads. q_narrow takes numbers and the canonical NaN; without an instruction it makes any NaN canonical itself. */
#define Q_CONVERT_SINGLY(BITS)                                                 \
  Q_FN void q_widen_##BITS(f32 *to, const f16_s_u *from, i32 zero) {           \
    Q_IVDEP_STRIP                                                              \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = q_f16_f32(from[l], zero); \
  }                                                                            \
  Q_FN void q_narrow_##BITS(f16_s_u *to, const f32 *from) {                    \
    Q_IVDEP_STRIP                                                              \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = q_cast_f32_f16(from[l]);  \
  }
#if defined(__clang__) && defined(__F16C__) /* zero: see q_f16_f32 */
#define Q_CONVERT(BITS)                                                                                              \
  typedef __fp16 q_half_##BITS __attribute__((vector_size(2 * Q_STRIP_##BITS)));                                     \
  typedef q_half_##BITS q_half_##BITS##_u __attribute__((aligned(1), may_alias));                                    \
  Q_FN void q_widen_##BITS(f32 *to, const f16_s_u *from, i32 zero) {                                                 \
    const q_half_##BITS half = *(const q_half_##BITS##_u *)from;                                                     \
    const q_strip_u32_##BITS wide = (q_strip_u32_##BITS)__builtin_convertvector(half, q_strip_f32_##BITS);           \
    *(q_strip_u32_##BITS##_u *)to = wide ^ (u32)zero;                                                                \
  }                                                                                                                  \
  Q_FN void q_narrow_##BITS(f16_s_u *to, const f32 *from) {                                                          \
    const q_strip_f32_##BITS wide = *(const q_strip_f32_##BITS##_u *)from;                                           \
    *(q_half_##BITS##_u *)to = __builtin_convertvector(wide, q_half_##BITS);                                         \
  }
Q_CONVERT(32)
Q_CONVERT(64)
#undef Q_CONVERT
#elif defined(__F16C__) && Q_STRIP_BYTES >= 32
Q_FN void q_widen_32(f32 *to, const f16_s_u *from, i32 zero) {
  (void)zero;
  const q_strip_i16_32 half = *(const q_strip_i16_32_u *)from;
#if Q_STRIP_BYTES == 64
  *(q_strip_f32_32_u *)to = __builtin_ia32_vcvtph2ps512_mask(half, (q_strip_f32_32){0}, (i16)-1, 4);
#else
  *(q_strip_f32_32_u *)to = __builtin_ia32_vcvtph2ps256(half);
#endif
}
Q_FN void q_narrow_32(f16_s_u *to, const f32 *from) {
  const q_strip_f32_32 wide = *(const q_strip_f32_32_u *)from;
#if Q_STRIP_BYTES == 64
  q_strip_i16_32 half = __builtin_ia32_vcvtps2ph512_mask(wide, 0, (q_strip_i16_32){0}, (u16)-1);
#else
  q_strip_i16_32 half = __builtin_ia32_vcvtps2ph256(wide, 0);
#endif
  __asm__("" : "+v"(half)); /* no store by the instruction itself: on Zen 5 loops take 0.82 to 0.96 of the time */
  *(q_strip_i16_32_u *)to = half;
}
Q_CONVERT_SINGLY(64)
#else
Q_CONVERT_SINGLY(32)
Q_CONVERT_SINGLY(64)
#endif
#undef Q_CONVERT_SINGLY

/* ---- Lookups ---- */

/* q_lookup_X_N_BITS: to[l] = table[at[l] mod N] for the strip; BITS: the width of the strip's widest type. */
#define Q_LOOKUP_SINGLY(X, U, N, BITS)                                       \
  Q_FN void q_lookup_##X##_##N##_##BITS(X *to, const X *table, const U *at) { \
    Q_IVDEP_STRIP                                                            \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = table[at[l] & (N - 1)]; \
  }

#if Q_STRIP_BYTES == 64
typedef long long q_strip_ll_64 __attribute__((vector_size(64))); /* i64, as the compilers' builtins have it */
#if defined(__clang__)
#define Q_PERMUTE_f32(a, i) __builtin_ia32_permvarsf512(a, i)
#define Q_PERMUTE2_f32(a, i, b) __builtin_ia32_vpermi2varps512(a, i, b)
#define Q_PERMUTE2_f64(a, i, b) __builtin_ia32_vpermi2varpd512(a, i, b)
#else
#define Q_PERMUTE_f32(a, i) __builtin_ia32_permvarsf512_mask(a, i, a, (u16)-1)
#define Q_PERMUTE2_f32(a, i, b) __builtin_ia32_vpermt2varps512_mask(i, a, b, (u16)-1)
#define Q_PERMUTE2_f64(a, i, b) __builtin_ia32_vpermt2varpd512_mask(i, a, b, (u8)-1)
#endif
Q_FN void q_lookup_f32_16_32(f32 *to, const f32 *table, const u32 *at) {
  const q_strip_i32_32 i = *(const q_strip_i32_32_u *)at;
  const q_strip_f32_32 items = *(const q_strip_f32_32_u *)table;
  *(q_strip_f32_32_u *)to = Q_PERMUTE_f32(items, i);
}
Q_FN void q_lookup_f32_32_32(f32 *to, const f32 *table, const u32 *at) {
  const q_strip_i32_32 i = *(const q_strip_i32_32_u *)at;
  const q_strip_f32_32 a = ((const q_strip_f32_32_u *)table)[0], b = ((const q_strip_f32_32_u *)table)[1];
  *(q_strip_f32_32_u *)to = Q_PERMUTE2_f32(a, i, b);
}
Q_FN void q_lookup_f64_16_64(f64 *to, const f64 *table, const u64 *at) {
  const q_strip_i64_64 i = *(const q_strip_i64_64_u *)at;
  const q_strip_f64_64 a = ((const q_strip_f64_64_u *)table)[0], b = ((const q_strip_f64_64_u *)table)[1];
  *(q_strip_f64_64_u *)to = Q_PERMUTE2_f64(a, (q_strip_ll_64)i, b);
}
Q_FN void q_lookup_f64_32_64(f64 *to, const f64 *table, const u64 *at) {
  const q_strip_i64_64 i = *(const q_strip_i64_64_u *)at, upper = (q_strip_i64_64)((i & 16) != 0);
  const q_strip_f64_64 a = ((const q_strip_f64_64_u *)table)[0], b = ((const q_strip_f64_64_u *)table)[1];
  const q_strip_f64_64 c = ((const q_strip_f64_64_u *)table)[2], d = ((const q_strip_f64_64_u *)table)[3];
  const q_strip_i64_64 ab = (q_strip_i64_64)Q_PERMUTE2_f64(a, (q_strip_ll_64)i, b);
  const q_strip_i64_64 cd = (q_strip_i64_64)Q_PERMUTE2_f64(c, (q_strip_ll_64)i, d);
  *(q_strip_i64_64_u *)to = ab ^ ((ab ^ cd) & upper);
}
#undef Q_PERMUTE_f32
#undef Q_PERMUTE2_f32
#undef Q_PERMUTE2_f64
#elif Q_STRIP_BYTES == 32
/* A bit of the index is moved to the sign: vblendvps selects by it. */
#define Q_EIGHT(k) __builtin_ia32_permvarsf256(((const q_strip_f32_32_u *)table)[k], (q_strip_i32_32)i)
#define Q_EITHER(a, b, bit) __builtin_ia32_blendvps256(a, b, (q_strip_f32_32)(i << (31 - (bit))))
Q_FN void q_lookup_f32_16_32(f32 *to, const f32 *table, const u32 *at) {
  const q_strip_u32_32 i = *(const q_strip_u32_32_u *)at;
  *(q_strip_f32_32_u *)to = Q_EITHER(Q_EIGHT(0), Q_EIGHT(1), 3);
}
Q_FN void q_lookup_f32_32_32(f32 *to, const f32 *table, const u32 *at) {
  const q_strip_u32_32 i = *(const q_strip_u32_32_u *)at;
  const q_strip_f32_32 low = Q_EITHER(Q_EIGHT(0), Q_EIGHT(1), 3), high = Q_EITHER(Q_EIGHT(2), Q_EIGHT(3), 3);
  *(q_strip_f32_32_u *)to = Q_EITHER(low, high, 4);
}
#undef Q_EIGHT
#undef Q_EITHER
Q_LOOKUP_SINGLY(f64, u64, 16, 64)
Q_LOOKUP_SINGLY(f64, u64, 32, 64)
#else
Q_LOOKUP_SINGLY(f32, u32, 16, 32)
Q_LOOKUP_SINGLY(f32, u32, 32, 32)
Q_LOOKUP_SINGLY(f64, u64, 16, 64)
Q_LOOKUP_SINGLY(f64, u64, 32, 64)
#endif
/* Beside 64-bit types strips are half a vector of 32-bit elements. */
Q_LOOKUP_SINGLY(f32, u32, 16, 64)
Q_LOOKUP_SINGLY(f32, u32, 32, 64)
#undef Q_LOOKUP_SINGLY

#endif
