/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_subject.c: every primitive and cast of templates/c/headers/kernel.h as a plain loop over arrays, with a table of them.
 * t010-kernel-primitives.sh builds one shared object per compiler, level and optimisation; t010-kernel-primitives.c compares
 * them. */
#include "../../../templates/c/headers/kernel.h"

#include "kernel_subject.h"

/* The loops have the shape of generated kernels: pointers that may coincide, unaligned types, the ivdep pragma. */
#define LOOP(NAME, EXPRESSION, R, PARAMETERS)                                         \
  static void run_##NAME(const void *a, const void *b, const void *c, void *y, i64 n) { \
    Q_KERNEL_ENTRY;                                                                   \
    PARAMETERS(a, b, c)                                                               \
    Q_IVDEP                                                                           \
    for (i64 i = 0; i < n; i++) ((R##_u *)y)[i] = EXPRESSION;                         \
  }
#define USES(a, b, c) (void)a, (void)b, (void)c;
#define A(X) ((const X##_u *)a)[i]
#define B(X) ((const X##_u *)b)[i]
#define C(X) ((const X##_u *)c)[i]

#define UNARY(OP, X, R) LOOP(OP##_##X, q_##OP##_##X(A(X)), R, USES)
#define BINARY(OP, X, R) LOOP(OP##_##X, q_##OP##_##X(A(X), B(X)), R, USES)
#define TERNARY(OP, X, R) LOOP(OP##_##X, q_##OP##_##X(A(X), B(X), C(X)), R, USES)
#define FROM(OP, X, U) LOOP(OP##_##X, q_##OP##_##X(A(U)), X, USES)
#define SELECT(OP, X, M) LOOP(OP##_##X, q_##OP##_##X(A(M), B(X), C(X)), X, USES)

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
#define CAST_LOOP(P, Q, SP, SQ) CAST_LOOP_(P, Q, SP, SQ)
#define CAST_LOOP_(P, Q, SP, SQ) LOOP(cast_##P##_##Q, q_cast_##P##_##Q(A(SP)), SQ, USES)
#define CAST(P, Q) CAST_LOOP(P, Q, P##_store, Q##_store)

#include "kernel_subject.def"

#undef UNARY
#undef BINARY
#undef TERNARY
#undef FROM
#undef SELECT
#undef CAST
#define UNARY(OP, X, R) {#OP, #X, "", "", #R, run_##OP##_##X, __LINE__},
#define BINARY(OP, X, R) {#OP, #X, #X, "", #R, run_##OP##_##X, __LINE__},
#define TERNARY(OP, X, R) {#OP, #X, #X, #X, #R, run_##OP##_##X, __LINE__},
#define FROM(OP, X, U) {#OP, #U, "", "", #X, run_##OP##_##X, __LINE__},
#define SELECT(OP, X, M) {#OP, #M, #X, #X, #X, run_##OP##_##X, __LINE__},
#define CAST(P, Q) {"cast", #P, "", "", #Q, run_cast_##P##_##Q, __LINE__},

static void run_convert_f16_f32(const void *a, const void *b, const void *c, void *y, i64 n) {
  USES(a, b, c) q_convert_f16_f32(a, y, n);
}
static void run_convert_f32_f16(const void *a, const void *b, const void *c, void *y, i64 n) {
  USES(a, b, c) q_convert_f32_f16(a, y, n);
}
static void run_widen_f16_f32(const void *a, const void *b, const void *c, void *y, i64 n) {
  USES(a, b, c) q_widen_f16_f32(a, y, n);
}
static void run_narrow_f32_f16(const void *a, const void *b, const void *c, void *y, i64 n) {
  USES(a, b, c) q_narrow_f32_f16(a, y, n);
}

static const subject_loop loops[] = {
#include "kernel_subject.def"
  {"convert", "f16", "", "", "f32", run_convert_f16_f32, 0},
  {"convert", "f32", "", "", "f16", run_convert_f32_f16, 0},
  {"widen", "f16", "", "", "f32", run_widen_f16_f32, 0},
  {"narrow", "f32", "", "", "f16", run_narrow_f32_f16, 0},
};

static void stream(const char *src, char *dst, i64 bytes) { q_stream(src, dst, bytes); }
static void transpose_1(const char *src, i64 ss, char *dst, i64 ds, i64 n0, i64 n1) { q_transpose_1(src, ss, dst, ds, n0, n1); }
static void transpose_2(const char *src, i64 ss, char *dst, i64 ds, i64 n0, i64 n1) { q_transpose_2(src, ss, dst, ds, n0, n1); }
static void transpose_4(const char *src, i64 ss, char *dst, i64 ds, i64 n0, i64 n1) { q_transpose_4(src, ss, dst, ds, n0, n1); }
static void transpose_8(const char *src, i64 ss, char *dst, i64 ds, i64 n0, i64 n1) { q_transpose_8(src, ss, dst, ds, n0, n1); }

const subject kernel_subject = {
  loops, sizeof loops / sizeof loops[0], q_selftest, stream, {transpose_1, transpose_2, transpose_4, transpose_8},
};
