/* kernel_find.h: what ops of class dynamic do with a block: where a condition holds, the items of another block, or their places in it, one
   behind the other. Included by kernel.h, for the find kernels. Gives how many there are. What lies behind them, up to the n-th, may be written,
   too, and nothing beyond: of n conditions, each read once, no more than n hold, whoever changes them meanwhile. */
#ifndef QUERN_KERNEL_FIND_H
#define QUERN_KERNEL_FIND_H

/* Eight conditions at a time: where none holds, as is common, there is nothing to do. Else without a branch, which would be guessed wrong: an item
   is stored in any case, the next one over it, or behind it if its condition holds. VALUE is item i. */
#define Q_FIND_REST(VALUE)                          \
  for (; i + 8 <= n; ) {                            \
    u64 eight = *(const u64_u *)(condition + i);    \
    if (eight == 0) {                               \
      i += 8;                                       \
      continue;                                     \
    }                                               \
    for (i64 end = i + 8; i < end; i++) {           \
      to[count] = VALUE;                            \
      count += (eight & 255) != 0;                  \
      eight >>= 8;                                  \
    }                                               \
  }                                                 \
  for (; i < n; i++) {                              \
    to[count] = VALUE;                              \
    count += condition[i] != 0;                     \
  }                                                 \
  return count;

#if defined(__AVX512BW__) && defined(__AVX512VL__)
/* Conditions make a mask, by which one instruction moves the items of 4 or 8 bytes that it names to the front of a vector; smaller ones are
   widened for it. The whole vector is stored: behind what was found before, so that it ends with element i + STEP - 1 at most. */
typedef i32 q_find_v4 __attribute__((vector_size(64)));
typedef long long q_find_v8 __attribute__((vector_size(64)));
typedef u8 q_find_v1 __attribute__((vector_size(16)));
typedef u16 q_find_v2 __attribute__((vector_size(32)));
typedef char q_find_conditions __attribute__((vector_size(16)));
#define Q_UNALIGNED(X) typedef X X##_u __attribute__((aligned(1), may_alias));
Q_UNALIGNED(q_find_v1) Q_UNALIGNED(q_find_v2) Q_UNALIGNED(q_find_v4) Q_UNALIGNED(q_find_v8)
#undef Q_UNALIGNED
Q_FN q_find_v4 q_front_4(q_find_v4 x, u32 mask) { return __builtin_ia32_compresssi512_mask(x, (q_find_v4){0}, (u16)mask); }
Q_FN q_find_v8 q_front_8(q_find_v8 x, u32 mask) { return __builtin_ia32_compressdi512_mask(x, (q_find_v8){0}, (u8)mask); }
Q_FN q_find_v1 q_front_1(q_find_v1 x, u32 mask) {
  return __builtin_convertvector(q_front_4(__builtin_convertvector(x, q_find_v4), mask), q_find_v1);
}
Q_FN q_find_v2 q_front_2(q_find_v2 x, u32 mask) {
  return __builtin_convertvector(q_front_4(__builtin_convertvector(x, q_find_v4), mask), q_find_v2);
}
/* Bit k: condition k holds. */
Q_FN u32 q_find_mask_16(const bool_s_u *condition) {
  q_find_conditions all;
  __builtin_memcpy(&all, condition, 16);
  return (u32)__builtin_ia32_ucmpb128_mask(all, (q_find_conditions){0}, 4, (u16)-1); /* 4: not equal */
}
Q_FN u32 q_find_mask_8(const bool_s_u *condition) {
  q_find_conditions all = {0};
  __builtin_memcpy(&all, condition, 8);
  return (u32)__builtin_ia32_ucmpb128_mask(all, (q_find_conditions){0}, 4, (u16)-1);
}
#define Q_FIND_VECTORS(SIZE, STEP, VECTOR)                                 \
  for (; i + STEP <= n; i += STEP) {                                       \
    const u32 mask = q_find_mask_##STEP(condition + i);                    \
    *(q_find_v##SIZE##_u *)(to + count) = q_front_##SIZE(VECTOR, mask);    \
    count += __builtin_popcount(mask);                                     \
  }
#else
#define Q_FIND_VECTORS(SIZE, STEP, VECTOR)
#endif

#define Q_FIND_ITEMS(SIZE, U, STEP)                                                                          \
  Q_FN i64 q_find_items_##SIZE(const bool_s_u *condition, const U##_u *from, U##_u *to, i64 n) {             \
    i64 i = 0, count = 0;                                                                                    \
    Q_FIND_VECTORS(SIZE, STEP, *(const q_find_v##SIZE##_u *)(from + i))                                      \
    Q_FIND_REST(from[i])                                                                                     \
  }
Q_FIND_ITEMS(1, u8, 16) Q_FIND_ITEMS(2, u16, 16) Q_FIND_ITEMS(4, u32, 16) Q_FIND_ITEMS(8, u64, 8)
#undef Q_FIND_ITEMS

Q_FN i64 q_find_places(const bool_s_u *condition, i32_u *to, i64 n) {
  i64 i = 0, count = 0;
#if defined(__AVX512BW__) && defined(__AVX512VL__)
  const q_find_v4 counting = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif
  Q_FIND_VECTORS(4, 16, counting + (i32)i)
  Q_FIND_REST((i32)i)
}
#undef Q_FIND_VECTORS
#undef Q_FIND_REST

#endif
