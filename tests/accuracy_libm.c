/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_libm.c: glibc's libmvec by its names in the x86-64 vector ABI (AVX2, four f64); see accuracy_libm.h. */
#include "accuracy_libm.h"

#include <math.h>
#include <stddef.h>

#if defined __x86_64__ && defined __GLIBC__ && __GLIBC_PREREQ(2, 35)
#include <immintrin.h>

typedef __m256d vector_function(__m256d);

#define FUNCTIONS(F) \
  F(exp) F(exp2) F(expm1) F(log) F(log2) F(log10) F(log1p) F(sin) F(cos) F(tan) F(asin) F(acos) F(atan) F(sinh) F(cosh) F(tanh) \
  F(asinh) F(acosh) F(atanh) F(erf) F(erfc) F(cbrt)
#define DECLARE(name) extern vector_function _ZGVdN4v_##name;
#define ROW(name) {name, _ZGVdN4v_##name},
FUNCTIONS(DECLARE)

static const struct {
  double (*plain)(double);
  vector_function *vector;
} functions[] = {FUNCTIONS(ROW)};

__attribute__((target("avx2"))) static void apply(vector_function *f, int n, const float *x, double *y) {
  for (int i = 0; i < n; i += 4) _mm256_storeu_pd(y + i, f(_mm256_cvtps_pd(_mm_loadu_ps(x + i))));
}

int accuracy_libm(double (*f)(double), int n, const float *x, double *y) {
  if (n % 4 != 0 || !__builtin_cpu_supports("avx2")) return 0;
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    if (functions[k].plain != f) continue;
    apply(functions[k].vector, n, x, y);
    return 1;
  }
  return 0;
}
#else
int accuracy_libm(double (*f)(double), int n, const float *x, double *y) {
  (void)f, (void)n, (void)x, (void)y;
  return 0;
}
#endif
