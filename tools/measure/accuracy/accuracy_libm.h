/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_libm.h: libm's functions of f64, several at a time where glibc has them so: 2^32 points of an op take a minute
 * instead of ten. */
#ifndef QUERN_TESTS_ACCURACY_LIBM_H
#define QUERN_TESTS_ACCURACY_LIBM_H

/* y[i] = f(x[i]) for i in [0, n), n a multiple of 4, to 4 ULPs of f64, special values and signs of zeros left aside. 0: f is not
 * known, or this machine cannot; y is as it was. */
int accuracy_libm(double (*f)(double), int n, const float *x, double *y);

/* The same, good to 2^-48 of the results, of doubles, in place: x[i] = f(x[i]); and of pairs: z[i] = f(x, y[i]). */
int accuracy_libm_doubles(double (*f)(double), int n, double *x);
int accuracy_libm_pairs(double (*f)(double, double), int n, double x, const double *y, double *z);

#endif /* QUERN_TESTS_ACCURACY_LIBM_H */
