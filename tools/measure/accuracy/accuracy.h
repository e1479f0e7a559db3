/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy.h: the errors of an op's results, in ULPs, over all points of its dtype or over hard and random ones. t300 tests
 * them, and ACCURACY.md is written from them. Any op of ref.c is measured, against its 113 bits;
 * those with a row in accuracy_functions.c against MPFR, or double-precision libm where that will do. */
#ifndef QUERN_TESTS_ACCURACY_H
#define QUERN_TESTS_ACCURACY_H

#include "ref.h"

/* How much is done. Nothing but n_threads depends on the machine: the same effort finds the same points. */
typedef struct accuracy_effort {
  uint64_t f32_step;  /* of the 2^32 inputs of f32, one of this many: 1 for all */
  uint32_t half_step; /* of the 2^16 first operands of pairs of f16 or bf16, all second ones of one of this many */
  int n_random, n_pairs, n_pairs_f32; /* points of f64; other tuples; those of f32 where double will do */
  int n_threads;
} accuracy_effort;

extern const accuracy_effort accuracy_sample, accuracy_brief, accuracy_full; /* brief: under sanitizers */

typedef struct accuracy {
  ref_op op;
  ref_dtype d;
  double worst;           /* ULPs; infinite where a NaN, an infinity or a sign is wrong */
  uint64_t x[REF_MAX_INPUTS], got; /* there */
  long long n, n_bad;     /* points; those beyond the declared bound */
  int is_complete;        /* n is all there are */
  const char *reference;
} accuracy;

/* Why there is nothing to measure of an op in a float dtype: a sentence, or NULL. */
const char *accuracy_excuse(ref_op op, ref_dtype d);

/* What is declared: of f16 and bf16, which are rounded from f32, that rounding and a little. */
double accuracy_declared(ref_op op, ref_dtype d);

/* Measures; bails out where a call fails. accuracy_excuse(op, d) is NULL. */
accuracy accuracy_measure(ref_op op, ref_dtype d, const accuracy_effort *effort);

/* The error at one point. */
double accuracy_at(ref_op op, ref_dtype d, const double *x);

/* Spoils n results of pairs of f16 or bf16 (next numbers, signs, NaNs, infinities); how many of them accuracy_measure would pass
 * over. -1: it does not take all pairs of this op. */
int accuracy_overlooked(ref_op op, ref_dtype d, int n);

/* The point of the worst as text, "0x1.8p+0, 0x1p-3"; returned. */
char *accuracy_place(const accuracy *a, char *text, int size);

#endif /* QUERN_TESTS_ACCURACY_H */
