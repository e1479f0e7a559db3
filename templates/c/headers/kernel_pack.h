/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_pack.h: what moves blocks of elements (float format conversion, the copy past the cache, the tile transposition) and the self-check of
   the laws. Included by kernel.h, for the pack and unpack kernels. Vectors are GNU ones: intrinsics' headers would bring libc's. */
#ifndef QUERN_KERNEL_PACK_H
#define QUERN_KERNEL_PACK_H

/* ---- Vectors ---- */

/* q_<element>_v<bytes>: in registers; the _u twin to load and store at any address. */
#define Q_VECTOR(X, BYTES)                                        \
  typedef X q_##X##_v##BYTES __attribute__((vector_size(BYTES))); \
  typedef X q_##X##_v##BYTES##_u __attribute__((vector_size(BYTES), aligned(1), may_alias));
Q_VECTOR(u8, 16) Q_VECTOR(u16, 16) Q_VECTOR(u32, 16) Q_VECTOR(u64, 16)
#if defined(__AVX2__)
Q_VECTOR(u8, 32) Q_VECTOR(u16, 32) Q_VECTOR(u32, 32) Q_VECTOR(u64, 32)
Q_VECTOR(i16, 32) Q_VECTOR(f32, 32)
#endif
#if defined(__AVX512F__)
Q_VECTOR(u64, 64) Q_VECTOR(f32, 64)
#endif
#undef Q_VECTOR

/* ---- Convert n contiguous elements between f16 and f32 ---- */

/* q_convert: the bits of q_cast_f16_f32 and q_cast_f32_f16. q_widen and q_narrow, for what a kernel computes on and has computed: a NaN keeps
   its sign, and may stay as it lies, since what kernels store is canonical. */

