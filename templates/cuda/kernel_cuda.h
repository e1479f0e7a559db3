/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_cuda.h: the common part of all generated CUDA kernels; its text begins each generated file. Owns the laws of
   arithmetic as NVRTC and nvcc see them, the element types, the primitives and casts of generated text (twins of those of
   kernel.h and kernel_cast.h: same names, same bits) and the loads and stores of vectors. Conditions are bool.
   Includes no header of CUDA or of the system. All PTX is in the section of that name. With QC_HOST, cuda_host.h replaces it and
   CUDA's own words, so that the same text runs on a CPU. Kernels spell sums, products and quotients of floats __fadd_rn ...:
   the compilers contract a + b * c, but never these calls. */
#ifndef QUERN_KERNEL_CUDA_H
#define QUERN_KERNEL_CUDA_H

/* ---- Laws: refuse what would change bits ---- */

#if __CUDA_FTZ + 0 || __USE_FAST_MATH__ + 0 || defined(__FAST_MATH__)
#error "quern kernels promise exact bits: compile them without -use_fast_math and -ftz=true"
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#error "quern's CUDA kernels need compute capability 7.5 or later"
#endif
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
#define QC_SM_80 1 /* there are instructions for maximum and minimum with NaN, and to bf16 */
#endif

/* ---- Types ---- */

typedef float f32;
typedef double f64;
typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u8 bool_s;  /* storage: any nonzero byte is true; what we store is 0 or 1 */
typedef u16 f16_s;  /* storage: binary16 */
typedef u16 bf16_s; /* storage: bfloat16 */

/* ---- PTX ---- */

#if defined(QC_HOST)
#include "cuda_host.h"
#else
#define QC_PTX __device__ __forceinline__

/* Float to integer: truncates and saturates. Spelt as asm: to no compiler are numbers outside the range undefined behaviour, and
   none pairs it with a cast back. NaN gives 0 from f32 to 32 bits, otherwise the top bit alone. To a half: to nearest, NaN gives
   0x7fff; from f16: some NaN. */
#define QC_CONVERT(A, B, PTX, TAKES, GIVES)    \
  QC_PTX B qc_##B##_of_##A(A x) {              \
    B y;                                       \
    asm(PTX " %0, %1;" : GIVES(y) : TAKES(x)); \
    return y;                                  \
  }
QC_CONVERT(f32, i32, "cvt.rzi.s32.f32", "f", "=r")
QC_CONVERT(f32, u32, "cvt.rzi.u32.f32", "f", "=r")
QC_CONVERT(f32, i64, "cvt.rzi.s64.f32", "f", "=l")
QC_CONVERT(f32, u64, "cvt.rzi.u64.f32", "f", "=l")
QC_CONVERT(f64, i32, "cvt.rzi.s32.f64", "d", "=r")
QC_CONVERT(f64, u32, "cvt.rzi.u32.f64", "d", "=r")
QC_CONVERT(f64, i64, "cvt.rzi.s64.f64", "d", "=l")
QC_CONVERT(f64, u64, "cvt.rzi.u64.f64", "d", "=l")
QC_CONVERT(f32, f16_s, "cvt.rn.f16.f32", "f", "=h")
#if defined(QC_SM_80)
QC_CONVERT(f32, bf16_s, "cvt.rn.bf16.f32", "f", "=h")
#endif
QC_CONVERT(f16_s, f32, "cvt.f32.f16", "h", "=f")
#undef QC_CONVERT

