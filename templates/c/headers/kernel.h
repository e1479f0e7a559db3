/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h: the only header that a generated C kernel includes.
   Owns the laws of arithmetic as the compiler sees them (no contraction, no fast-math, one NaN, wrapping integers), the element types and
   the primitives of generated text. It includes kernel_cast.h (casts), kernel_strips.h (lookups, f16 and conditions in loops over
   strips), kernel_pack.h (packing of blocks), kernel_find.h (search in blocks)
   and kernel_shift.h (shifts of small integers).
   Knows no libc, no DLPack and no system header: the same text is compiled by a user's GCC or Clang and by Clang in process.
   A kernel's body starts with Q_KERNEL_ENTRY; casts from integer to float need the local variable that it declares. */
#ifndef QUERN_KERNEL_H
#define QUERN_KERNEL_H

/* ---- Laws: refuse what would change bits, switch off what the source can switch off ---- */

#if !defined(__GNUC__) && !defined(__clang__)
#error "quern kernels need GCC 9 or Clang 11, or later"
#endif
#if defined(__FAST_MATH__) || (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__ != 0) || defined(__ASSOCIATIVE_MATH__) \
    || defined(__RECIPROCAL_MATH__) || defined(__NO_SIGNED_ZEROS__) || defined(__ROUNDING_MATH__)
#error "quern kernels promise exact bits: compile them without -ffast-math, its parts and -frounding-math"
#endif
#if !defined(__BYTE_ORDER__) || __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "quern kernels are little-endian"
#endif
#if !defined(__SIZEOF_INT128__)
#error "quern kernels need a 64-bit target"
#endif

#if defined(__NO_MATH_ERRNO__)
#define Q_NO_MATH_ERRNO 1 /* by the command line; a pragma comes too late for the declaration of sqrt */
#endif
#if defined(__clang__)
#pragma STDC FP_CONTRACT OFF
/* The few loops that cannot vectorise (64-bit division below AVX-512) carry the same pragma as the others. */
#pragma clang diagnostic ignored "-Wpass-failed"
#define Q_IVDEP _Pragma("clang loop vectorize(assume_safety)")
/* The same for a loop that converts f16: Clang since 15 overrates its cost and would take 4 elements at a time. */
#if defined(__AVX512F__)
#define Q_IVDEP_F16 _Pragma("clang loop vectorize(assume_safety) vectorize_width(32)")
#elif defined(__F16C__)
#define Q_IVDEP_F16 _Pragma("clang loop vectorize(assume_safety) vectorize_width(16)")
#else
#define Q_IVDEP_F16 Q_IVDEP
#endif
/* For a loop with a long chain of dependent operations, not over strips: two vectors are interleaved. exp(exp(exp(x))) takes 0.8 of the
   time; bodies with many independent operations take 1.0 to 1.05 of it. */
#define Q_IVDEP_DEEP _Pragma("clang loop vectorize(assume_safety) interleave_count(2)")
/* The same for a loop of few operations, which Clang interleaves of itself. */
#define Q_IVDEP_SHORT Q_IVDEP
#else
/* fp-contract is a law. The others are for speed where our flags are not given: they let sqrt, floor, trunc and selects vectorise and
   keep copy loops from becoming calls of memcpy. no-trapping-math licenses the pairing of casts that q_zero prevents. */
#pragma GCC optimize("fp-contract=off", "no-trapping-math", "no-math-errno", "no-tree-loop-distribute-patterns")
#define Q_IVDEP _Pragma("GCC ivdep")
#define Q_IVDEP_F16 Q_IVDEP
#define Q_IVDEP_DEEP Q_IVDEP
/* For a loop of few operations, contiguous: two vectors between jumps. In L1 most take 0.5 to 0.9 of the time. */
#define Q_IVDEP_SHORT _Pragma("GCC ivdep") _Pragma("GCC unroll 2")
#endif

/* The rest of a loop, less than Q_GRAIN elements or a strip. Q_MASKS: a vector with a mask computes it. Then Q_CUT gives the length of the next
   block of a row of which `left` elements are left: `block`, or a multiple of `grain`, or a rest; Q_WHOLE the part of a block that is no rest.
   Q_IVDEP_MASKED and Q_IVDEP_F16_MASKED precede a loop of any length. Expressions' kernels ask for that. */
#if defined(__clang__) && __clang_major__ >= 19 && defined(__AVX512BW__) && defined(__AVX512VL__)
#define Q_MASKS 1
#define Q_CUT(left, block, grain) ((left) >= (block) ? (block) : (left) >= (grain) ? (left) & -(i64)(grain) : (left))
#define Q_WHOLE(m, grain) ((m) & -(i64)(grain))
#define Q_IVDEP_MASKED _Pragma("clang loop vectorize(assume_safety) vectorize_predicate(enable) interleave_count(1)")
#define Q_IVDEP_F16_MASKED _Pragma("clang loop vectorize(assume_safety) vectorize_predicate(enable) vectorize_width(32) interleave_count(1)")
#else
#define Q_MASKS 0
#define Q_CUT(left, block, grain) ((left) < (block) ? (left) : (block))
#define Q_WHOLE(m, grain) (m)
#define Q_IVDEP_MASKED Q_IVDEP
#define Q_IVDEP_F16_MASKED Q_IVDEP_F16
#endif
#define Q_GRAIN 64
#define Q_GRAIN_F16 128 /* of a loop that converts f16 */
#define Q_IS_REST(m, grain) (Q_MASKS && (m) < (grain))

