/* kernel_strips.h: what loops over strips are made of. A strip is as many elements as a vector of the widest type holds: arrays of that size
   that one short loop writes and the next one reads become registers, and between the loops stands what a compiler does not find by
   itself, lookups in tables that fit a register or two. */
#ifndef QUERN_KERNEL_STRIPS_H
#define QUERN_KERNEL_STRIPS_H

#if defined(__AVX512F__)
#define Q_STRIP_BYTES 64
#elif defined(__AVX2__)
#define Q_STRIP_BYTES 32
#else
#define Q_STRIP_BYTES 16
#endif
#define Q_STRIP_32 (Q_STRIP_BYTES / 4)
#define Q_STRIP_64 (Q_STRIP_BYTES / 8)

/* Before a loop over a strip: one turn of vectors; GCC sees that by itself. In the loop over what strips have left: none at all. */
#if defined(__clang__)
#define Q_IVDEP_STRIP _Pragma("clang loop vectorize(assume_safety) unroll(disable)")
#else
#define Q_IVDEP_STRIP _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
#endif
#define Q_NOT_VECTORISED __asm__ volatile("")

/* ---- Elements of a strip, as they lie ---- */

/* At once: GCC would load a short loop's elements one by one where it needs them twice. */
#define Q_TAKE_STRIP(X, BITS)                                                                                             \
  typedef X q_strip_##X##_##BITS __attribute__((vector_size(sizeof(X) * Q_STRIP_##BITS), aligned(1), may_alias));          \
  Q_FN void q_take_##X##_##BITS(X *to, const X##_u *from) { *(q_strip_##X##_##BITS *)to = *(const q_strip_##X##_##BITS *)from; }
#define Q_TAKE(X) Q_TAKE_STRIP(X, 32) Q_TAKE_STRIP(X, 64)
Q_TAKE(f32) Q_TAKE(f64)
Q_TAKE(i8) Q_TAKE(i16) Q_TAKE(i32) Q_TAKE(i64)
Q_TAKE(u8) Q_TAKE(u16) Q_TAKE(u32) Q_TAKE(u64)
Q_TAKE(bool_s) Q_TAKE(f16_s) Q_TAKE(bf16_s)
#undef Q_TAKE
#undef Q_TAKE_STRIP

/* Conditions, as they are stored: in the loop that makes them, GCC would take as few elements at a time as bytes make one of its vectors. */
#define Q_GIVE_BOOL_SINGLY(BITS)                                              \
  Q_FN void q_give_bool_##BITS(bool_s_u *to, const m##BITS *from) {           \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = (bool_s)(from[l] & 1);   \
  }