/* |x|; NaN stays some NaN. */
QC_PTX f32 qc_abs_f32(f32 x) {
  f32 y;
  asm("abs.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
QC_PTX f64 qc_abs_f64(f64 x) {
  f64 y;
  asm("abs.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}

/* a / b, rounded to nearest. To the compiler the intrinsics are a quotient that it may rewrite: of f64 by a power of two it makes a
   product without a rounding, which it then contracts. */
QC_PTX f32 qc_div_f32(f32 a, f32 b) {
  f32 y;
  asm("div.rn.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));
  return y;
}
QC_PTX f64 qc_div_f64(f64 a, f64 b) {
  f64 y;
  asm("div.rn.f64 %0, %1, %2;" : "=d"(y) : "d"(a), "d"(b));
  return y;
}

/* a b in 64 bits: one instruction, also together with the sum that follows. From C++ the compiler makes five: it widens a
   loop-invariant stride before the loop, and then multiplies in 64 bits. */
QC_PTX i64 qc_multiply_wide(i32 a, i32 b) {
  i64 y;
  asm("mul.wide.s32 %0, %1, %2;" : "=l"(y) : "r"(a), "r"(b));
  return y;
}

#if defined(QC_SM_80)
/* NaN propagates, -0 < +0; there is no such instruction for f64 */
#define QC_MINMAX(NAME)                                                     \
  QC_PTX f32 qc_##NAME##_f32(f32 a, f32 b) {                                \
    f32 y;                                                                  \
    asm(#NAME ".NaN.f32 %0, %1, %2;" : "=f"(y) : "f"(a), "f"(b));           \
    return y;                                                               \
  }
QC_MINMAX(max)
QC_MINMAX(min)
#undef QC_MINMAX
#endif

/* Accesses of 1, 2, 4, 8 and 16 bytes, aligned to as many, as words of 8 to 64 bits. volatile keeps them in the order of the
   text. A load has no "memory" clobber: kernels write global memory only by these stores, and the arguments would be read again
   after each load. Loaded data is not kept in L1, and data stored with cs is evicted from L2 first: the kernel does not read
   either again. */
#define QC_LOAD(T, N, PTX, ...) \
  QC_PTX void qc_ld(u64 from, T (&x)[N]) { asm volatile("ld.global.L1::no_allocate." PTX : __VA_ARGS__ : "l"(from)); }
#define QC_STORE(T, N, PTX, ...)                                                                                   \
  QC_PTX void qc_st(u64 to, const T (&x)[N]) { asm volatile("st.global." PTX ::"l"(to), __VA_ARGS__ : "memory"); } \
  QC_PTX void qc_st_cs(u64 to, const T (&x)[N]) { asm volatile("st.global.cs." PTX ::"l"(to), __VA_ARGS__ : "memory"); }
QC_LOAD(u16, 1, "b16 %0, [%1];", "=h"(x[0]))
QC_LOAD(u32, 1, "b32 %0, [%1];", "=r"(x[0]))
QC_LOAD(u32, 2, "v2.b32 {%0, %1}, [%2];", "=r"(x[0]), "=r"(x[1]))
QC_LOAD(u32, 4, "v4.b32 {%0, %1, %2, %3}, [%4];", "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3]))
QC_LOAD(u64, 1, "b64 %0, [%1];", "=l"(x[0]))
QC_LOAD(u64, 2, "v2.b64 {%0, %1}, [%2];", "=l"(x[0]), "=l"(x[1]))
QC_STORE(u8, 1, "b8 [%0], %1;", "h"((u16)x[0])) /* no register is narrower than 16 bits */
QC_STORE(u16, 1, "b16 [%0], %1;", "h"(x[0]))
QC_STORE(u32, 1, "b32 [%0], %1;", "r"(x[0]))
QC_STORE(u32, 2, "v2.b32 [%0], {%1, %2};", "r"(x[0]), "r"(x[1]))
QC_STORE(u32, 4, "v4.b32 [%0], {%1, %2, %3, %4};", "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]))
QC_STORE(u64, 1, "b64 [%0], %1;", "l"(x[0]))
QC_STORE(u64, 2, "v2.b64 [%0], {%1, %2};", "l"(x[0]), "l"(x[1]))
QC_PTX void qc_ld(u64 from, u8 (&x)[1]) {
  u16 word;
  asm volatile("ld.global.L1::no_allocate.b8 %0, [%1];" : "=h"(word) : "l"(from));
  x[0] = (u8)word;
}
#undef QC_LOAD
#undef QC_STORE
#undef QC_PTX
#endif

#define Q_FN __device__ __forceinline__

/* ---- Loads and stores ---- */

/* V elements of T, side by side. */
template <typename T, int V> struct alignas(V * sizeof(T)) qc_vec { T at[V]; };

/* The word of an access of BYTES bytes: u64 for elements of 8 bytes, otherwise the one of which the fewest are needed. */
template <int SIZE, int BYTES> struct qc_word { typedef u32 type; };
template <int BYTES> struct qc_word<8, BYTES> { typedef u64 type; };
template <int SIZE> struct qc_word<SIZE, 2> { typedef u16 type; };
template <int SIZE> struct qc_word<SIZE, 1> { typedef u8 type; };
template <typename T, int V> union qc_access {
  typedef typename qc_word<sizeof(T), V * sizeof(T)>::type word;
  qc_vec<T, V> vec;
  word words[V * sizeof(T) / sizeof(word)];
};

/* Addresses are integers, as in the arguments. V elements are 1, 2, 4, 8 or 16 bytes, aligned to as many. streamed: the data is
   not expected to be read soon. */
template <typename T, int V> Q_FN qc_vec<T, V> qc_load(u64 from) {
  qc_access<T, V> x;
  qc_ld(from, x.words);
  return x.vec;
}
template <typename T, int V> Q_FN void qc_store(u64 to, qc_vec<T, V> vec, bool streamed) {
  qc_access<T, V> x;
  x.vec = vec;
  if (streamed) qc_st_cs(to, x.words);
  else qc_st(to, x.words);
}
template <typename T> Q_FN T qc_load1(u64 from) { return qc_load<T, 1>(from).at[0]; }
template <typename T> Q_FN void qc_store1(u64 to, T x, bool streamed) {
  qc_vec<T, 1> vec = {{x}};
  qc_store(to, vec, streamed);
}

/* ---- Select ---- */

#define Q_SELECT(X) \
  Q_FN X q_sel_##X(bool m, X a, X b) { return m ? a : b; }
Q_SELECT(i8) Q_SELECT(i16) Q_SELECT(i32) Q_SELECT(i64)
Q_SELECT(u8) Q_SELECT(u16) Q_SELECT(u32) Q_SELECT(u64)
Q_SELECT(f32) Q_SELECT(f64)
#undef Q_SELECT

/* ---- Bit casts, sign, NaN ---- */

#define Q_CANON_NAN_f32 0x7fc00000u
#define Q_CANON_NAN_f64 0x7ff8000000000000ull

Q_FN u32 q_raw_f32(f32 x) { return __float_as_uint(x); }
Q_FN f32 q_from_f32(u32 x) { return __uint_as_float(x); }
Q_FN u64 q_raw_f64(f64 x) { return (u64)__double_as_longlong(x); }
Q_FN f64 q_from_f64(u64 x) { return __longlong_as_double((i64)x); }

/* F: float type; U, I: its unsigned and its signed type; SIGN: its sign bit.
   bits gives the canonical NaN for any NaN, raw the bits as they are; sign operations are integer operations. To signbit and copysign
   a NaN is positive; raw_signbit and raw_copysign take its sign bit as it is. */
#define Q_FLOAT_BITS(F, U, I, SIGN, MINUS_INFINITY)                                                           \
  Q_FN U q_bits_##F(F x) { return x == x ? q_raw_##F(x) : (U)Q_CANON_NAN_##F; }                               \
  Q_FN F q_canon_##F(F x) { return q_from_##F(q_bits_##F(x)); }                                               \
  Q_FN F q_neg_##F(F x) { return q_from_##F(q_raw_##F(x) ^ (SIGN)); }                                         \
  Q_FN F q_abs_##F(F x) { return q_from_##F(q_raw_##F(x) & ~(SIGN)); }                                        \
  Q_FN F q_copysign_##F(F x, F y) { return q_from_##F((q_raw_##F(x) & ~(SIGN)) | (q_bits_##F(y) & (SIGN))); } \
  /* Of all bits with the sign set, as signed integers, only those of NaNs are above -infinity's. */          \
  Q_FN bool q_signbit_##F(F x) { return (I)q_raw_##F(x) <= (I)(MINUS_INFINITY); }                             \
  Q_FN bool q_raw_signbit_##F(F x) { return (I)q_raw_##F(x) < 0; }                                            \
  Q_FN F q_raw_copysign_##F(F x, F y) { return q_from_##F((q_raw_##F(x) & ~(SIGN)) | (q_raw_##F(y) & (SIGN))); }
Q_FLOAT_BITS(f32, u32, i32, 0x80000000u, 0xff800000u)
Q_FLOAT_BITS(f64, u64, i64, 0x8000000000000000ull, 0xfff0000000000000ull)
#undef Q_FLOAT_BITS

/* ---- Maximum and minimum of floats: NaN propagates, -0 < +0 ---- */

/* Equal values differ at most in the sign of a zero: oring the bits takes -0, anding them +0. */
#define Q_MINMAX(F)                                                                   \
  Q_FN F q_max_##F(F a, F b) {                                                        \
    F number = a > b ? a : a < b ? b : q_from_##F(q_raw_##F(a) & q_raw_##F(b));       \
    return a == a && b == b ? number : q_from_##F(Q_CANON_NAN_##F);                   \
  }                                                                                   \
  Q_FN F q_min_##F(F a, F b) {                                                        \
    F number = a < b ? a : a > b ? b : q_from_##F(q_raw_##F(a) | q_raw_##F(b));       \
    return a == a && b == b ? number : q_from_##F(Q_CANON_NAN_##F);                   \
  }
Q_MINMAX(f64)
#if defined(QC_SM_80)
Q_FN f32 q_max_f32(f32 a, f32 b) { return qc_max_f32(a, b); }
Q_FN f32 q_min_f32(f32 a, f32 b) { return qc_min_f32(a, b); }
#else
Q_MINMAX(f32)
#endif
#undef Q_MINMAX

/* ---- Rounding to integral values, square root, fused multiply-add ---- */

/* The builtins are single instructions, not calls: cvt.rni and so on. */

Q_FN f32 q_rint_f32(f32 x) { return rintf(x); }
Q_FN f64 q_rint_f64(f64 x) { return rint(x); }
Q_FN f32 q_floor_f32(f32 x) { return floorf(x); }
Q_FN f64 q_floor_f64(f64 x) { return floor(x); }
Q_FN f32 q_ceil_f32(f32 x) { return ceilf(x); }
Q_FN f64 q_ceil_f64(f64 x) { return ceil(x); }
Q_FN f32 q_trunc_f32(f32 x) { return truncf(x); }
Q_FN f64 q_trunc_f64(f64 x) { return trunc(x); }
Q_FN f32 q_sqrt_f32(f32 x) { return __fsqrt_rn(x); }
Q_FN f64 q_sqrt_f64(f64 x) { return __dsqrt_rn(x); }
Q_FN f32 q_fma_f32(f32 a, f32 b, f32 c) { return __fmaf_rn(a, b, c); }
Q_FN f64 q_fma_f64(f64 a, f64 b, f64 c) { return __fma_rn(a, b, c); }

/* ---- Integers: everything wraps, nothing is undefined ---- */

/* X: the type, U: unsigned of its width, W: what arithmetic is done in (never a signed type, never promoted to one), BITS: its
   width. The *c shifts take a count known to be inside the width; the others give 0 (or the sign) for any other count. */
#define Q_INTEGER(X, U, W, BITS)                                           \
  Q_FN X q_add_##X(X a, X b) { return (X)((W)a + (W)b); }                  \
  Q_FN X q_sub_##X(X a, X b) { return (X)((W)a - (W)b); }                  \
  Q_FN X q_mul_##X(X a, X b) { return (X)((W)a * (W)b); }                  \
  Q_FN X q_neg_##X(X a) { return (X)((W)0 - (W)a); }                       \
  Q_FN X q_max_##X(X a, X b) { return a > b ? a : b; }                     \
  Q_FN X q_min_##X(X a, X b) { return a < b ? a : b; }                     \
  Q_FN X q_shlc_##X(X a, X n) { return (X)((W)a << ((W)n & (BITS - 1))); } \
  Q_FN X q_shrc_##X(X a, X n) { return (X)(a >> ((W)n & (BITS - 1))); }    \
  Q_FN X q_shl_##X(X a, X n) { return (U)n < BITS ? q_shlc_##X(a, n) : (X)0; }
Q_INTEGER(i8, u8, u32, 8)
Q_INTEGER(i16, u16, u32, 16)
Q_INTEGER(i32, u32, u32, 32)
Q_INTEGER(i64, u64, u64, 64)
Q_INTEGER(u8, u8, u32, 8)
Q_INTEGER(u16, u16, u32, 16)
Q_INTEGER(u32, u32, u32, 32)
Q_INTEGER(u64, u64, u64, 64)
#undef Q_INTEGER

/* Truncating division. x / 0 = 0 and x rem 0 = 0; MIN / -1 wraps to MIN with remainder 0. */
#define Q_INTEGER_SIGNED(X, U, BITS)                                                            \
  Q_FN X q_abs_##X(X a) { return a < 0 ? q_neg_##X(a) : a; }                                    \
  Q_FN X q_shr_##X(X a, X n) { return q_shrc_##X(a, (U)n < BITS ? n : (X)(BITS - 1)); }         \
  Q_FN X q_count_bits_##X(X a) { return (X)(BITS == 64 ? __popcll((U)a) : __popc((u32)(U)a)); } \
  Q_FN X q_quot_##X(X a, X b) {                                                                 \
    X q = (X)(a / (b == 0 || b == -1 ? (X)1 : b));                                              \
    return b == 0 ? (X)0 : b == -1 ? q_neg_##X(a) : q;                                          \
  }                                                                                             \
  Q_FN X q_rem_##X(X a, X b) { return b == 0 || b == -1 ? (X)0 : (X)(a % (b == 0 || b == -1 ? (X)1 : b)); }
Q_INTEGER_SIGNED(i8, u8, 8)
Q_INTEGER_SIGNED(i16, u16, 16)
Q_INTEGER_SIGNED(i32, u32, 32)
Q_INTEGER_SIGNED(i64, u64, 64)
#undef Q_INTEGER_SIGNED

#define Q_INTEGER_UNSIGNED(X, BITS)                                                       \
  Q_FN X q_abs_##X(X a) { return a; }                                                     \
  Q_FN X q_shr_##X(X a, X n) { return n < BITS ? q_shrc_##X(a, n) : (X)0; }               \
  Q_FN X q_count_bits_##X(X a) { return (X)(BITS == 64 ? __popcll(a) : __popc((u32)a)); } \
  Q_FN X q_quot_##X(X a, X b) { return b ? (X)(a / (b ? b : (X)1)) : (X)0; }              \
  Q_FN X q_rem_##X(X a, X b) { return b ? (X)(a % (b ? b : (X)1)) : (X)0; }
Q_INTEGER_UNSIGNED(u8, 8)
Q_INTEGER_UNSIGNED(u16, 16)
Q_INTEGER_UNSIGNED(u32, 32)
Q_INTEGER_UNSIGNED(u64, 64)
#undef Q_INTEGER_UNSIGNED

/* The greatest common divisor, without a sign (that of MIN and MIN or 0 wraps to MIN): Euclid's. */
#define Q_GCD(X, U, W)                          \
  Q_FN X q_gcd_##X(X x, X y) {                  \
    W a = (U)q_abs_##X(x), b = (U)q_abs_##X(y); \
    while (b != 0) {                            \
      const W rest = a % b;                     \
      a = b;                                    \
      b = rest;                                 \
    }                                           \
    return (X)a;                                \
  }
Q_GCD(i8, u8, u32)
Q_GCD(i16, u16, u32)
Q_GCD(i32, u32, u32)
Q_GCD(i64, u64, u64)
Q_GCD(u8, u8, u32)
Q_GCD(u16, u16, u32)
Q_GCD(u32, u32, u32)
Q_GCD(u64, u64, u64)
#undef Q_GCD

/* ---- Remainder of floats ---- */

/* x less its quotient by y, truncated, times y: exact, with the sign of x, C's fmod. Long division of the significands: each
   step takes 64 - DIGITS bits of the quotient, the room that a remainder of DIGITS bits leaves in a u64. The last remainder
   counts units in the last place of y. */
#define Q_REM_FLOAT(F, U, DIGITS, INFINITE, MULTIPLY)                                                         \
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
    return q_from_##F(q_raw_##F(MULTIPLY((F)(i64)rest, q_from_##F(unit))) | sign);                            \
  }
Q_REM_FLOAT(f32, u32, 24, 0x7f800000u, __fmul_rn)
Q_REM_FLOAT(f64, u64, 53, 0x7ff0000000000000ull, __dmul_rn)
#undef Q_REM_FLOAT

/* ---- Casts ---- */

/* q_cast_A_B for every ordered pair of bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 (bool, f16, bf16 in their storage
   types). Each rounds once from the exact value, ties to even; a NaN result is the canonical one of its format; float to
   integer truncates, saturates and takes NaN to 0; integers wrap; to bool is != 0. */

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
Q_FN f32 q_cast_bool_f32(bool_s x) { return x != 0 ? 1.0f : 0.0f; }
Q_FN f64 q_cast_bool_f64(bool_s x) { return x != 0 ? 1.0 : 0.0; }

/* ---- Between floats ---- */

Q_FN f64 q_cast_f32_f64(f32 x) { return q_canon_f64((f64)x); }
Q_FN f32 q_cast_f64_f32(f64 x) { return q_canon_f32(__double2float_rn(x)); }

Q_FN f16_s q_cast_f32_f16(f32 x) { return q_sel_u16(x == x, qc_f16_s_of_f32(x), 0x7e00); }
#if defined(QC_SM_80)
Q_FN bf16_s q_cast_f32_bf16(f32 x) { return q_sel_u16(x == x, qc_bf16_s_of_f32(x), 0x7fc0); }
#else
/* Half a unit of the last bit that is kept is added, or one less if that bit is 0. */
Q_FN bf16_s q_cast_f32_bf16(f32 x) {
  const u32 bits = q_raw_f32(x);
  return x == x ? (bf16_s)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) : (bf16_s)0x7fc0;
}
#endif
Q_FN f32 q_cast_f16_f32(f16_s x) { return q_canon_f32(qc_f32_of_f16_s(x)); }
/* A NaN keeps its sign. */
Q_FN f32 q_f16_f32(f16_s x) { return q_from_f32((q_raw_f32(qc_f32_of_f16_s(x)) & 0x7fffffffu) | (u32)(x & 0x8000) << 16); }
Q_FN f32 q_cast_bf16_f32(bf16_s x) { return q_canon_f32(q_from_f32((u32)x << 16)); }

/* From types wider than f32 to a half: through an f32 rounded to odd, that is towards zero, with the lowest bit set if the result is
   inexact. 24 bits are enough for both halves (11 and 8, and two more); below f32's normal numbers a bf16 still has 16 bits
   less. */
#define Q_ODD(A, TO_F32)                                  \
  Q_FN f32 q_odd_##A(A x) {                               \
    f32 y = TO_F32(x);                                    \
    return (A)y == x ? y : q_from_f32(q_raw_f32(y) | 1u); \
  }
