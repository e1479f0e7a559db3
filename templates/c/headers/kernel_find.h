/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_find.h: search in a block, for ops of the kind compact: the number of conditions that hold; the items of another block at
   these indices, or the indices, packed densely. Included by kernel.h, for the kernels of find.c.in and
   count.c.in. Memory behind the items found may be written, up to the n-th item and not beyond. Each of the n conditions is
   read once, so no more than n hold even if another thread changes them. */
#ifndef QUERN_KERNEL_FIND_H
#define QUERN_KERNEL_FIND_H

#if defined(__AVX512BW__) && defined(__AVX512VL__)
#define Q_FIND_WIDE 1
/* 64 conditions make a mask. One instruction moves the items of 4 or 8 bytes selected by a part of the mask to the front of a
   vector; smaller items are widened first. */
typedef i32 q_find_v4 __attribute__((vector_size(64)));
typedef long long q_find_v8 __attribute__((vector_size(64)));
typedef char q_find_v1 __attribute__((vector_size(16)));
typedef i16 q_find_v2 __attribute__((vector_size(32)));
typedef char q_conditions __attribute__((vector_size(64)));
#define Q_UNALIGNED(X) typedef X X##_u __attribute__((aligned(1), may_alias));
Q_UNALIGNED(q_find_v1) Q_UNALIGNED(q_find_v2) Q_UNALIGNED(q_find_v4) Q_UNALIGNED(q_find_v8) Q_UNALIGNED(q_conditions)
#undef Q_UNALIGNED
Q_FN q_find_v4 q_front_4(q_find_v4 x, u64 mask) { return __builtin_ia32_compresssi512_mask(x, (q_find_v4){0}, (u16)mask); }
Q_FN q_find_v8 q_front_8(q_find_v8 x, u64 mask) { return __builtin_ia32_compressdi512_mask(x, (q_find_v8){0}, (u8)mask); }
#if defined(__clang__)
#define Q_WIDEN(SIZE, x) __builtin_convertvector(x, q_find_v4)
#define Q_NARROW(SIZE, x) __builtin_convertvector(x, q_find_v##SIZE)
#else /* GCC splits such a conversion into single elements */
#define Q_WIDEN_1(x) __builtin_ia32_pmovzxbd512_mask(x, (q_find_v4){0}, (u16)-1)
#define Q_WIDEN_2(x) __builtin_ia32_pmovzxwd512_mask(x, (q_find_v4){0}, (u16)-1)
#define Q_NARROW_1(x) __builtin_ia32_pmovdb512_mask(x, (q_find_v1){0}, (u16)-1)
#define Q_NARROW_2(x) __builtin_ia32_pmovdw512_mask(x, (q_find_v2){0}, (u16)-1)
#define Q_WIDEN(SIZE, x) Q_WIDEN_##SIZE(x)
#define Q_NARROW(SIZE, x) Q_NARROW_##SIZE(x)
#endif
Q_FN q_find_v1 q_front_1(q_find_v1 x, u64 mask) { return Q_NARROW(1, q_front_4(Q_WIDEN(1, x), mask)); }
Q_FN q_find_v2 q_front_2(q_find_v2 x, u64 mask) { return Q_NARROW(2, q_front_4(Q_WIDEN(2, x), mask)); }
/* Bit k: condition k holds. */
Q_FN u64 q_find_mask(const bool_s_u *condition) {
  return __builtin_ia32_ucmpb512_mask(*(const q_conditions_u *)condition, (q_conditions){0}, 4, ~(u64)0); /* 4: not equal */
}
#endif

Q_FN i64 q_find_count(const bool_s_u *condition, i64 n) {
  i64 i = 0, count = 0;
#if defined(Q_FIND_WIDE)
  for (; i + 64 <= n; i += 64) count += __builtin_popcountll(q_find_mask(condition + i));
#endif
  while (i < n) { /* sums of bytes: 128 at most */
    const i64 end = n - i < 128 ? n : i + 128;
    u8 sum = 0;
    for (; i < end; i++) sum = (u8)(sum + (condition[i] != 0));
    count += sum;
  }
  return count;
}

