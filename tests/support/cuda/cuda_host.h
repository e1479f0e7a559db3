/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_host.h: what CUDA text means on a CPU. kernel_cuda.h includes it in place of its PTX where QC_HOST is defined, after its
 * types. Owns CUDA's words, the place of a thread, the barrier, the rounding intrinsics, and a twin for each function of that
 * section: plain code that does what the PTX manual says, NaN payloads included; loads and stores check their alignment and
 * abort. Whoever runs a kernel sets qc_host before each thread (one such object a program or shared object) and its barrier:
 * what switches fibers. Blocks run one after another: __shared__ is static. Compile with -ffp-contract=off. */
#ifndef QUERN_TESTS_CUDA_HOST_H
#define QUERN_TESTS_CUDA_HOST_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__FAST_MATH__) || (defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0)
#error "the twins of CUDA's arithmetic need exact floats"
#endif

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static
#define QC_TWIN static inline __attribute__((unused))

/* ---- Threads ---- */

struct qc_host_dim { unsigned x, y, z; };
struct qc_host_thread {
  qc_host_dim thread, block, block_dim, grid_dim;
  void (*barrier)(void); /* returns when all threads of the block have called it; NULL: a barrier aborts */
  char *shared;          /* the shared memory that the launch has asked for */
  size_t n_shared;
};
extern "C" {
extern qc_host_thread qc_host;
__attribute__((weak)) qc_host_thread qc_host = {{0, 0, 0}, {0, 0, 0}, {1, 1, 1}, {1, 1, 1}, NULL, NULL, 0};
}
#define threadIdx qc_host.thread
#define blockIdx qc_host.block
#define blockDim qc_host.block_dim
#define gridDim qc_host.grid_dim
#define q_shared qc_host.shared

[[noreturn]] QC_TWIN void qc_host_fail(const char *what, u64 at, int bytes) {
  fprintf(stderr, "cuda_host.h: %s of %d bytes at 0x%llx, thread %u %u of block %u %u %u\n", what, bytes, at, threadIdx.x,
          threadIdx.y,
          blockIdx.x, blockIdx.y, blockIdx.z);
  abort();
}
QC_TWIN void __syncthreads() {
  if (!qc_host.barrier) qc_host_fail("a barrier without a scheduler,", 0, 0);
  qc_host.barrier();
}

/* ---- Bits ---- */

template <typename B, typename A> QC_TWIN B qc_host_pun(A x) {
  static_assert(sizeof(A) == sizeof(B), "as many bits");
  B y;
  memcpy(&y, &x, sizeof y);
  return y;
}
QC_TWIN u32 __float_as_uint(f32 x) { return qc_host_pun<u32>(x); }
QC_TWIN f32 __uint_as_float(u32 x) { return qc_host_pun<f32>(x); }
QC_TWIN i64 __double_as_longlong(f64 x) { return qc_host_pun<i64>(x); }
QC_TWIN f64 __longlong_as_double(i64 x) { return qc_host_pun<f64>(x); }
QC_TWIN u32 __umulhi(u32 a, u32 b) { return (u32)((u64)a * b >> 32); }
QC_TWIN u64 __umul64hi(u64 a, u64 b) {
  __extension__ typedef unsigned __int128 u128;
  return (u64)((u128)a * b >> 64);
}

QC_TWIN i32 __popc(u32 x) { return __builtin_popcount(x); }
QC_TWIN i32 __popcll(u64 x) { return __builtin_popcountll(x); }

QC_TWIN f32 qc_abs_f32(f32 x) { return __uint_as_float(__float_as_uint(x) & 0x7fffffffu); }
QC_TWIN f64 qc_abs_f64(f64 x) { return __longlong_as_double(__double_as_longlong(x) & 0x7fffffffffffffffll); }
QC_TWIN i64 qc_multiply_wide(i32 a, i32 b) { return (i64)a * b; }

