/* SPDX-License-Identifier: Apache-2.0
 *
 * params.h: a call's parameters, weak numbers, converted to the dtype its kernel computes in. Knows no tensors. */
#ifndef QN_PARAMS_H
#define QN_PARAMS_H

#include "core/base/kernel_abi.h"

/* The words that all parameters take. One of an expression may be used in several dtypes: it is there once for each. */
#define QN_MAX_SLOTS 64

/* A parameter in the dtype in which it is used. */
typedef struct qn_slot {
  uint8_t param, dtype;
} qn_slot;

/* As kernels take them: a parameter's value in the first bytes of its qn_dtype_words words. */
typedef struct qn_params {
  uint64_t slot[QN_MAX_SLOTS];
} qn_params;

/* One number in a dtype, in qn_dtype_words words from `slot` on, or, in QN_B64, an integer modulo 2^64; a scalar of a known kind,
 * C128 only for a complex dtype. Returns what is wrong with it as a phrase ("NaN"), or NULL. */
const char *qn_params_number(const quern_scalar *scalar, uint8_t dtype, uint64_t *slot);

/* Converts the first n_given parameters from `given` and the rest from their defaults. To an integer: saturating; NaN and
 * fractions are refused (DTYPE). To a float: rounded once, one NaN. To bool: != 0. n: how many values there are then: of each
 * parameter one, in `dtype` (slots NULL), or, of an expression, those that `slots` says. */
quern_status qn_params_convert(const quern_op_info *info, uint8_t dtype, int32_t n, const qn_slot *slots, int32_t n_given,
                               const quern_scalar *given, qn_params *params);

#endif