#if defined(__F16C__) && defined(__AVX2__) && !defined(__clang__)
/* GCC before 14 does not vectorise the casts' instruction, so here it is, 16 elements at a time. */
typedef long long q_ll_v16 __attribute__((vector_size(16)));
typedef long long q_ll_v32 __attribute__((vector_size(32)));
typedef i16 q_i16_v16 __attribute__((vector_size(16)));
typedef q_i16_v16 q_i16_v16_u __attribute__((aligned(1), may_alias));
/* A NaN (above 0x7c00 without its sign) made canonical among f16, which takes half the operations. */
Q_FN q_i16_v32 q_canon_f16_v32(q_i16_v32 x) {
  q_i16_v32 nan = (x & 0x7fff) > 0x7c00;
  return x ^ ((x ^ 0x7e00) & nan);
}
/* Among f32: the cast reads from memory itself, and less waits for the loads. */
#if defined(__AVX512F__)
Q_FN q_f32_v64 q_canon_f32_v64(q_f32_v64 x) {
  const f32 nan = q_from_f32(Q_CANON_NAN_f32);
  const q_f32_v64 nans = {nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan, nan};
  return __builtin_ia32_blendmps_512_mask(x, nans, (u16)__builtin_ia32_cmpps512_mask(x, x, 3, (u16)-1, 4));
}
#else
Q_FN q_f32_v32 q_canon_f32_v32(q_f32_v32 x) {
  const f32 nan = q_from_f32(Q_CANON_NAN_f32);
  return __builtin_ia32_blendvps256(x, (q_f32_v32){nan, nan, nan, nan, nan, nan, nan, nan}, (q_f32_v32)(x != x));
}
#endif
Q_FN void q_f16_to_f32(const void *src, void *dst, i64 n, int canonise) {
  const f16_s_u *x = (const f16_s_u *)src;
  f32_u *y = (f32_u *)dst;
  i64 i = 0, whole = n & ~(i64)15;
  for (; i < whole; i += 16) {
#if defined(__AVX512F__)
    const q_f32_v64 wide = __builtin_ia32_vcvtph2ps512_mask(*(const q_i16_v32_u *)(x + i), (q_f32_v64){0}, (i16)-1, 4);
    *(q_f32_v64_u *)(y + i) = canonise ? q_canon_f32_v64(wide) : wide;
#else
    const q_f32_v32 low = __builtin_ia32_vcvtph2ps256(*(const q_i16_v16_u *)(x + i));
    const q_f32_v32 high = __builtin_ia32_vcvtph2ps256(*(const q_i16_v16_u *)(x + i + 8));
    *(q_f32_v32_u *)(y + i) = canonise ? q_canon_f32_v32(low) : low;
    *(q_f32_v32_u *)(y + i + 8) = canonise ? q_canon_f32_v32(high) : high;
#endif
  }
  for (; i < n; i++) y[i] = canonise ? q_zcast_f16_f32(x[i], 0) : q_f16_f32(x[i], 0);
}
Q_FN void q_f32_to_f16(const void *src, void *dst, i64 n, int canonise) {
  const f32_u *x = (const f32_u *)src;
  f16_s_u *y = (f16_s_u *)dst;
  i64 i = 0, whole = n & ~(i64)15;
  for (; i < whole; i += 16) {
#if defined(__AVX512F__)
    q_i16_v32 half = __builtin_ia32_vcvtps2ph512_mask(*(const q_f32_v64_u *)(x + i), 0, (q_i16_v32){0}, (u16)-1);
#else
    q_ll_v16 low = (q_ll_v16)__builtin_ia32_vcvtps2ph256(*(const q_f32_v32_u *)(x + i), 0);
    q_ll_v16 high = (q_ll_v16)__builtin_ia32_vcvtps2ph256(*(const q_f32_v32_u *)(x + i + 8), 0);
    q_i16_v32 half = (q_i16_v32)(q_ll_v32){low[0], low[1], high[0], high[1]};
#endif
    *(q_i16_v32_u *)(y + i) = canonise ? q_canon_f16_v32(half) : half;
  }
  for (; i < n; i++) y[i] = q_cast_f32_f16(x[i]);
}
Q_FN void q_convert_f16_f32(const void *src, void *dst, i64 n) { q_f16_to_f32(src, dst, n, 1); }
Q_FN void q_convert_f32_f16(const void *src, void *dst, i64 n) { q_f32_to_f16(src, dst, n, 1); }
Q_FN void q_widen_f16_f32(const void *src, void *dst, i64 n) { q_f16_to_f32(src, dst, n, 0); }
Q_FN void q_narrow_f32_f16(const void *src, void *dst, i64 n) { q_f32_to_f16(src, dst, n, 0); }
#else
Q_FN void q_convert_f16_f32(const void *src, void *dst, i64 n) {
  const f16_s_u *x = (const f16_s_u *)src;
  f32_u *y = (f32_u *)dst;
  Q_IVDEP_F16
  for (i64 i = 0; i < n; i++) y[i] = q_zcast_f16_f32(x[i], 0);
}
Q_FN void q_convert_f32_f16(const void *src, void *dst, i64 n) {
  const f32_u *x = (const f32_u *)src;
  f16_s_u *y = (f16_s_u *)dst;
  Q_IVDEP_F16
  for (i64 i = 0; i < n; i++) y[i] = q_cast_f32_f16(x[i]);
}
Q_FN void q_widen_f16_f32(const void *src, void *dst, i64 n) {
  const f16_s_u *x = (const f16_s_u *)src;
  f32_u *y = (f32_u *)dst;
  Q_IVDEP_F16
  for (i64 i = 0; i < n; i++) y[i] = q_f16_f32(x[i], 0);
}
Q_FN void q_narrow_f32_f16(const void *src, void *dst, i64 n) { q_convert_f32_f16(src, dst, n); }
#endif

/* ---- Copy past the cache ---- */

/* Non-temporal stores of whole cache lines, ordinary ones of the parts of lines at both ends. Until q_stream_end() another thread may not see
   what q_stream_part stored: once after the last part of a slice is enough. It waits for the stores, which after every block of 1 KB would
   double the time. */
#if defined(__AVX512F__)
#define Q_PAST_BYTES 64
#define Q_PAST_VECTOR(SUFFIX) q_u64_v64##SUFFIX
#define Q_PAST_STORE __builtin_ia32_movntdq512
#elif defined(__AVX2__)
#define Q_PAST_BYTES 32
#define Q_PAST_VECTOR(SUFFIX) q_u64_v32##SUFFIX
#define Q_PAST_STORE __builtin_ia32_movntdq256
#elif defined(__SSE2__) || (defined(__clang__) && defined(__aarch64__))
#define Q_PAST_BYTES 16
#define Q_PAST_VECTOR(SUFFIX) q_u64_v16##SUFFIX
#define Q_PAST_STORE __builtin_ia32_movntdq
#endif
#if defined(__clang__)
#undef Q_PAST_STORE
#define Q_PAST_STORE(p, v) __builtin_nontemporal_store((q_past)(v), p)
#endif