/* always_inline: a call left in an inner loop would keep it from vectorising. */
#define Q_FN static inline __attribute__((always_inline, unused))

/* ---- Types ---- */

typedef float f32;
typedef double f64;
typedef __INT8_TYPE__ i8;
typedef __INT16_TYPE__ i16;
typedef __INT32_TYPE__ i32;
typedef __INT64_TYPE__ i64;
typedef __UINT8_TYPE__ u8;
typedef __UINT16_TYPE__ u16;
typedef __UINT32_TYPE__ u32;
typedef __UINT64_TYPE__ u64;
typedef u8 bool_s;  /* storage: any nonzero byte is true; what we store is 0 or 1 */
typedef u16 f16_s;  /* storage: binary16 */
typedef u16 bf16_s; /* storage: bfloat16 */
/* A condition: 0 or -1, as wide as the elements it selects. */
typedef i8 m8;
typedef i16 m16;
typedef i32 m32;
typedef i64 m64;

/* X_u: type of an element X in memory: at any alignment, and aliasing any type of the host. */
#define Q_UNALIGNED(X) typedef X X##_u __attribute__((aligned(1), may_alias));
Q_UNALIGNED(f32) Q_UNALIGNED(f64)
Q_UNALIGNED(i8) Q_UNALIGNED(i16) Q_UNALIGNED(i32) Q_UNALIGNED(i64)
Q_UNALIGNED(u8) Q_UNALIGNED(u16) Q_UNALIGNED(u32) Q_UNALIGNED(u64)
Q_UNALIGNED(bool_s) Q_UNALIGNED(f16_s) Q_UNALIGNED(bf16_s)
#undef Q_UNALIGNED

/* ---- The opaque zero ---- */

/* A zero of unknown value to the compiler: integers are xored with it on their way to a float, so that no compiler pairs that cast with an
   earlier float-to-integer cast (GCC would make (f32)(i32)x a trunc, -0 for +0). Laundered by an empty asm: no memory, no relocation; as a
   loop invariant declared at the kernel's entry it does not hinder vectorisation. */
Q_FN i32 q_opaque_zero(void) {
  i32 zero = 0;
  __asm__("" : "+r"(zero));
  return zero;
}
#define Q_KERNEL_ENTRY                \
  const i32 q_zero = q_opaque_zero(); \
  (void)q_zero

/* ---- Around kernels ---- */

/* A kernel's contract, checked once per call: a caller's mistake traps. No part of code compiled with NDEBUG. */
#ifdef NDEBUG
#define Q_ASSERT(condition) ((void)0)
#else
#define Q_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#endif

/* A kernel's name with a suffix: the level that the file is compiled for. */
#ifdef QN_ISA
#define Q_NAME_JOIN(name, isa) name##_##isa
#define Q_NAME_LEVEL(name, isa) Q_NAME_JOIN(name, isa)
#define Q_NAME(name) Q_NAME_LEVEL(name, QN_ISA)
#else
#define Q_NAME(name) name
#endif

/* Between these two, warnings about bodies that serve every dtype are off (x < 0 for an unsigned x), and Clang replaces no loop by a call
   of memcpy or memset: a kernel refers to no other symbol. For GCC the pragma above does the latter. */
#if defined(__clang__)
#define Q_KERNELS_BEGIN                                                                           \
  _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wtautological-compare\"") \
  _Pragma("clang attribute push(__attribute__((no_builtin(\"memcpy\", \"memmove\", \"memset\"))), apply_to = function)")
#define Q_KERNELS_END _Pragma("clang attribute pop") _Pragma("clang diagnostic pop")
#else
#define Q_KERNELS_BEGIN                                                                       \
  _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wtautological-compare\"") \
  _Pragma("GCC diagnostic ignored \"-Wtype-limits\"")
#define Q_KERNELS_END _Pragma("GCC diagnostic pop")
#endif

/* ---- Select ---- */

/* m ? a : b for a mask m. GCC makes control flow of ?:, and threads jumps through chains of it until vector code drowns in mask arithmetic; it
   knows this xor form for a blend. Clang makes the same blend of either and compiles ?: sooner.
   Q_MASK turns a comparison into a mask; the cast comes before the minus so that GCC does not compute it in int and widen it. */
#define Q_MASK(M, condition) ((M)-(M)(condition))
#if defined(__clang__)
#define Q_SELECT(X, M) \
  Q_FN X q_sel_##X(M m, X a, X b) { return m ? a : b; }
#else
#define Q_SELECT(X, M) \
  Q_FN X q_sel_##X(M m, X a, X b) { return (X)(b ^ ((a ^ b) & (X)m)); }
#endif
Q_SELECT(i8, m8) Q_SELECT(i16, m16) Q_SELECT(i32, m32) Q_SELECT(i64, m64)
Q_SELECT(u8, m8) Q_SELECT(u16, m16) Q_SELECT(u32, m32) Q_SELECT(u64, m64)
#undef Q_SELECT

/* ---- Bit casts, sign, NaN ---- */

#define Q_CANON_NAN_f32 0x7fc00000u
#define Q_CANON_NAN_f64 0x7ff8000000000000u

/* F: float type, U, M: its unsigned and mask type, SIGN: its sign bit.
   bits gives the canonical NaN for any NaN, raw the bits as they are; sign operations are integer operations. To signbit and copysign a NaN is
   positive; raw_signbit and raw_copysign take its sign bit as it is. */