#if defined(__AVX512F__)
#define Q_GIVE_BOOL(BITS)                                                                                                      \
  typedef m##BITS q_strip_m##BITS __attribute__((vector_size(64), aligned(1), may_alias));                                     \
  Q_FN void q_give_bool_##BITS(bool_s_u *to, const m##BITS *from) {                                                            \
    typedef u8 bytes __attribute__((vector_size(Q_STRIP_##BITS)));                                                             \
    *(q_strip_bool_s_##BITS *)to = (q_strip_bool_s_##BITS)(__builtin_convertvector(*(const q_strip_m##BITS *)from, bytes) & 1); \
  }
Q_GIVE_BOOL(32)
#elif defined(__AVX2__)
Q_FN void q_give_bool_32(bool_s_u *to, const m32 *from) {
  typedef i32 words __attribute__((vector_size(16), aligned(1), may_alias));
  typedef i32 four __attribute__((vector_size(16)));
  typedef char bytes __attribute__((vector_size(16)));
  typedef long long halves __attribute__((vector_size(16)));
  const four low = (four)((const words *)from)[0], high = (four)((const words *)from)[1];
  const __typeof__(__builtin_ia32_packssdw128(low, high)) words16 = __builtin_ia32_packssdw128(low, high);
  const bytes all = (bytes)__builtin_ia32_packsswb128(words16, words16) & 1;
  *(u64_u *)to = (u64)((halves)all)[0];
}
#define Q_GIVE_BOOL Q_GIVE_BOOL_SINGLY
#else
#define Q_GIVE_BOOL Q_GIVE_BOOL_SINGLY
Q_GIVE_BOOL(32)
#endif
Q_GIVE_BOOL(64)
#undef Q_GIVE_BOOL
#undef Q_GIVE_BOOL_SINGLY

/* ---- Conversion of a strip between f16 and f32 ---- */

/* Of what a kernel computes on, any NaN as it lies, and of what it has computed, where a NaN is the one NaN. */
#define Q_CONVERT_SINGLY(BITS)                                                              \
  Q_FN void q_widen_##BITS(f32 *to, const f16_s_u *from, i32 zero) {                        \
    Q_IVDEP_STRIP                                                                           \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = q_f16_f32(from[l], zero);              \
  }                                                                                         \
  Q_FN void q_narrow_##BITS(f16_s_u *to, const f32 *from) {                                 \
    Q_IVDEP_STRIP                                                                           \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = q_cast_f32_f16(from[l]);               \
  }
#if defined(__clang__) && defined(__F16C__) /* zero: see q_f16_f32 */
#define Q_CONVERT(BITS)                                                                                                           \
  Q_FN void q_widen_##BITS(f32 *to, const f16_s_u *from, i32 zero) {                                                              \
    typedef __fp16 half_strip __attribute__((vector_size(2 * Q_STRIP_##BITS), aligned(1), may_alias));                            \
    typedef f32 strip __attribute__((vector_size(4 * Q_STRIP_##BITS)));                                                           \
    *(q_strip_u32_##BITS *)to =                                                                                                   \
        (q_strip_u32_##BITS)__builtin_convertvector(*(const half_strip *)from, strip) ^ (u32)zero;                                \
  }                                                                                                                               \
  Q_FN void q_narrow_##BITS(f16_s_u *to, const f32 *from) {                                                                       \
    typedef __fp16 half_strip __attribute__((vector_size(2 * Q_STRIP_##BITS)));                                                   \
    *(q_strip_f16_s_##BITS *)to = (q_strip_f16_s_##BITS)__builtin_convertvector(*(const q_strip_f32_##BITS *)from, half_strip);   \
  }
Q_CONVERT(32)
Q_CONVERT(64)
#undef Q_CONVERT
#elif defined(__F16C__) && defined(__AVX2__)
typedef i16 q_half_strip __attribute__((vector_size(2 * Q_STRIP_32)));
typedef q_half_strip q_half_strip_u __attribute__((aligned(1), may_alias));
typedef f32 q_f32_strip __attribute__((vector_size(4 * Q_STRIP_32)));
#if defined(__AVX512F__)
#define Q_WIDEN(half) __builtin_ia32_vcvtph2ps512_mask(half, (q_f32_strip){0}, (u16)-1, 4)
#define Q_NARROW(strip) __builtin_ia32_vcvtps2ph512_mask(strip, 0, (q_half_strip){0}, (u16)-1)
#else
#define Q_WIDEN(half) __builtin_ia32_vcvtph2ps256(half)
#define Q_NARROW(strip) __builtin_ia32_vcvtps2ph256(strip, 0)
#endif
Q_FN void q_widen_32(f32 *to, const f16_s_u *from, i32 zero) {
  (void)zero;
  *(q_strip_f32_32 *)to = (q_strip_f32_32)Q_WIDEN(*(const q_half_strip_u *)from);
}
Q_FN void q_narrow_32(f16_s_u *to, const f32 *from) {
  *(q_half_strip_u *)to = Q_NARROW((q_f32_strip)*(const q_strip_f32_32 *)from);
}
#undef Q_WIDEN
#undef Q_NARROW
Q_CONVERT_SINGLY(64)
#else
Q_CONVERT_SINGLY(32)
Q_CONVERT_SINGLY(64)
#endif
#undef Q_CONVERT_SINGLY

/* ---- Lookups ---- */

/* q_lookup_X_N_BITS: to[l] = table[at[l] mod N] for the strip, X wide as BITS. */
#define Q_LOOKUP(X, U, N, BITS)                                                                   \
  Q_FN void q_lookup_##X##_##N##_##BITS(X *to, const X *table, const U *at) {                     \
    Q_IVDEP_STRIP                                                                                 \
    for (int l = 0; l < Q_STRIP_##BITS; l++) to[l] = table[at[l] & (N - 1)];                      \
  }

#if defined(__AVX512F__)
typedef f32 q_zmm_f32 __attribute__((vector_size(64)));
typedef i32 q_i32x16 __attribute__((vector_size(64)));
typedef f64 q_zmm_f64 __attribute__((vector_size(64)));
typedef long long q_i64x8 __attribute__((vector_size(64))); /* as the compilers have it */
#if defined(__clang__)
#define Q_PERMUTE_f32(a, i) __builtin_ia32_permvarsf512(a, i)
#define Q_PERMUTE_f64(a, i) __builtin_ia32_permvardf512(a, i)
#define Q_PERMUTE2_f32(a, i, b) __builtin_ia32_vpermi2varps512(a, i, b)
#define Q_PERMUTE2_f64(a, i, b) __builtin_ia32_vpermi2varpd512(a, i, b)
#else
#define Q_PERMUTE_f32(a, i) __builtin_ia32_permvarsf512_mask(a, i, a, (u16)-1)
#define Q_PERMUTE_f64(a, i) __builtin_ia32_permvardf512_mask(a, i, a, (u8)-1)
#define Q_PERMUTE2_f32(a, i, b) __builtin_ia32_vpermt2varps512_mask(i, a, b, (u16)-1)
#define Q_PERMUTE2_f64(a, i, b) __builtin_ia32_vpermt2varpd512_mask(i, a, b, (u8)-1)
#endif
#define Q_ITEMS(X, BITS, k) ((q_zmm_##X)((const q_strip_##X##_##BITS *)table)[k])
#define Q_LOOKUPS(X, U, I, BITS, N1, N2, N4)                                                                              \
  Q_FN void q_lookup_##X##_##N1##_##BITS(X *to, const X *table, const U *at) {                                           \
    const I i = (I)*(const q_strip_##U##_##BITS *)at;                                                                    \
    *(q_strip_##X##_##BITS *)to = (q_strip_##X##_##BITS)Q_PERMUTE_##X(Q_ITEMS(X, BITS, 0), i);                           \
  }                                                                                                                      \
  Q_FN void q_lookup_##X##_##N2##_##BITS(X *to, const X *table, const U *at) {                                           \
    const I i = (I)*(const q_strip_##U##_##BITS *)at;                                                                    \
    *(q_strip_##X##_##BITS *)to = (q_strip_##X##_##BITS)Q_PERMUTE2_##X(Q_ITEMS(X, BITS, 0), i, Q_ITEMS(X, BITS, 1));     \
  }                                                                                                                      \
  Q_FN void q_lookup_##X##_##N4##_##BITS(X *to, const X *table, const U *at) {                                           \
    const I i = (I)*(const q_strip_##U##_##BITS *)at, high = (I)((i & N2) != 0);                                         \
    const I a = (I)Q_PERMUTE2_##X(Q_ITEMS(X, BITS, 0), i, Q_ITEMS(X, BITS, 1));                                          \
    const I b = (I)Q_PERMUTE2_##X(Q_ITEMS(X, BITS, 2), i, Q_ITEMS(X, BITS, 3));                                          \
    *(q_strip_##X##_##BITS *)to = (q_strip_##X##_##BITS)(a ^ ((a ^ b) & high));                                          \
  }
Q_LOOKUPS(f32, u32, q_i32x16, 32, 16, 32, 64)
Q_LOOKUPS(f64, u64, q_i64x8, 64, 8, 16, 32)
#undef Q_LOOKUPS
#undef Q_ITEMS
#elif defined(__AVX2__)
typedef f32 q_f32x8 __attribute__((vector_size(32)));
typedef i32 q_i32x8 __attribute__((vector_size(32)));
typedef u32 q_u32x8 __attribute__((vector_size(32)));
/* The place of an index's bit is moved to the sign, by which vblendvps chooses. */
#define Q_PART_f32(k) __builtin_ia32_permvarsf256((q_f32x8)*(const q_strip_f32_32 *)(table + 8 * (k)), i)
#define Q_EITHER_f32(a, b, bit) __builtin_ia32_blendvps256(a, b, (q_f32x8)((q_u32x8)i << (31 - (bit))))
Q_FN void q_lookup_f32_16_32(f32 *to, const f32 *table, const u32 *at) {
  const q_i32x8 i = (q_i32x8)*(const q_strip_u32_32 *)at;
  *(q_strip_f32_32 *)to = (q_strip_f32_32)Q_EITHER_f32(Q_PART_f32(0), Q_PART_f32(1), 3);
}
Q_FN void q_lookup_f32_32_32(f32 *to, const f32 *table, const u32 *at) {
  const q_i32x8 i = (q_i32x8)*(const q_strip_u32_32 *)at;
  const q_f32x8 low = Q_EITHER_f32(Q_PART_f32(0), Q_PART_f32(1), 3), high = Q_EITHER_f32(Q_PART_f32(2), Q_PART_f32(3), 3);
  *(q_strip_f32_32 *)to = (q_strip_f32_32)Q_EITHER_f32(low, high, 4);
}
#undef Q_PART_f32
#undef Q_EITHER_f32
Q_LOOKUP(f64, u64, 16, 64)
Q_LOOKUP(f64, u64, 32, 64)
#else
Q_LOOKUP(f32, u32, 16, 32)
Q_LOOKUP(f32, u32, 32, 32)
Q_LOOKUP(f64, u64, 16, 64)
Q_LOOKUP(f64, u64, 32, 64)
#endif
/* Beside 64-bit types strips are half a vector of 32-bit elements. */
Q_LOOKUP(f32, u32, 16, 64)
Q_LOOKUP(f32, u32, 32, 64)
#undef Q_LOOKUP

#endif
