/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_shift.h: shifts of 8 and 16 bits, each by its own count, of a vector at a time with AVX2, which has them of 32 and 64 bits only. Included
   by kernel.h, for GCC: it would widen each element, shift it and narrow the results, in twice the time. AVX-512 shifts 16 bits itself. */
#ifndef QUERN_KERNEL_SHIFT_H
#define QUERN_KERNEL_SHIFT_H

#if defined(__AVX2__) && !defined(__AVX512BW__) && !defined(__clang__)
#define Q_SHIFTS_VECTORS 1
#define Q_IVDEP_REST_OF_SHIFTS
#define Q_REST_OF_SHIFTS Q_NOT_VECTORISED

typedef u8 q_shift_8 __attribute__((vector_size(32)));
typedef u16 q_shift_16 __attribute__((vector_size(32)));
typedef u32 q_shift_32 __attribute__((vector_size(32)));
typedef i8 q_shift_i8 __attribute__((vector_size(32)));
typedef i16 q_shift_i16 __attribute__((vector_size(32)));
typedef i32 q_shift_i32 __attribute__((vector_size(32)));
typedef char q_shift_char __attribute__((vector_size(32)));
typedef q_shift_8 q_shift_8_u __attribute__((aligned(1), may_alias));

/* Of 16 bits: both halves of 32 bits in turn. Shifts of 32 bits give 0, or copies of the sign, for counts from 32 on, and what they leave of
   counts from 16 on belongs to no half. */
#define Q_SHIFT_HALF(NAME, BY) \
  Q_FN q_shift_32 q_vector_##NAME(q_shift_32 x, q_shift_32 n) { return (q_shift_32)BY((q_shift_i32)x, (q_shift_i32)n); }
Q_SHIFT_HALF(shl, __builtin_ia32_psllv8si)
Q_SHIFT_HALF(shr, __builtin_ia32_psrlv8si)
Q_SHIFT_HALF(sar, __builtin_ia32_psrav8si)
#undef Q_SHIFT_HALF
Q_FN q_shift_8 q_join_halves(q_shift_32 low, q_shift_32 high) {
  return (q_shift_8)__builtin_ia32_pblendw256((q_shift_i16)high, (q_shift_i16)low, 0x55);
}
Q_FN q_shift_8 q_vector_shl_u16(q_shift_8 a, q_shift_8 count) {
  const q_shift_32 x = (q_shift_32)a, n = (q_shift_32)count;
  return q_join_halves(q_vector_shl(x, n & 0xffff), q_vector_shl(x & 0xffff0000, n >> 16));
}
Q_FN q_shift_8 q_vector_shr_u16(q_shift_8 a, q_shift_8 count) {
  const q_shift_32 x = (q_shift_32)a, n = (q_shift_32)count;
  return q_join_halves(q_vector_shr(x & 0xffff, n & 0xffff), q_vector_shr(x, n >> 16));
}
Q_FN q_shift_8 q_vector_shr_i16(q_shift_8 a, q_shift_8 count) {
  const q_shift_32 x = (q_shift_32)a, n = (q_shift_32)count;
  return q_join_halves(q_vector_sar(x << 16, n & 0xffff) >> 16, q_vector_sar(x, n >> 16));
}
#define q_vector_shl_i16 q_vector_shl_u16

/* Of 8 bits: products, both halves of 16 bits in turn, with powers of two from a table, 0 for counts from 8 on. A shift right by n is one left by 7 - n,
   then one right by 7. */
Q_FN q_shift_16 q_power_of(q_shift_8 table, q_shift_8 count) {
  const q_shift_8 most = (q_shift_8){0} + 15;
  const q_shift_char n = (q_shift_char)__builtin_ia32_pminub256((q_shift_char)count, (q_shift_char)most);
  return (q_shift_16)__builtin_ia32_pshufb256((q_shift_char)table, n);
}
Q_FN q_shift_8 q_vector_shl_u8(q_shift_8 a, q_shift_8 count) {
  const q_shift_8 powers = {1, 2, 4, 8, 16, 32, 64, 128, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128};
  const q_shift_16 x = (q_shift_16)a, power = q_power_of(powers, count);
  return (q_shift_8)(((x * (power & 0xff)) & 0xff) | ((x & 0xff00) * (power >> 8)));
}
Q_FN q_shift_8 q_vector_shr_u8(q_shift_8 a, q_shift_8 count) {
  const q_shift_8 powers = {128, 64, 32, 16, 8, 4, 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 128, 64, 32, 16, 8, 4, 2, 1};
  const q_shift_16 x = (q_shift_16)a, power = q_power_of(powers, count);
  return (q_shift_8)(((x & 0xff) * (power & 0xff)) >> 7 | ((((x >> 8) * (power >> 8)) << 1) & 0xff00));
}
Q_FN q_shift_8 q_vector_shr_i8(q_shift_8 a, q_shift_8 count) { /* a negative number's bits are flipped, before and after */
  const q_shift_8 sign = (q_shift_8)((q_shift_i8)a < 0);
  return q_vector_shr_u8(a ^ sign, count) ^ sign;
}
#define q_vector_shl_i8 q_vector_shl_u8

#define Q_SHIFT_ROW(NAME, X)                                                                                                 \
  Q_FN void q_give_##NAME##_##X(X##_u *to, const X##_u *from, const X##_u *count) {                                          \
    *(q_shift_8_u *)to = q_vector_##NAME##_##X(*(const q_shift_8_u *)from, *(const q_shift_8_u *)count);                     \
  }
#define Q_SHIFT_ROWS(X) Q_SHIFT_ROW(shl, X) Q_SHIFT_ROW(shr, X)
Q_SHIFT_ROWS(i8) Q_SHIFT_ROWS(i16) Q_SHIFT_ROWS(u8) Q_SHIFT_ROWS(u16)
#undef Q_SHIFT_ROWS
#undef Q_SHIFT_ROW
#else
#define Q_SHIFTS_VECTORS 0
#define Q_IVDEP_REST_OF_SHIFTS Q_IVDEP_SHORT
#define Q_REST_OF_SHIFTS ((void)0)
#endif

#endif