#if defined(__clang__)
#define Q_SELECT_FLOAT(F, U, m, a, b) (m ? a : b)
/* Clang 19 joins the bit operations with a select behind them, for AVX-512, to one that selects a wrong operand; its builtin is the same bits. */
#define Q_RAW_COPYSIGN(F, SIGN, x, y) (sizeof(F) == 4 ? (F)__builtin_copysignf((f32)x, (f32)y) : (F)__builtin_copysign((f64)x, (f64)y))
#else
#define Q_RAW_COPYSIGN(F, SIGN, x, y) q_from_##F((q_raw_##F(x) & ~(SIGN)) | (q_raw_##F(y) & (SIGN)))
#define Q_SELECT_FLOAT(F, U, m, a, b) q_from_##F(q_sel_##U(m, q_raw_##F(a), q_raw_##F(b)))
#endif
#define Q_FLOAT_BITS(F, U, M, SIGN, MINUS_INFINITY)                                                           \
  Q_FN U q_raw_##F(F x) {                                                                                     \
    union { F f; U u; } pun = {x};                                                                            \
    return pun.u;                                                                                             \
  }                                                                                                           \
  Q_FN F q_from_##F(U x) { union { U u; F f; } pun = {x}; return pun.f; }                                     \
  Q_FN U q_bits_##F(F x) { return q_sel_##U(Q_MASK(M, x == x), q_raw_##F(x), (U)Q_CANON_NAN_##F); }           \
  Q_FN F q_canon_##F(F x) { return q_from_##F(q_bits_##F(x)); }                                               \
  Q_FN F q_neg_##F(F x) { return q_from_##F(q_raw_##F(x) ^ (SIGN)); }                                         \
  Q_FN F q_abs_##F(F x) { return q_from_##F(q_raw_##F(x) & ~(SIGN)); }                                        \
  Q_FN F q_copysign_##F(F x, F y) { return q_from_##F((q_raw_##F(x) & ~(SIGN)) | (q_bits_##F(y) & (SIGN))); } \
  /* Of all bits with the sign set, as signed integers, only those of NaNs are above -infinity's. */          \
  Q_FN M q_signbit_##F(F x) { return Q_MASK(M, (M)q_raw_##F(x) <= (M)(MINUS_INFINITY)); }                     \
  Q_FN M q_raw_signbit_##F(F x) { return Q_MASK(M, (M)q_raw_##F(x) < 0); }                                    \
  Q_FN F q_raw_copysign_##F(F x, F y) { return Q_RAW_COPYSIGN(F, SIGN, x, y); }                               \
  Q_FN F q_sel_##F(M m, F a, F b) { return Q_SELECT_FLOAT(F, U, m, a, b); }
Q_FLOAT_BITS(f32, u32, m32, 0x80000000u, 0xff800000u)
Q_FLOAT_BITS(f64, u64, m64, (u64)0x8000000000000000u, (u64)0xfff0000000000000u)
#undef Q_FLOAT_BITS
#undef Q_SELECT_FLOAT

/* ---- Maximum and minimum of floats: NaN propagates, -0 < +0 ---- */

/* (a > b ? a : b) and (b > a ? b : a) are one instruction each and differ only for zeros of both signs and for NaN. Oring the bits of the two
   minima takes -0 and keeps NaN; anding those of the maxima takes +0 but may lose NaN, which the last step brings back. */
#define Q_MINMAX(F, U, M)                                                                           \
  Q_FN F q_min_##F(F a, F b) {                                                                      \
    F ab = a < b ? a : b, ba = b < a ? b : a;                                                       \
    return q_from_##F(q_raw_##F(ab) | q_raw_##F(ba));                                               \
  }                                                                                                 \
  Q_FN F q_max_##F(F a, F b) {                                                                      \
    F ab = a > b ? a : b, ba = b > a ? b : a;                                                       \
    U both = q_raw_##F(ab) & q_raw_##F(ba);                                                         \
    return q_from_##F(q_sel_##U(Q_MASK(M, __builtin_isunordered(a, b)), (U)Q_CANON_NAN_##F, both)); \
  }
Q_MINMAX(f32, u32, m32)
Q_MINMAX(f64, u64, m64)
#undef Q_MINMAX

/* ---- Whether any element is beyond a bound ---- */

/* most: the largest a so far; after the loop it is compared with `last`. Signed a and last are not negative; unsigned last is below 2^63. */
#define Q_MOST(X)                                                                          \
  Q_FN X q_most_##X(X most, X a, X last) { return (void)last, (a > most ? a : most); } \
  Q_FN X q_more_##X(X a, X b) { return a > b ? a : b; }                                \
  Q_FN int q_is_past_##X(X most, X last) { return most > last; }
Q_MOST(i32) Q_MOST(u32)
#ifdef __AVX512F__
Q_MOST(i64) Q_MOST(u64)
#else /* other vectors have no 64-bit maximum: most is negative once an a was above last */
Q_FN i64 q_most_i64(i64 most, i64 a, i64 last) { return most | (last - a); }
Q_FN u64 q_most_u64(u64 most, u64 a, u64 last) { return most | (last - a) | a; }
Q_FN i64 q_more_i64(i64 a, i64 b) { return a | b; }
Q_FN u64 q_more_u64(u64 a, u64 b) { return a | b; }
Q_FN int q_is_past_i64(i64 most, i64 last) { return (void)last, most < 0; }
Q_FN int q_is_past_u64(u64 most, u64 last) { return (void)last, (i64)most < 0; }
#endif
#undef Q_MOST

