/* SPDX-License-Identifier: Apache-2.0
 *
 * op_traits.h: what expressions and derivatives need to know of an op, beyond what its calls do. */
#ifndef QN_OP_TRAITS_H
#define QN_OP_TRAITS_H

#include <string.h>

#include "core/base/kernel_abi.h"

typedef struct qn_op_traits {
  const char *refusal;    /* the reason why it cannot be part of an expression, as a phrase; NULL: it can */
  uint8_t is_limit;       /* the reason is a limit of this version: the error is UNSUPPORTED, not SYNTAX */
  uint8_t looks_at_sign;  /* its formula sees the sign bit of a float, of a NaN too */
  uint8_t fraction_in;    /* bit k: a negative input k makes the result of integers a fraction; literals are computed so */
  /* Of a backward op. reads: for each of its inputs, the index of the forward op's input that it is, or QN_READS_*. by: for each
   * of its outputs, the index of the forward op's input of which it is the gradient. */
  uint8_t is_backward, reads[QN_MAX_OPERANDS], by[QN_MAX_OUTPUTS];
} qn_op_traits;

#define QN_READS_GRAD 0xff   /* the gradient of the forward op's output */
#define QN_READS_OUTPUT 0xfe /* the forward op's output; ORDER READS of gen/graph/derive.lua */

/* The length of the op's name in a derivative's name, OP_backward; 0: `name` is of no such form. */
static inline size_t qn_length_without_backward(const char *name) {
  static const char end[] = "_backward";
  const size_t n = strlen(name);
  return n >= sizeof end && strcmp(name + n - (sizeof end - 1), end) == 0 ? n - (sizeof end - 1) : 0;
}

#endif
