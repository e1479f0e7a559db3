/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_functions.h: what accuracy.c knows of single ops: exact values, and where it is hard to get them. */
#ifndef QUERN_TESTS_ACCURACY_FUNCTIONS_H
#define QUERN_TESTS_ACCURACY_FUNCTIONS_H

#include "accuracy_error.h"
#include "tap.h"

typedef struct accuracy_function {
  ref_op op;
  double (*f1)(double), (*f2)(double, double); /* good to 2^-28 of an f32's ULP */
  int (*m1)(mpfr_ptr, mpfr_srcptr, mpfr_rnd_t), (*m2)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t),
      (*m3)(mpfr_ptr, mpfr_srcptr, mpfr_srcptr, mpfr_srcptr, mpfr_rnd_t);
  double reach;  /* random points are drawn up to this size: beyond it nothing happens; 0: 760 */
  int is_near_1; /* it is at 1 that the result is hard to get */
  void (*draw)(rng *r, const accuracy_format *f, double *x, double *y); /* a pair; NULL: of any sizes */
  /* errors are counted in this number's ULPs where it is larger than the result; normal: the least normal number */
  double (*least)(double x, double y, double normal);
} accuracy_function;

/* The row of an op; one of zeros where it has none. */
const accuracy_function *accuracy_function_of(ref_op op);

/* Point i of one input that no list has: small as often as large. */
double accuracy_draw_one(const accuracy_function *function, uint64_t i, rng *r);

/* A pair, by the row's draw or the general one. */
void accuracy_draw(const accuracy_function *function, rng *r, const accuracy_format *f, double *x, double *y);

/* Where algorithms change: ends of ranges, seams of tables and reductions, zeros, the ends of subnormals. Returns how many. */
#define ACCURACY_MAX_HARD 60000
int accuracy_hard_points(const accuracy_function *function, double *x);

#endif /* QUERN_TESTS_ACCURACY_FUNCTIONS_H */