/* ---- Rounding to integral values ---- */

#if defined(__SSE4_1__) || defined(__aarch64__)
#define Q_ROUNDING(F, SUFFIX)                                    \
  Q_FN F q_rint_##F(F x) { return __builtin_rint##SUFFIX(x); }   \
  Q_FN F q_floor_##F(F x) { return __builtin_floor##SUFFIX(x); } \
  Q_FN F q_ceil_##F(F x) { return __builtin_ceil##SUFFIX(x); }   \
  Q_FN F q_trunc_##F(F x) { return __builtin_trunc##SUFFIX(x); }
Q_ROUNDING(f32, f)
Q_ROUNDING(f64, )
#undef Q_ROUNDING
#else
/* No instruction, and the builtins would call libm: adding and subtracting 2^23 (2^52) rounds |x| < 2^23 to an integer, ties to even;
   larger numbers are integral already; the sign goes back on so that -0.25 gives -0. */
#define Q_ROUNDING(F, U, SIGN, MAGIC)                                                             \
  Q_FN F q_with_sign_##F(F x, F y) { return q_from_##F(q_raw_##F(x) | (q_raw_##F(y) & (SIGN))); } \
  Q_FN F q_rint_##F(F x) {                                                                        \
    F a = q_abs_##F(x);                                                                           \
    return a < (MAGIC) ? q_with_sign_##F((a + (MAGIC)) - (MAGIC), x) : x;                         \
  }                                                                                               \
  Q_FN F q_trunc_##F(F x) {                                                                       \
    F a = q_abs_##F(x), r = q_abs_##F(q_rint_##F(x));                                             \
    return a < (MAGIC) ? q_with_sign_##F(r > a ? r - 1 : r, x) : x;                               \
  }                                                                                               \
  Q_FN F q_floor_##F(F x) {                                                                       \
    F r = q_rint_##F(x);                                                                          \
    return r > x ? q_with_sign_##F(q_abs_##F(r - 1), x) : r;                                      \
  }                                                                                               \
  Q_FN F q_ceil_##F(F x) {                                                                        \
    F r = q_rint_##F(x);                                                                          \
    return r < x ? q_with_sign_##F(q_abs_##F(r + 1), x) : r;                                      \
  }
Q_ROUNDING(f32, u32, 0x80000000u, 0x1p23f)
Q_ROUNDING(f64, u64, (u64)0x8000000000000000u, 0x1p52)
#undef Q_ROUNDING
#endif

/* ---- Square root ---- */

/* The plain builtin is a call of libm wherever errno counts. */
#if defined(__clang__) && defined(__has_builtin)
#if __has_builtin(__builtin_elementwise_sqrt)
#define Q_SQRT(F, SUFFIX, x) __builtin_elementwise_sqrt(x)
#endif
#endif
#if defined(Q_SQRT) /* vectorises, whatever the flags */
#elif defined(Q_NO_MATH_ERRNO)
#define Q_SQRT(F, SUFFIX, x) __builtin_sqrt##SUFFIX(x)
#elif defined(__SSE2__) && (defined(__clang__) || !__STDC_HOSTED__ || !defined(__OPTIMIZE__)) /* vectorises in Clang only */
typedef f32 q_f32x4 __attribute__((vector_size(16)));
typedef f64 q_f64x2 __attribute__((vector_size(16)));
#define Q_SQRT(F, SUFFIX, x) Q_SQRT_##F(x)
#define Q_SQRT_f32(x) __builtin_ia32_sqrtss((q_f32x4){x, 0, 0, 0})[0]
#define Q_SQRT_f64(x) __builtin_ia32_sqrtsd((q_f64x2){x, 0})[0]
#elif __STDC_HOSTED__
/* The compiler fixes at its start that sqrt may set errno; declared const it is the instruction, and vectorises. */
f32 sqrtf(f32) __attribute__((const, nothrow));
f64 sqrt(f64) __attribute__((const, nothrow));
#define Q_SQRT(F, SUFFIX, x) sqrt##SUFFIX(x)
#else
#define Q_SQRT(F, SUFFIX, x) __builtin_sqrt##SUFFIX(x)
#endif
Q_FN f32 q_sqrt_f32(f32 x) { return Q_SQRT(f32, f, x); }
Q_FN f64 q_sqrt_f64(f64 x) { return Q_SQRT(f64, , x); }
#undef Q_SQRT

/* ---- Fused multiply-add ---- */

/* The product of two f32 is exact in f64, where the sum is rounded to odd (nearest, then moved to the odd neighbour towards the error that
   an error-free sum finds): 53 bits rounded to odd round to 24 or fewer bits as the exact value would. */
Q_FN f32 q_fma_soft_f32(f32 a, f32 b, f32 c) {
  f64 product = (f64)a * (f64)b, addend = (f64)c;
  f64 sum = product + addend;
  f64 part = sum - product;
  f64 error = (product - (sum - part)) + (addend - part);
  u64 bits = q_raw_f64(sum);
  u64 step = (error > 0) == (sum > 0) ? (u64)1 : ~(u64)0;
  u64 inexact = (u64)((error > 0) | (error < 0)); /* not so for the NaN that infinities leave here */
  return (f32)q_from_f64(bits + (step & (0 - (inexact & ~bits & 1))));
}

Q_FN int q_clz_u64(u64 x) { return __builtin_clzll(x); }