Q_ODD(f64, __double2float_rz)
Q_ODD(i32, __int2float_rz)
Q_ODD(u32, __uint2float_rz)
Q_ODD(i64, __ll2float_rz)
Q_ODD(u64, __ull2float_rz)
#undef Q_ODD
#define Q_CAST_WIDE(A)                                                      \
  Q_FN f16_s q_cast_##A##_f16(A x) { return q_cast_f32_f16(q_odd_##A(x)); } \
  Q_FN bf16_s q_cast_##A##_bf16(A x) { return q_cast_f32_bf16(q_odd_##A(x)); }
Q_CAST_WIDE(f64) Q_CAST_WIDE(i32) Q_CAST_WIDE(u32) Q_CAST_WIDE(i64) Q_CAST_WIDE(u64)
#undef Q_CAST_WIDE

/* ---- Integer to float ---- */

#define Q_CAST_TO_FLOAT(A, TO_F32, TO_F64)             \
  Q_FN f32 q_cast_##A##_f32(A x) { return TO_F32(x); } \
  Q_FN f64 q_cast_##A##_f64(A x) { return TO_F64(x); }
Q_CAST_TO_FLOAT(i8, __int2float_rn, __int2double_rn)
Q_CAST_TO_FLOAT(i16, __int2float_rn, __int2double_rn)
Q_CAST_TO_FLOAT(i32, __int2float_rn, __int2double_rn)
Q_CAST_TO_FLOAT(i64, __ll2float_rn, __ll2double_rn)
Q_CAST_TO_FLOAT(u8, __uint2float_rn, __uint2double_rn)
Q_CAST_TO_FLOAT(u16, __uint2float_rn, __uint2double_rn)
Q_CAST_TO_FLOAT(u32, __uint2float_rn, __uint2double_rn)
Q_CAST_TO_FLOAT(u64, __ull2float_rn, __ull2double_rn)
#undef Q_CAST_TO_FLOAT

