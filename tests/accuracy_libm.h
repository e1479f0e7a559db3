/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_libm.h: libm's functions of f64, several at a time where glibc has them so: 2^32 points of an op take a minute
 * instead of ten. */
#ifndef QUERN_TESTS_ACCURACY_LIBM_H
#define QUERN_TESTS_ACCURACY_LIBM_H

/* y[i] = f(x[i]) for i in [0, n), n a multiple of 4, to 4 ULPs of f64, special values and signs of zeros left aside. 0: f is not
 * known, or this machine cannot; y is as it was. */
int accuracy_libm(double (*f)(double), int n, const float *x, double *y);

#endif /* QUERN_TESTS_ACCURACY_LIBM_H */