/* Exact in 128-bit integers: both terms are aligned with a sticky lowest bit, added, normalised and rounded once, at the result's own
   precision if it is subnormal. Not inlined: it is correct, not fast. */
static __attribute__((noinline, unused)) f64 q_fma_soft_f64(f64 a, f64 b, f64 c) {
  __extension__ typedef unsigned __int128 u128;
  const u64 sign_bit = (u64)1 << 63, hidden = (u64)1 << 52;
  u64 ua = q_raw_f64(a), ub = q_raw_f64(b), uc = q_raw_f64(c);
  i32 ea = (i32)(ua >> 52 & 0x7ff), eb = (i32)(ub >> 52 & 0x7ff), ec = (i32)(uc >> 52 & 0x7ff);
  u64 ma = ua & (hidden - 1), mb = ub & (hidden - 1), mc = uc & (hidden - 1);
  if (ea == 0x7ff || eb == 0x7ff || !(ua << 1) || !(ub << 1)) return a * b + c; /* a zero, infinite or NaN product is exact */
  if (ec == 0x7ff) return c + c;                                                /* the product is finite even if a * b overflows */
  if (!(uc << 1)) return a * b;
  /* a = ma * 2^(ea - 1075) with 2^52 <= ma < 2^53, also for subnormals */
  if (ea) ma |= hidden; else { i32 s = q_clz_u64(ma) - 11; ma <<= s; ea = 1 - s; }
  if (eb) mb |= hidden; else { i32 s = q_clz_u64(mb) - 11; mb <<= s; eb = 1 - s; }
  if (ec) mc |= hidden; else { i32 s = q_clz_u64(mc) - 11; mc <<= s; ec = 1 - s; }
  /* Both leading bits to 2^124 or 2^125: 20 free bits below the product, 73 below the addend, so a shift that loses bits (above 20) leaves
     terms so far apart that at most one leading bit cancels, and the sticky bit stays far below the rounding. */
  u128 product = (u128)ma * mb << 20, addend = (u128)mc << 73, sum;
  i32 e = ea + eb - 2150 - 20, d = e - (ec - 1075 - 73);
  u64 sign = (ua ^ ub) & sign_bit, sign_c = uc & sign_bit;
  if (d > 0) addend = d > 126 ? 1 : addend >> d | ((addend & (((u128)1 << d) - 1)) != 0);
  if (d < 0) {
    e -= d;
    product = -d > 126 ? 1 : product >> -d | ((product & (((u128)1 << -d) - 1)) != 0);
  }
  if (sign == sign_c) sum = product + addend;
  else if (product >= addend) sum = product - addend;
  else { sum = addend - product; sign = sign_c; }
  if (!sum) return 0;
  i32 lead = (u64)(sum >> 64) ? q_clz_u64((u64)(sum >> 64)) : 64 + q_clz_u64((u64)sum);
  sum <<= lead;
  i32 biased = e - lead + 127 + 1023; /* exponent field of the leading bit, now 2^127 */
  if (biased >= 0x7ff) return q_from_f64(sign | (u64)0x7ff << 52);
  u64 top = (u64)(sum >> 64) | ((u64)sum != 0);
  i32 shift = 9 + (biased < 1 ? 1 - biased : 0); /* leaves 53 bits or, subnormal, fewer; and two for rounding */
  top = shift > 63 ? 1 : top >> shift | (top << (64 - shift) != 0);
  u64 rounded = (top >> 2) + ((top & 3) + (top >> 2 & 1) > 2);
  if (biased >= 1) rounded += ((u64)biased - 1) << 52; /* the hidden bit, or a carry, adds one to the exponent */
  return q_from_f64(sign | rounded);
}

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__aarch64__)
Q_FN f32 q_fma_f32(f32 a, f32 b, f32 c) { return __builtin_fmaf(a, b, c); }
Q_FN f64 q_fma_f64(f64 a, f64 b, f64 c) { return __builtin_fma(a, b, c); }
#else
Q_FN f32 q_fma_f32(f32 a, f32 b, f32 c) { return q_fma_soft_f32(a, b, c); }
Q_FN f64 q_fma_f64(f64 a, f64 b, f64 c) { return q_fma_soft_f64(a, b, c); }
#endif

/* ---- Integers: everything wraps, nothing is undefined ---- */

/* X: the type, S and U: signed and unsigned of its width, W: what arithmetic is done in (never a signed type, never promoted to one), BITS: its
   width. A left shift extends the sign, which does not show, because GCC would narrow a zero-extended one to 16 bits, which AVX2 cannot shift.
   The *c shifts take a count known to be inside the width; the others give 0 (or the sign) for any other count. Those of 8 bits follow below:
   no vector has shifts of bytes, each by its own count. */
#define Q_INTEGER(X, S, U, W, BITS)                                           \
  Q_FN X q_add_##X(X a, X b) { return (X)((W)a + (W)b); }                     \
  Q_FN X q_sub_##X(X a, X b) { return (X)((W)a - (W)b); }                     \
  Q_FN X q_mul_##X(X a, X b) { return (X)((W)a * (W)b); }                     \
  Q_FN X q_neg_##X(X a) { return (X)((W)0 - (W)a); }                          \
  Q_FN X q_max_##X(X a, X b) { return a > b ? a : b; }                        \
  Q_FN X q_min_##X(X a, X b) { return a < b ? a : b; }                        \
  Q_FN X q_shlc_##X(X a, X n) { return (X)((W)(S)a << ((W)n & (BITS - 1))); } \
  Q_FN X q_shrc_##X(X a, X n) { return (X)(a >> ((W)n & (BITS - 1))); }