/* ---- Float to integer ---- */

/* To 8 and 16 bits by way of 32. NaN is 0 already between f32 and 32 bits. */
Q_FN i32 q_cast_f32_i32(f32 x) { return qc_i32_of_f32(x); }
Q_FN u32 q_cast_f32_u32(f32 x) { return qc_u32_of_f32(x); }
Q_FN i32 q_cast_f64_i32(f64 x) { return q_sel_i32(x == x, qc_i32_of_f64(x), 0); }
Q_FN u32 q_cast_f64_u32(f64 x) { return q_sel_u32(x == x, qc_u32_of_f64(x), 0); }
#define Q_CAST_TRUNC(F)                                                                                    \
  Q_FN i64 q_cast_##F##_i64(F x) { return q_sel_i64(x == x, qc_i64_of_##F(x), 0); }                        \
  Q_FN u64 q_cast_##F##_u64(F x) { return q_sel_u64(x == x, qc_u64_of_##F(x), 0); }                        \
  Q_FN i8 q_cast_##F##_i8(F x) { return (i8)q_max_i32(q_min_i32(q_cast_##F##_i32(x), 127), -128); }        \
  Q_FN i16 q_cast_##F##_i16(F x) { return (i16)q_max_i32(q_min_i32(q_cast_##F##_i32(x), 32767), -32768); } \
  Q_FN u8 q_cast_##F##_u8(F x) { return (u8)q_min_u32(q_cast_##F##_u32(x), 255); }                         \
  Q_FN u16 q_cast_##F##_u16(F x) { return (u16)q_min_u32(q_cast_##F##_u32(x), 65535); }
