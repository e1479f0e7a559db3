/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_libm.c: glibc's libmvec by its names in the x86-64 vector ABI (AVX2, four f64); see accuracy_libm.h. */
#include "accuracy_libm.h"

#include <math.h>
#include <stddef.h>

#if defined __x86_64__ && defined __GLIBC__ && __GLIBC_PREREQ(2, 35)
#include <immintrin.h>

typedef __m256d vector_function(__m256d);
extern __m256d _ZGVdN4vv_atan2(__m256d, __m256d);

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

static vector_function *vector_of(double (*f)(double)) {
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    if (functions[k].plain == f) return __builtin_cpu_supports("avx2") ? functions[k].vector : NULL;
  }
  return NULL;
}

__attribute__((target("avx2"))) static void apply(vector_function *f, int n, const float *x, double *y) {
  for (int i = 0; i < n; i += 4) _mm256_storeu_pd(y + i, f(_mm256_cvtps_pd(_mm_loadu_ps(x + i))));
}

int accuracy_libm(double (*f)(double), int n, const float *x, double *y) {
  vector_function *vector = vector_of(f);
  if (n % 4 != 0 || !vector) return 0;
  apply(vector, n, x, y);
  return 1;
}

__attribute__((target("avx2"))) static void apply_in_place(vector_function *f, int n, double *x) {
  for (int i = 0; i < n; i += 4) _mm256_storeu_pd(x + i, f(_mm256_loadu_pd(x + i)));
}

int accuracy_libm_doubles(double (*f)(double), int n, double *x) {
  vector_function *vector = vector_of(f);
  if (n % 4 != 0 || !vector) return 0;
  apply_in_place(vector, n, x);
  return 1;
}

__attribute__((target("avx2"))) static void apply_atan2(int n, double x, const double *y, double *z) {
  for (int i = 0; i < n; i += 4) _mm256_storeu_pd(z + i, _ZGVdN4vv_atan2(_mm256_set1_pd(x), _mm256_loadu_pd(y + i)));
}

int accuracy_libm_pairs(double (*f)(double, double), int n, double x, const double *y, double *z) {
  if (n % 4 != 0 || f != atan2 || !__builtin_cpu_supports("avx2")) return 0;
  apply_atan2(n, x, y, z);
  return 1;
}
#else
int accuracy_libm(double (*f)(double), int n, const float *x, double *y) {
  (void)f, (void)n, (void)x, (void)y;
  return 0;
}

int accuracy_libm_doubles(double (*f)(double), int n, double *x) {
  (void)f, (void)n, (void)x;
  return 0;
}

int accuracy_libm_pairs(double (*f)(double, double), int n, double x, const double *y, double *z) {
  (void)f, (void)n, (void)x, (void)y, (void)z;
  return 0;
}
#endif