Q_INTEGER(i8, i8, u8, u32, 8)
Q_INTEGER(i16, i16, u16, u32, 16)
Q_INTEGER(i32, i32, u32, u32, 32)
Q_INTEGER(i64, i64, u64, u64, 64)
Q_INTEGER(u8, i8, u8, u32, 8)
Q_INTEGER(u16, i16, u16, u32, 16)
Q_INTEGER(u32, i32, u32, u32, 32)
Q_INTEGER(u64, i64, u64, u64, 64)
#undef Q_INTEGER

#define Q_INTEGER_SHIFTED(X, U, BITS) \
  Q_FN X q_shl_##X(X a, X n) { return (U)n < BITS ? q_shlc_##X(a, n) : (X)0; }
Q_INTEGER_SHIFTED(i16, u16, 16)
Q_INTEGER_SHIFTED(i32, u32, 32)
Q_INTEGER_SHIFTED(i64, u64, 64)
Q_INTEGER_SHIFTED(u16, u16, 16)
Q_INTEGER_SHIFTED(u32, u32, 32)
Q_INTEGER_SHIFTED(u64, u64, 64)
#undef Q_INTEGER_SHIFTED

/* What GCC makes one instruction of, for 32 bits two: of the least i32 the builtin is undefined. */
Q_FN i8 q_abs_i8(i8 a) { return (i8)__builtin_abs(a); }
Q_FN i16 q_abs_i16(i16 a) { return (i16)__builtin_abs(a); }
Q_FN i32 q_abs_i32(i32 a) { return q_max_i32(a, q_neg_i32(a)); }
Q_FN i64 q_abs_i64(i64 a) { return a < 0 ? q_neg_i64(a) : a; }

#define Q_INTEGER_SIGNED(X, U, BITS) \
  Q_FN X q_shr_##X(X a, X n) { return q_shrc_##X(a, (U)n < BITS ? n : (X)(BITS - 1)); }
Q_INTEGER_SIGNED(i16, u16, 16)
Q_INTEGER_SIGNED(i32, u32, 32)
Q_INTEGER_SIGNED(i64, u64, 64)
#undef Q_INTEGER_SIGNED

#define Q_INTEGER_UNSIGNED(X, BITS)   \
  Q_FN X q_abs_##X(X a) { return a; } \
  Q_FN X q_shr_##X(X a, X n) { return n < BITS ? q_shrc_##X(a, n) : (X)0; }
Q_INTEGER_UNSIGNED(u16, 16)
Q_INTEGER_UNSIGNED(u32, 32)
Q_INTEGER_UNSIGNED(u64, 64)
#undef Q_INTEGER_UNSIGNED

/* By 1, 2 and 4, each where the count has that bit. The bits of a signed number are shifted without its sign, a negative one's flipped. */
#define Q_SHIFT_BYTE(NAME, SIGN)                                                       \
  Q_FN u8 q_shift_##NAME##_u8(u8 a, u8 n) {                                            \
    const u8 by_1 = q_sel_u8(Q_MASK(m8, (n & 1) != 0), (u8)(a SIGN 1), a);             \
    const u8 by_3 = q_sel_u8(Q_MASK(m8, (n & 2) != 0), (u8)(by_1 SIGN 2), by_1);       \
    const u8 by_7 = q_sel_u8(Q_MASK(m8, (n & 4) != 0), (u8)(by_3 SIGN 4), by_3);       \
    return q_sel_u8(Q_MASK(m8, n < 8), by_7, 0);                                       \
  }
Q_SHIFT_BYTE(left, <<)
Q_SHIFT_BYTE(right, >>)
#undef Q_SHIFT_BYTE
Q_FN u8 q_abs_u8(u8 a) { return a; }
Q_FN u8 q_shl_u8(u8 a, u8 n) { return q_shift_left_u8(a, n); }
Q_FN u8 q_shr_u8(u8 a, u8 n) { return q_shift_right_u8(a, n); }
Q_FN i8 q_shl_i8(i8 a, i8 n) { return (i8)q_shift_left_u8((u8)a, (u8)n); }
Q_FN i8 q_shr_i8(i8 a, i8 n) {
  const u8 sign = (u8)Q_MASK(m8, a < 0);
  return (i8)(q_shift_right_u8((u8)((u8)a ^ sign), (u8)n) ^ sign);
}

Q_FN u32 q_u32_of_f64(f64 x) { return (u32)q_raw_f64(q_trunc_f64(x) + 0x1p52); }
/* The one quotient outside i32 is MIN / -1 = 2^31. */
Q_FN i32 q_i32_of_quotient(f64 x) { return x < 0x1p31 ? (i32)(x < 0x1p31 ? x : 0.0) : -0x7fffffff - 1; }

/* Truncating division. x / 0 = 0 and x rem 0 = 0; MIN / -1 wraps to MIN with remainder 0. Up to 32 bits it goes through a float type F that
   holds both exactly and vectorises: a quotient of integers below 2^24 (f64: 2^53) that is not whole lies at least 1/|b| below the next
   whole number, farther than F's rounding reaches. */
#define Q_REMAINDER(X, M) \
  Q_FN X q_rem_##X(X a, X b) { return q_sel_##X(Q_MASK(M, b != 0), q_sub_##X(a, q_mul_##X(q_quot_##X(a, b), b)), 0); }
