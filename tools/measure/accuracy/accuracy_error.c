/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_error.c: see accuracy_error.h. */
#include "accuracy_error.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

accuracy_format accuracy_format_of(ref_dtype d) {
  const int digits = ref_digits(d);
  return (accuracy_format){digits, ref_least_exponent(d) - digits + 1, ref_largest_exponent(d) + 1};
}

uint64_t accuracy_bits(ref_dtype d, double x) {
  uint64_t bits = 0;
  if (d == REF_F64) memcpy(&bits, &x, 8);
  else if (d == REF_F32) {
    float narrow = (float)x;
    memcpy(&bits, &narrow, 4);
  } else {
    bits = ref_from_double(d, x);
  }
  return bits;
}

double accuracy_error(ref_dtype d, uint64_t got_bits, mpfr_ptr exact, double least) {
  const accuracy_format format = accuracy_format_of(d), *f = &format;
  double got = (double)ref_value(d, got_bits);
  if (mpfr_nan_p(exact)) return got_bits == ref_nan(d) ? 0 : INFINITY;
  int is_near_zero = mpfr_cmpabs_ui(exact, 0) == 0 ? least > 0 : mpfr_cmp_d(exact, least) < 0 && mpfr_cmp_d(exact, -least) > 0;
  if (got != got || (!signbit(got) != !mpfr_signbit(exact) && !is_near_zero)) return INFINITY;
  if (mpfr_inf_p(exact)) return isinf(got) ? 0 : INFINITY;
  int e = mpfr_zero_p(exact) ? f->bottom : (int)mpfr_get_exp(exact) - 1;
  if (is_near_zero) e = ilogb(least);
  if (e < f->bottom + f->digits - 1) e = f->bottom + f->digits - 1;
  if (e >= f->top) { /* beyond the largest binade: infinity is right, the largest number is as far off as 2^top is */
    if (isinf(got)) return 0;
    return fabs(got) == ldexp(2 - ldexp(1, 1 - f->digits), f->top - 1) ? 1 : INFINITY;
  }
  if (isinf(got)) { /* counts as 2^top */
    mpfr_abs(exact, exact, MPFR_RNDN);
    mpfr_d_sub(exact, ldexp(1, f->top - 1), exact, MPFR_RNDN);
    mpfr_add_d(exact, exact, ldexp(1, f->top - 1), MPFR_RNDN);
  } else {
    mpfr_sub_d(exact, exact, got, MPFR_RNDN);
  }
  mpfr_abs(exact, exact, MPFR_RNDN);
  mpfr_mul_2si(exact, exact, f->digits - 1 - e, MPFR_RNDN);
  return mpfr_get_d(exact, MPFR_RNDU);
}

char *accuracy_text(const double *x, int n, char *text, int size) {
  int at = 0;
  text[0] = 0;
  for (int k = 0; k < n && at < size; k++) at += snprintf(text + at, (size_t)(size - at), "%s%a", k ? ", " : "", x[k]);
  return text;
}