Q_CAST_TRUNC(f32)
Q_CAST_TRUNC(f64)
#undef Q_CAST_TRUNC

/* ---- By way of f32, which holds every half and every integer of 16 bits ---- */

#define Q_CAST_VIA_F32(A, B, STORE_A, STORE_B) \
  Q_FN STORE_B q_cast_##A##_##B(STORE_A x) { return q_cast_f32_##B(q_cast_##A##_f32(x)); }
#define Q_CAST_HALF(A, STORE_A)                                                                                \
  Q_CAST_VIA_F32(A, i8, STORE_A, i8) Q_CAST_VIA_F32(A, i16, STORE_A, i16) Q_CAST_VIA_F32(A, i32, STORE_A, i32) \
  Q_CAST_VIA_F32(A, i64, STORE_A, i64) Q_CAST_VIA_F32(A, u8, STORE_A, u8) Q_CAST_VIA_F32(A, u16, STORE_A, u16) \
  Q_CAST_VIA_F32(A, u32, STORE_A, u32) Q_CAST_VIA_F32(A, u64, STORE_A, u64) Q_CAST_VIA_F32(A, f64, STORE_A, f64)
Q_CAST_HALF(f16, f16_s)
Q_CAST_HALF(bf16, bf16_s)
Q_CAST_VIA_F32(f16, bf16, f16_s, bf16_s)
Q_CAST_VIA_F32(bf16, f16, bf16_s, f16_s)
Q_CAST_VIA_F32(i8, f16, i8, f16_s) Q_CAST_VIA_F32(i8, bf16, i8, bf16_s)
Q_CAST_VIA_F32(i16, f16, i16, f16_s) Q_CAST_VIA_F32(i16, bf16, i16, bf16_s)
Q_CAST_VIA_F32(u8, f16, u8, f16_s) Q_CAST_VIA_F32(u8, bf16, u8, bf16_s)
Q_CAST_VIA_F32(u16, f16, u16, f16_s) Q_CAST_VIA_F32(u16, bf16, u16, bf16_s)
#undef Q_CAST_HALF
#undef Q_CAST_VIA_F32

#endif