#define Q_DIVIDE_BY_FLOAT(X, M, TO_F, TO_X)   \
  Q_FN X q_quot_##X(X a, X b) {               \
    X q = TO_X(TO_F(a) / TO_F(b ? b : (X)1)); \
    return b ? q : (X)0;                      \
  }                                           \
  Q_REMAINDER(X, M)
#define Q_F32(a) ((f32)(i32)(a))
#define Q_F64(a) ((f64)(i32)(a))
#define Q_F64U(a) (q_from_f64((u64)(a) | (u64)0x433 << 52) - 0x1p52) /* 2^52 shows an integer in the mantissa */
Q_DIVIDE_BY_FLOAT(i8, m8, Q_F32, (i8)(i32))
Q_DIVIDE_BY_FLOAT(u8, m8, Q_F32, (u8)(i32))
Q_DIVIDE_BY_FLOAT(i16, m16, Q_F32, (i16)(i32))
Q_DIVIDE_BY_FLOAT(u16, m16, Q_F32, (u16)(i32))
Q_DIVIDE_BY_FLOAT(u32, m32, Q_F64U, q_u32_of_f64)
Q_DIVIDE_BY_FLOAT(i32, m32, Q_F64, q_i32_of_quotient)
#undef Q_F64U
#undef Q_F64
#undef Q_F32
#undef Q_DIVIDE_BY_FLOAT

#if defined(__AVX512DQ__)
/* 64 bits, if their conversions and products are vector instructions: by the inverse of b as an f64, twice. The first quotient is wrong by
   2^12 at most; what it leaves is exact as an f64 where |b| is up to 2^52, and beyond that the second quotient is -1, 0 or 1. To the nearest,
   this one leaves about half of b at most, with a sign that says which of two whole numbers is meant. The first quotient might not
   fit for the divisors -1, 0 and 1, and unsigned ones from 2^63 on: these have cases of their own. */
Q_FN i64 q_quot_i64(i64 a, i64 b) {
  m64 apart = Q_MASK(m64, (u64)b + 1 <= 2);
  i64 d = q_sel_i64(apart, 2, b);
  f64 inverse = 1 / (f64)d;
  i64 first = (i64)((f64)a * inverse), left = q_sub_i64(a, q_mul_i64(first, d));
  i64 second = (i64)q_rint_f64((f64)left * inverse), rest = q_sub_i64(left, q_mul_i64(second, d));
  m64 beyond = Q_MASK(m64, (rest ^ a) < 0) & Q_MASK(m64, rest != 0);
  i64 back = q_sel_i64(Q_MASK(m64, (a ^ d) < 0), 1, -1);
  return q_sel_i64(apart, q_mul_i64(a, b), q_add_i64(q_add_i64(first, second), back & beyond));
}
Q_FN u64 q_quot_u64(u64 a, u64 b) {
  m64 apart = Q_MASK(m64, b <= 1), large = Q_MASK(m64, (i64)b < 0);
  u64 d = q_sel_u64(apart | large, 2, b);
  f64 inverse = 1 / (f64)d;
  u64 first = (u64)((f64)a * inverse);
  i64 left = (i64)q_sub_u64(a, q_mul_u64(first, d));
  i64 second = (i64)q_rint_f64((f64)left * inverse), rest = q_sub_i64(left, q_mul_i64(second, (i64)d));
  u64 quotient = first + (u64)second + (u64)Q_MASK(m64, rest < 0);
  return q_sel_u64(apart, q_mul_u64(a, b), q_sel_u64(large, (u64)(a >= b), quotient));
}
Q_REMAINDER(i64, m64)
Q_REMAINDER(u64, m64)
#else
Q_FN i64 q_quot_i64(i64 a, i64 b) {
  i64 d = b == 0 || b == -1 ? (i64)1 : b;
  i64 q = a / d;
  return b == 0 ? (i64)0 : b == -1 ? q_neg_i64(a) : q;
}
Q_FN i64 q_rem_i64(i64 a, i64 b) { return a % (b == 0 || b == -1 ? (i64)1 : b); }
Q_FN u64 q_quot_u64(u64 a, u64 b) { return b ? a / (b ? b : (u64)1) : (u64)0; }
Q_FN u64 q_rem_u64(u64 a, u64 b) { return a % (b ? b : (u64)1); }
#endif
#undef Q_REMAINDER

/* The greatest common divisor, without a sign (that of MIN and MIN or 0 wraps to MIN). One division brings both to a size; then
   Stein's: common factors of two are set aside; then the difference of the odd numbers, without its factors of two, replaces the
   larger, until they are equal. W: what it runs in, CTZ: W's trailing zeros. */
#define Q_GCD(X, U, W, CTZ)                     \
  Q_FN X q_gcd_##X(X x, X y) {                  \
    W a = (U)q_abs_##X(x), b = (U)q_abs_##X(y); \
    if (b == 0) return (X)a;                    \
    a %= b;                                     \
    if (a == 0) return (X)b;                    \
    const int shared = CTZ(a | b);              \
    for (a >>= CTZ(a), b >>= CTZ(b); a != b;) { \
      const W apart = a < b ? b - a : a - b;    \
      b = a < b ? a : b;                        \
      a = apart >> CTZ(apart);                  \
    }                                           \
    return (X)(b << shared);                    \
  }
