/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_error.h: a result beside the exact one that MPFR has, in ULPs. */
#ifndef QUERN_TESTS_ACCURACY_ERROR_H
#define QUERN_TESTS_ACCURACY_ERROR_H

#include <mpfr.h>

#include "ref.h"

/* Digits of a float dtype, and exponents: of its least subnormal, and the first beyond its largest binade. */
typedef struct accuracy_format {
  int digits, bottom, top;
} accuracy_format;

accuracy_format accuracy_format_of(ref_dtype d);

/* The bits of x in a float dtype. */
uint64_t accuracy_bits(ref_dtype d, double x);

/* |got - exact| in ULPs of exact, or of `least` where that is larger; a NaN must be the one NaN, a zero must have exact's sign:
 * infinite where it is not. exact is lost. */
double accuracy_error(ref_dtype d, uint64_t got, mpfr_ptr exact, double least);

/* n numbers as text, "0x1p+0, 0x1.8p+0"; returned. */
char *accuracy_text(const double *x, int n, char *text, int size);

#endif /* QUERN_TESTS_ACCURACY_ERROR_H */