/* ---- Arithmetic: the device's NaN of f32 is 0x7fffffff ---- */

QC_TWIN f32 qc_host_nan(f32 x) { return x == x ? x : __uint_as_float(0x7fffffffu); }
QC_TWIN f32 __fadd_rn(f32 a, f32 b) { return qc_host_nan(a + b); }
QC_TWIN f32 __fsub_rn(f32 a, f32 b) { return qc_host_nan(a - b); }
QC_TWIN f32 __fmul_rn(f32 a, f32 b) { return qc_host_nan(a * b); }
QC_TWIN f32 __frcp_rn(f32 x) { return qc_host_nan(1.0f / x); }
QC_TWIN f32 qc_div_f32(f32 a, f32 b) { return qc_host_nan(a / b); }
QC_TWIN f32 __fsqrt_rn(f32 x) { return qc_host_nan(sqrtf(x)); }
QC_TWIN f32 __fmaf_rn(f32 a, f32 b, f32 c) { return qc_host_nan(fmaf(a, b, c)); }
QC_TWIN f64 __dadd_rn(f64 a, f64 b) { return a + b; }
QC_TWIN f64 __dsub_rn(f64 a, f64 b) { return a - b; }
QC_TWIN f64 __dmul_rn(f64 a, f64 b) { return a * b; }
QC_TWIN f64 __drcp_rn(f64 x) { return 1.0 / x; }
QC_TWIN f64 qc_div_f64(f64 a, f64 b) { return a / b; }
QC_TWIN f64 __dsqrt_rn(f64 x) { return sqrt(x); }
QC_TWIN f64 __fma_rn(f64 a, f64 b, f64 c) { return fma(a, b, c); }
QC_TWIN f32 qc_max_f32(f32 a, f32 b) { return a != a || b != b ? qc_host_nan(a + b) : a > b || (a == b && !signbit(a)) ? a : b; }
QC_TWIN f32 qc_min_f32(f32 a, f32 b) { return a != a || b != b ? qc_host_nan(a + b) : a < b || (a == b && signbit(a)) ? a : b; }

/* ---- Integer to float, f64 to f32 ---- */

QC_TWIN f32 __int2float_rn(i32 x) { return (f32)x; }
QC_TWIN f32 __uint2float_rn(u32 x) { return (f32)x; }
QC_TWIN f32 __ll2float_rn(i64 x) { return (f32)x; }
QC_TWIN f32 __ull2float_rn(u64 x) { return (f32)x; }
QC_TWIN f64 __int2double_rn(i32 x) { return (f64)x; }
QC_TWIN f64 __uint2double_rn(u32 x) { return (f64)x; }
QC_TWIN f64 __ll2double_rn(i64 x) { return (f64)x; }
QC_TWIN f64 __ull2double_rn(u64 x) { return (f64)x; }
QC_TWIN f32 __double2float_rn(f64 x) { return qc_host_nan((f32)x); }
QC_TWIN f32 __double2float_rz(f64 x) {
  f32 y = (f32)x;
  return fabs((f64)y) > fabs(x) ? nextafterf(y, 0.0f) : qc_host_nan(y);
}
template <typename A> QC_TWIN f32 qc_host_toward_zero(A x) {
  __extension__ typedef __int128 i128;
  f32 y = (f32)x;
  i128 back = (i128)y, exact = (i128)x;
  return (exact < 0 ? back < exact : back > exact) ? nextafterf(y, 0.0f) : y;
}
QC_TWIN f32 __int2float_rz(i32 x) { return qc_host_toward_zero(x); }
QC_TWIN f32 __uint2float_rz(u32 x) { return qc_host_toward_zero(x); }
QC_TWIN f32 __ll2float_rz(i64 x) { return qc_host_toward_zero(x); }
QC_TWIN f32 __ull2float_rz(u64 x) { return qc_host_toward_zero(x); }

/* ---- Float to integer: saturates; NaN gives `nan` ---- */

