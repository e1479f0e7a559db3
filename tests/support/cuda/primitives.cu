/* SPDX-License-Identifier: Apache-2.0
 *
 * primitives.cu: every primitive and cast of templates/cuda/kernel_cuda.h, vectors and the intrinsics that kernels spell themselves,
 * each as a kernel over arrays. t700-cuda-primitives.sh gives it to NVRTC, and with QC_HOST builds a shared object with the table
 * that t700-cuda-primitives.c compares. The two files it includes are found by name: NVRTC is handed their texts. */
#include "kernel_cuda.h"

/* Element i of a, b, c and y; masks and conditions are integers, 0 or all ones, as the C primitives have them. */
#define KERNEL(NAME, EXPRESSION, R)                                                                   \
  extern "C" __global__ void run_##NAME(u64 a, u64 b, u64 c, u64 y, i64 n) {                          \
    (void)a, (void)b, (void)c;                                                                        \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) \
      qc_store1<R>(y + (u64)i * sizeof(R), EXPRESSION, false);                                        \
  }
#define AT(X, p) qc_load1<X>(p + (u64)i * sizeof(X))

#define UNARY(OP, X, R) KERNEL(OP##_##X, q_##OP##_##X(AT(X, a)), R)
#define BINARY(OP, X, R) KERNEL(OP##_##X, q_##OP##_##X(AT(X, a), AT(X, b)), R)
#define TERNARY(OP, X, R) KERNEL(OP##_##X, q_##OP##_##X(AT(X, a), AT(X, b), AT(X, c)), R)
#define FROM(OP, X, U) KERNEL(OP##_##X, q_##OP##_##X(AT(U, a)), X)
#define SELECT(OP, X, M) KERNEL(OP##_##X, q_##OP##_##X(AT(M, a) != 0, AT(X, b), AT(X, c)), X)

#define bool_store bool_s
#define i8_store i8
#define i16_store i16
#define i32_store i32
#define i64_store i64
#define u8_store u8
#define u16_store u16
#define u32_store u32
#define u64_store u64
#define f16_store f16_s
#define bf16_store bf16_s
#define f32_store f32
#define f64_store f64
#define CAST_KERNEL(P, Q, SP, SQ) CAST_KERNEL_(P, Q, SP, SQ)
#define CAST_KERNEL_(P, Q, SP, SQ) KERNEL(cast_##P##_##Q, q_cast_##P##_##Q(AT(SP, a)), SQ)
#define CAST(P, Q) CAST_KERNEL(P, Q, P##_store, Q##_store)

/* The table says mask for condition, and has the C header's second way to compute fma. */
#define q_signbit_f32(x) -(i32)q_signbit_f32(x)
#define q_signbit_f64(x) -(i64)q_signbit_f64(x)
#define q_raw_signbit_f32(x) -(i32)q_raw_signbit_f32(x)
#define q_raw_signbit_f64(x) -(i64)q_raw_signbit_f64(x)
#define q_fma_soft_f32 q_fma_f32
#define q_fma_soft_f64 q_fma_f64

#include "kernel_subject.def"

#define INTRINSICS(F, X)                                  \
  KERNEL(plus_##X, __##F##add_rn(AT(X, a), AT(X, b)), X)  \
  KERNEL(minus_##X, __##F##sub_rn(AT(X, a), AT(X, b)), X) \
  KERNEL(times_##X, __##F##mul_rn(AT(X, a), AT(X, b)), X) \
  KERNEL(over_##X, qc_div_##X(AT(X, a), AT(X, b)), X)     \
  KERNEL(inverse_##X, __##F##rcp_rn(AT(X, a)), X)         \
  KERNEL(times_plus_##X, __##F##add_rn(__##F##mul_rn(AT(X, a), AT(X, b)), AT(X, c)), X)
INTRINSICS(f, f32)
INTRINSICS(d, f64)
KERNEL(umulhi_u32, __umulhi(AT(u32, a), AT(u32, b)), u32)
KERNEL(umulhi_u64, __umul64hi(AT(u64, a), AT(u64, b)), u64)
/* -0.25 gives +0 by way of an integer: no compiler may make a truncation of it. */
KERNEL(there_and_back_f32, q_cast_i32_f32(q_cast_f32_i32(AT(f32, a))), f32)
KERNEL(there_and_back_f64, q_cast_i64_f64(q_cast_f64_i64(AT(f64, a))), f64)

/* V elements at a time; c is what says whether stores are streamed. */
#define COPY(T, V)                                                                                      \
  extern "C" __global__ void copy_##T##_##V(u64 a, u64 c, u64 y, i64 n) {                               \
    for (i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += (i64)gridDim.x * blockDim.x) { \
      qc_vec<T, V> x = qc_load<T, V>(a + (u64)i * sizeof x);                                            \
      qc_vec<T, V> r;                                                                                   \
      for (int k = 0; k < V; k++) r.at[k] = x.at[V - 1 - k];                                            \
      qc_store(y + (u64)i * sizeof x, r, c != 0);                                                       \
    }                                                                                                   \
  }
COPY(u8, 1) COPY(u8, 2) COPY(u8, 4) COPY(u8, 8) COPY(u8, 16)
COPY(u16, 1) COPY(u16, 2) COPY(u16, 4) COPY(u16, 8)
COPY(f32, 1) COPY(f32, 2) COPY(f32, 4)
COPY(f64, 1) COPY(f64, 2)

#if defined(QC_HOST)
#include "kernel_subject.h"

#undef UNARY
#undef BINARY
#undef TERNARY
#undef FROM
#undef SELECT
#undef CAST
#define CALL(NAME) \
  [](const void *a, const void *b, const void *c, void *y, __INT64_TYPE__ n) { run_##NAME((u64)a, (u64)b, (u64)c, (u64)y, n); }, __LINE__
#define UNARY(OP, X, R) {#OP, #X, "", "", #R, CALL(OP##_##X)},
#define BINARY(OP, X, R) {#OP, #X, #X, "", #R, CALL(OP##_##X)},
#define TERNARY(OP, X, R) {#OP, #X, #X, #X, #R, CALL(OP##_##X)},
#define FROM(OP, X, U) {#OP, #U, "", "", #X, CALL(OP##_##X)},
#define SELECT(OP, X, M) {#OP, #M, #X, #X, #X, CALL(OP##_##X)},
#define CAST(P, Q) {"cast", #P, "", "", #Q, CALL(cast_##P##_##Q)},
static const subject_loop loops[] = {
#include "kernel_subject.def"
};
const subject kernel_subject = {loops, sizeof loops / sizeof loops[0], nullptr, nullptr, {}};
#endif