Q_FN void q_stream_part(const char *src, char *dst, i64 bytes) {
  i64 i = 0;
#if defined(Q_PAST_BYTES)
  typedef long long q_past __attribute__((vector_size(Q_PAST_BYTES), may_alias));
  i64 head = (i64)((0 - (__UINTPTR_TYPE__)dst) & 63);
  if (head < bytes) {
    for (; i < head; i++) dst[i] = src[i];
    for (i64 end = head + ((bytes - head) & ~(i64)63); i < end; i += 64)
      for (i64 k = i; k < i + 64; k += Q_PAST_BYTES) Q_PAST_STORE((q_past *)(dst + k), (q_past) * (const Q_PAST_VECTOR(_u) *)(src + k));
  }
#endif
  for (; i < bytes; i++) dst[i] = src[i];
}
Q_FN void q_stream_end(void) {
#if defined(__SSE2__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  __asm__ volatile("dmb ishst" ::: "memory");
#endif
}
Q_FN void q_stream(const char *src, char *dst, i64 bytes) {
  q_stream_part(src, dst, bytes);
  q_stream_end();
}

/* ---- Transpose a tile: dst[j][i] = src[i][j] for i < n0, j < n1; each row contiguous, row strides in bytes, no overlap ---- */

#define Q_TRANSPOSE_SCALAR(U)  \
  for (i64 j = 0; j < n1; j++) \
    for (i64 i = 0; i < n0; i++) ((U##_u *)(dst + j * dst_stride))[i] = ((const U##_u *)(src + i * src_stride))[j];

#if defined(__clang__) || __GNUC__ >= 12
/* A register of V bytes is made of 16-byte pieces of V/16 rows that are LANE rows apart, LANE being 16 bytes' elements. LANE such registers are
   transposed within their 16-byte lanes, all lanes at once, by log2(LANE) rounds of interleaving register k with register k + LANE/2; each then
   holds V bytes of one destination row. Q_PAIRS_n(k, N): the indices that interleave n elements from k on of two vectors of N. What is left
   over at the end of a dimension is done by a last step that overlaps the one before. 64 bytes were no faster than 32. */
#define Q_PAIRS_1(k, N) k, (N) + (k)
#define Q_PAIRS_2(k, N) Q_PAIRS_1(k, N), Q_PAIRS_1((k) + 1, N)
#define Q_PAIRS_4(k, N) Q_PAIRS_2(k, N), Q_PAIRS_2((k) + 2, N)
#define Q_PAIRS_8(k, N) Q_PAIRS_4(k, N), Q_PAIRS_4((k) + 4, N)
#define Q_LANES_16(PAIRS, k, L) PAIRS(k, L)
#define Q_LANES_32(PAIRS, k, L) PAIRS(k, 2 * L), PAIRS((k) + L, 2 * L)

Q_FN q_u64_v16 q_pieces_16(const char *p, i64 step) {
  (void)step;
  return *(const q_u64_v16_u *)p;
}
#if defined(__AVX2__)
Q_FN q_u64_v32 q_pieces_32(const char *p, i64 step) {
  q_u64_v16 a = *(const q_u64_v16_u *)p, b = *(const q_u64_v16_u *)(p + step);
  return __builtin_shufflevector(a, b, 0, 1, 2, 3);
}
#endif

#define Q_TRANSPOSE_BY(V, SIZE, U, L, PAIRS)                                                                                  \
  Q_FN void q_transpose_##SIZE##_by_##V(const char *src, i64 src_stride, char *dst, i64 dst_stride, i64 n0, i64 n1) {         \
    for (i64 i = 0; i < n0; i += V / SIZE) {                                                                                  \
      if (i > n0 - V / SIZE) i = n0 - V / SIZE;                                                                               \
      for (i64 j = 0; j < n1; j += L) {                                                                                       \
        q_##U##_v##V a[L], b[L];                                                                                              \
        if (j > n1 - L) j = n1 - L;                                                                                           \
        for (int k = 0; k < L; k++) a[k] = (q_##U##_v##V)q_pieces_##V(src + (i + k) * src_stride + j * SIZE, L * src_stride); \
        for (int round = 1; round < L; round *= 2) {                                                                          \
          for (int k = 0; k < L / 2; k++) {                                                                                   \
            b[2 * k] = __builtin_shufflevector(a[k], a[k + L / 2], Q_LANES_##V(PAIRS, 0, L));                                 \
            b[2 * k + 1] = __builtin_shufflevector(a[k], a[k + L / 2], Q_LANES_##V(PAIRS, L / 2, L));                         \
          }                                                                                                                   \
          for (int k = 0; k < L; k++) a[k] = b[k];                                                                            \
        }                                                                                                                     \
        for (int k = 0; k < L; k++) *(q_##U##_v##V##_u *)(dst + (j + k) * dst_stride + i * SIZE) = a[k];                      \
      }                                                                                                                       \
    }                                                                                                                         \
  }
#if defined(__AVX2__)
#define Q_TRANSPOSE_WIDE(SIZE, U, L, PAIRS) Q_TRANSPOSE_BY(32, SIZE, U, L, PAIRS)
#define Q_TRANSPOSE_IF_WIDE(SIZE) \
  if (n0 >= 32 / SIZE) { q_transpose_##SIZE##_by_32(src, src_stride, dst, dst_stride, n0, n1); return; }
#else
#define Q_TRANSPOSE_WIDE(SIZE, U, L, PAIRS)
#define Q_TRANSPOSE_IF_WIDE(SIZE)
#endif
#define Q_TRANSPOSE(SIZE, U, L, PAIRS)                                                                       \
  Q_TRANSPOSE_WIDE(SIZE, U, L, PAIRS)                                                                        \
  Q_TRANSPOSE_BY(16, SIZE, U, L, PAIRS)                                                                      \
  Q_FN void q_transpose_##SIZE(const char *src, i64 src_stride, char *dst, i64 dst_stride, i64 n0, i64 n1) { \
    if (n1 >= L && n0 >= L) {                                                                                \
      Q_TRANSPOSE_IF_WIDE(SIZE)                                                                              \
      q_transpose_##SIZE##_by_16(src, src_stride, dst, dst_stride, n0, n1);                                  \
      return;                                                                                                \
    }                                                                                                        \
    Q_TRANSPOSE_SCALAR(U)                                                                                    \
  }
#else
#define Q_TRANSPOSE(SIZE, U, L, PAIRS) \
  Q_FN void q_transpose_##SIZE(const char *src, i64 src_stride, char *dst, i64 dst_stride, i64 n0, i64 n1) { Q_TRANSPOSE_SCALAR(U) }
#endif
Q_TRANSPOSE(1, u8, 16, Q_PAIRS_8)
Q_TRANSPOSE(2, u16, 8, Q_PAIRS_4)
Q_TRANSPOSE(4, u32, 4, Q_PAIRS_2)
Q_TRANSPOSE(8, u64, 2, Q_PAIRS_1)
#undef Q_TRANSPOSE

/* ---- Indices ---- */

/* An index as a number. As a float it is exact below 2^52: its bits are the fraction of 2^52 + index. */
Q_FN i64 q_index_i64(i64 index) { return index; }
Q_FN f64 q_index_f64(i64 index) { return q_from_f64((u64)(index + ((i64)0x433 << 52))) - 0x1p52; }

/* ---- Did the compiler keep the laws? ---- */

Q_FN f32 q_opaque_f32(u32 bits) { return q_from_f32(bits ^ (u32)q_opaque_zero()); }

/* 0, or the number of the first law found broken (flags that define no macro can break one): 1 contraction, 2 NaN, 3 signed zero,
   4 subnormals at run time, 5 at compile time, 6 reassociation, 7 pairing of casts, 8 division by reciprocal. */
static __attribute__((unused)) int q_selftest(void) {
  Q_KERNEL_ENTRY;
  f32 a = q_opaque_f32(0x3f800800u), c = q_opaque_f32(0xbf801000u); /* (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, and 0 in two roundings */
  f32 nan = q_opaque_f32(0xffc12345u), minus_zero = q_opaque_f32(0x80000000u), tiny = q_opaque_f32(1), one = q_opaque_f32(0x3f800000u);
  f32 fraction = q_opaque_f32(0xbe800000u), three = q_opaque_f32(0x40400000u), five = q_opaque_f32(0x40a00000u);
  if (q_raw_f32(a * a + c) != 0) return 1;
  if (nan == nan || q_bits_f32(nan) != Q_CANON_NAN_f32 || q_raw_f32(q_max_f32(nan, one)) == q_raw_f32(one)) return 2;
  if (q_raw_f32(minus_zero + 0.0f) != 0 || q_raw_f32(0.0f - minus_zero) != 0 || q_raw_f32(minus_zero * one) != 0x80000000u) return 3;
  if (q_raw_f32(tiny * one) != 1 || q_raw_f32(tiny + tiny) != 2) return 4;
  if (q_raw_f32(0x1p-149f * 3.0f) != 3) return 5;
  if (q_raw_f32((0x1p24f + one) - 0x1p24f) != 0) return 6;
  if (q_raw_f32(q_cast_i32_f32((i32)fraction)) != 0) return 7;
  if (q_raw_f32(five / three) != 0x3fd55555u) return 8;
  return 0;
}

#endif
