/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_backward.h: the errors of derivatives, in ULPs: each output of each <op>_backward that rounds, against MPFR. t306
 * tests them, and the table of derivatives in ACCURACY.md is written from them. The exact derivative is the one at the inputs
 * given to the kernel. The op's own result may be one of these. */
#ifndef QUERN_TESTS_ACCURACY_BACKWARD_H
#define QUERN_TESTS_ACCURACY_BACKWARD_H

#include "ref.h"

enum { BACKWARD_MAX_IN = 5, BACKWARD_MAX_OUT = 3, BACKWARD_MAX_ROWS = 64 };

/* Row k of 0, 1, ...: the op that it is the derivative of. NULL: there are no more rows. */
const char *backward_op(int k);

/* Of f16 and bf16, which are rounded from f32, that rounding and a little. */
double backward_declared(int k, ref_dtype d);

typedef struct backward_found {
  double worst;                         /* ULPs; infinite where a NaN, an infinity or a sign is wrong */
  double at[BACKWARD_MAX_IN];           /* the inputs there, grad first */
  double got, exact;
} backward_found;

typedef struct backward_accuracy {
  const char *name;
  int n_in, n_out;
  const char *outputs[BACKWARD_MAX_OUT];
  backward_found found[BACKWARD_MAX_OUT];
  long long n, n_bad; /* points; those beyond the declared bound */
  int is_complete;    /* n is all there are, for grad = 1 and another grad */
} backward_accuracy;

/* Measures n_random points beside the hard ones; f16 and bf16 of one input at all, or, of few,
 * at a sixteenth. 0: the library has no such op or dtype. */
int backward_measure(int k, ref_dtype d, int n_random, backward_accuracy *result);

/* The error of one output at one point. */
double backward_at(int k, ref_dtype d, int output, const double *at);

/* The point as text, "0x1p+0, 0x1.8p+0"; returned. */
char *backward_place(const backward_accuracy *a, int output, char *text, int size);

#endif /* QUERN_TESTS_ACCURACY_BACKWARD_H */