template <typename B> QC_TWIN B qc_host_truncate(f64 x, B nan) {
  const B most = (B)-1 > 0 ? (B)-1 : (B)~((u64)1 << (8 * sizeof(B) - 1)), least = (B)((u64)most + 1);
  if (x != x) return nan;
  if (x >= (f64)most) return most; /* u64's and i64's most round up to the power of two */
  if (x <= (f64)least) return least;
  return (B)x;
}
QC_TWIN i32 qc_i32_of_f32(f32 x) { return qc_host_truncate<i32>(x, 0); }
QC_TWIN u32 qc_u32_of_f32(f32 x) { return qc_host_truncate<u32>(x, 0); }
QC_TWIN i64 qc_i64_of_f32(f32 x) { return qc_host_truncate<i64>(x, INT64_MIN); }
QC_TWIN u64 qc_u64_of_f32(f32 x) { return qc_host_truncate<u64>(x, (u64)1 << 63); }
QC_TWIN i32 qc_i32_of_f64(f64 x) { return qc_host_truncate<i32>(x, INT32_MIN); }
QC_TWIN u32 qc_u32_of_f64(f64 x) { return qc_host_truncate<u32>(x, (u32)1 << 31); }
QC_TWIN i64 qc_i64_of_f64(f64 x) { return qc_host_truncate<i64>(x, INT64_MIN); }
QC_TWIN u64 qc_u64_of_f64(f64 x) { return qc_host_truncate<u64>(x, (u64)1 << 63); }

/* ---- Halves ---- */

/* To a float of 16 bits with `precision` bits of significand and 2^least its smallest subnormal: an integer multiple of the
   unit there, to nearest even; that integer added to the unit's exponent field is the result's magnitude, also where it
   carries. */
QC_TWIN u16 qc_host_half(f32 x, int precision, int least) {
  const int infinity = (1 << 15) - (1 << (precision - 1));
  const u16 sign = signbit(x) ? 0x8000 : 0;
  if (x != x) return 0x7fff;
  if (isinf(x)) return (u16)(sign | infinity);
  if (x == 0) return sign;
  int unit = ilogbf(x) - (precision - 1);
  if (unit < least) unit = least;
  long bits = ((long)(unit - least) << (precision - 1)) + (long)nearbyint(ldexp(fabs((f64)x), -unit));
  return (u16)(sign | (bits > infinity ? infinity : bits));
}
QC_TWIN f16_s qc_f16_s_of_f32(f32 x) { return qc_host_half(x, 11, -24); }
QC_TWIN bf16_s qc_bf16_s_of_f32(f32 x) { return qc_host_half(x, 8, -133); }
QC_TWIN f32 qc_f32_of_f16_s(f16_s x) {
  int field = x >> 10 & 31, fraction = x & 1023;
  if (field == 31) return fraction ? qc_host_nan(NAN) : x & 0x8000 ? -INFINITY : INFINITY;
  f32 magnitude = field ? ldexpf((f32)(fraction + 1024), field - 25) : ldexpf((f32)fraction, -24);
  return x & 0x8000 ? -magnitude : magnitude;
}

/* ---- Loads and stores ---- */

QC_TWIN void qc_host_aligned(const char *what, u64 at, int bytes) {
  if (at % (u64)bytes) qc_host_fail(what, at, bytes);
}
template <typename T, int N> QC_TWIN void qc_ld(u64 from, T (&x)[N]) {
  qc_host_aligned("an unaligned load", from, sizeof x);
  memcpy(x, (const void *)(uintptr_t)from, sizeof x);
}
template <typename T, int N> QC_TWIN void qc_st(u64 to, const T (&x)[N]) {
  qc_host_aligned("an unaligned store", to, sizeof x);
  memcpy((void *)(uintptr_t)to, x, sizeof x);
}
template <typename T, int N> QC_TWIN void qc_st_cs(u64 to, const T (&x)[N]) { qc_st(to, x); }

#endif
