/* SPDX-License-Identifier: Apache-2.0
 *
 * weak.h: weak numbers (without a dtype) and constant arithmetic on them, with the results of gen/graph/body/expr.lua: wrapping
 * 64-bit integers, and doubles. Of syntax it knows numbers and signs only. To be called in the default
 * floating-point environment. */
#ifndef QN_WEAK_H
#define QN_WEAK_H

#include "core/base/kernel_abi.h"
#include "lang/parse/syntax.h"

/* These return NULL or the error as a phrase. *result may be a or b. */
const char *qn_weak_arithmetic(qn_sign sign, qn_number a, qn_number b, qn_number *result); /* + - * / */
const char *qn_weak_bitwise(qn_sign sign, qn_number a, qn_number b, qn_number *result);    /* & | ^ */
const char *qn_weak_shift(qn_sign sign, qn_number a, qn_number b, qn_number *result);
const char *qn_weak_unary(qn_sign sign, qn_number a, qn_number *result);                   /* - + ~ */

/* The number as a float; of a pattern, its unsigned value. */
qn_number qn_weak_as_float(qn_number number);

/* NaN is true. */
int qn_weak_is_true(qn_number number);

typedef enum qn_weak_fit {
  QN_WEAK_FITS,
  QN_WEAK_FLOAT,   /* a float, but the type is an integer */
  QN_WEAK_TOO_BIG, /* an integer that fits the type neither as a number nor as a bit pattern */
  QN_WEAK_NO_BOOL, /* neither 0 nor 1 */
  QN_WEAK_COMPLEX  /* the type is complex: constants have 8 bytes */
} qn_weak_fit;

/* The number as a constant of a compute type, in the low bytes of *bits. Rounded once to a float type; NaN is
 * canonical. */
qn_weak_fit qn_weak_constant(qn_number number, uint8_t type, uint64_t *bits);

static inline int qn_weak_is_signed(uint8_t type) { return type >= QN_I8 && type <= QN_I64; }

#endif