Q_GCD(i8, u8, u32, __builtin_ctz)
Q_GCD(i16, u16, u32, __builtin_ctz)
Q_GCD(i32, u32, u32, __builtin_ctz)
Q_GCD(i64, u64, u64, __builtin_ctzll)
Q_GCD(u8, u8, u32, __builtin_ctz)
Q_GCD(u16, u16, u32, __builtin_ctz)
Q_GCD(u32, u32, u32, __builtin_ctz)
Q_GCD(u64, u64, u64, __builtin_ctzll)
#undef Q_GCD

/* ---- Bits that are 1 ---- */

/* Clang has vector code for its builtin at every level. For GCC bits are added up: those of pairs, of groups of four, of bytes, then of all
   bytes by shifts. Of 64 bits, below AVX-512, the instruction for one number is quicker than that in vectors. */
#if defined(__clang__)
Q_FN u8 q_count_bits_u8(u8 x) { return (u8)__builtin_popcount(x); }
Q_FN u16 q_count_bits_u16(u16 x) { return (u16)__builtin_popcount(x); }
Q_FN u32 q_count_bits_u32(u32 x) { return (u32)__builtin_popcount(x); }
#else
#define Q_COUNT_IN_BYTES(U, SUM)                                                                                                 \
  Q_FN U q_count_bits_##U(U x) {                                                                                                 \
    const U a = (U)(x - ((x >> 1) & (U)0x5555555555555555)), in_pairs = (U)0x3333333333333333, in_bytes = (U)0x0f0f0f0f0f0f0f0f; \
    const U b = (U)((a & in_pairs) + ((a >> 2) & in_pairs));                                                                     \
    const U c = (U)((b + (b >> 4)) & in_bytes);                                                                                  \
    return SUM;                                                                                                                  \
  }
Q_FN u16 q_add_bytes_u16(u16 c) { return (u16)((c + (c >> 8)) & 0x1f); }
Q_FN u32 q_add_bytes_u32(u32 c) {
  const u32 d = c + (c >> 8);
  return (d + (d >> 16)) & 0x3f;
}
Q_COUNT_IN_BYTES(u8, c)
Q_COUNT_IN_BYTES(u16, q_add_bytes_u16(c))
Q_COUNT_IN_BYTES(u32, q_add_bytes_u32(c))
#endif
#if defined(__clang__) || (defined(__POPCNT__) && !defined(__AVX512F__))
Q_FN u64 q_count_bits_u64(u64 x) { return (u64)__builtin_popcountll(x); }
#else
Q_FN u64 q_add_bytes_u64(u64 c) {
  const u64 d = c + (c >> 8), e = d + (d >> 16);
  return (e + (e >> 32)) & 0x7f;
}
Q_COUNT_IN_BYTES(u64, q_add_bytes_u64(c))
#endif
#undef Q_COUNT_IN_BYTES
Q_FN i8 q_count_bits_i8(i8 x) { return (i8)q_count_bits_u8((u8)x); }
Q_FN i16 q_count_bits_i16(i16 x) { return (i16)q_count_bits_u16((u16)x); }
Q_FN i32 q_count_bits_i32(i32 x) { return (i32)q_count_bits_u32((u32)x); }
Q_FN i64 q_count_bits_i64(i64 x) { return (i64)q_count_bits_u64((u64)x); }

/* ---- Remainder of floats ---- */

/* x less its quotient by y, truncated, times y: exact, with the sign of x, C's fmod. Long division of the significands: each step
   takes 64 - DIGITS bits of the quotient, the room that a remainder of DIGITS bits leaves in a u64. The last remainder counts
   units in the last place of y. */
#define Q_REM_FLOAT(F, U, DIGITS, INFINITE)                                                                   \
  Q_FN F q_rem_##F(F x, F y) {                                                                                \
    const U hidden = (U)1 << (DIGITS - 1), sign = q_raw_##F(x) & ~(~(U)0 >> 1);                               \
    const U a = q_raw_##F(x) ^ sign, b = q_raw_##F(y) & ~(U)0 >> 1;                                           \
    if (a >= (U)INFINITE || b > (U)INFINITE || b == 0) return q_from_##F(Q_CANON_NAN_##F);                    \
    if (a < b) return x;                                                                                      \
    const i32 ea = a < hidden ? 1 : (i32)(a >> (DIGITS - 1)), eb = b < hidden ? 1 : (i32)(b >> (DIGITS - 1)); \
    const u64 divisor = b < hidden ? b : (b & (hidden - 1)) | hidden;                                         \
    u64 rest = (a < hidden ? a : (a & (hidden - 1)) | hidden) % divisor;                                      \
    for (i32 left = ea - eb; left > 0 && rest != 0; left -= 64 - DIGITS)                                      \
      rest = (rest << (left < 64 - DIGITS ? left : 64 - DIGITS)) % divisor;                                   \
    const U unit = eb < DIGITS ? (U)1 << (eb - 1) : (U)(eb - DIGITS + 1) << (DIGITS - 1);                     \
    return q_from_##F(q_raw_##F((F)(i64)rest * q_from_##F(unit)) | sign);                                     \
  }
Q_REM_FLOAT(f32, u32, 24, 0x7f800000u)
Q_REM_FLOAT(f64, u64, 53, 0x7ff0000000000000u)
#undef Q_REM_FLOAT

#include "kernel_cast.h"
#include "kernel_strips.h"
#if !defined(Q_NO_PACK) /* defined at run time: kernels that pack nothing are parsed faster */
#include "kernel_pack.h"
#include "kernel_find.h"
#include "kernel_shift.h"
#endif

#endif