/* Stores items at `to` for which `condition` holds. VALUE(i): the item of element i; VECTOR(i): a vector of STEP items from i on.
   Two frequent cases are fast: none holds, nothing to store; all hold, a copy. */
#if defined(Q_FIND_WIDE)
/* A vector is stored whole, behind the items found before: it ends at element i + STEP - 1 at most. */
#define Q_FIND_VECTORS(SIZE, STEP, VECTOR)                                                                 \
  for (; i + 64 <= n; i += 64) {                                                                           \
    const u64 mask = q_find_mask(condition + i);                                                           \
    if (mask == 0) continue;                                                                               \
    if (mask == ~(u64)0) {                                                                                 \
      for (i64 k = 0; k < 64; k += STEP) *(q_find_v##SIZE##_u *)(to + count + k) = VECTOR(i + k);          \
      count += 64;                                                                                         \
      continue;                                                                                            \
    }                                                                                                      \
    for (i64 k = 0; k < 64; k += STEP) {                                                                   \
      const u64 part = mask >> k & ((1u << STEP) - 1);                                                     \
      *(q_find_v##SIZE##_u *)(to + count) = q_front_##SIZE(VECTOR(i + k), part);                           \
      count += __builtin_popcountll(part);                                                                 \
    }                                                                                                      \
  }
#else
#define Q_FIND_VECTORS(SIZE, STEP, VECTOR)
#endif
/* No branch on a condition: it would be mispredicted. Every item is stored; the next overwrites it, unless its condition holds: then
   the next goes behind it. */
#define Q_FIND(SIZE, STEP, VALUE, VECTOR)                                            \
  i64 i = 0, count = 0;                                                              \
  Q_FIND_VECTORS(SIZE, STEP, VECTOR)                                                 \
  for (i64 end; i + 8 <= n; i = end) {                                               \
    u64 eight = *(const u64_u *)(condition + i);                                     \
    end = i + 8;                                                                     \
    if (eight == 0) continue;                                                        \
    if (eight == 0x0101010101010101) {                                               \
      for (i64 k = 0; k < 8; k++) to[count + k] = VALUE(i + k);                      \
      count += 8;                                                                    \
      continue;                                                                      \
    }                                                                                \
    for (; i < end; i++, eight >>= 8) {                                              \
      to[count] = VALUE(i);                                                          \
      count += (eight & 255) != 0;                                                   \
    }                                                                                \
  }                                                                                  \
  for (; i < n; i++) {                                                               \
    to[count] = VALUE(i);                                                            \
    count += condition[i] != 0;                                                      \
  }                                                                                  \
  return count;

#define Q_FIND_ITEM(i) from[i]
#define Q_FIND_ITEMS(SIZE, U, STEP)                                                              \
  Q_FN i64 q_find_items_##SIZE(const bool_s_u *condition, const U##_u *from, U##_u *to, i64 n) { \
    Q_FIND(SIZE, STEP, Q_FIND_ITEM, *(const q_find_v##SIZE##_u *)&Q_FIND_ITEM)                   \
  }
Q_FIND_ITEMS(1, u8, 16) Q_FIND_ITEMS(2, u16, 16) Q_FIND_ITEMS(4, u32, 16) Q_FIND_ITEMS(8, u64, 8)
#undef Q_FIND_ITEMS
#undef Q_FIND_ITEM

#define Q_FIND_PLACE(i) (i32)(i)
#define Q_FIND_PLACES(i) (i32)(i) + counting
Q_FN i64 q_find_places(const bool_s_u *condition, i32_u *to, i64 n) {
#if defined(Q_FIND_WIDE)
  const q_find_v4 counting = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#endif
  Q_FIND(4, 16, Q_FIND_PLACE, Q_FIND_PLACES)
}
#undef Q_FIND_PLACES
#undef Q_FIND_PLACE
#undef Q_FIND
#undef Q_FIND_VECTORS
#undef Q_FIND_WIDE

#endif
