/* SPDX-License-Identifier: Apache-2.0
 *
 * params.h: the conversion of a call's parameters to the dtype in which its kernel computes. Knows no tensors. */
#ifndef QN_PARAMS_H
#define QN_PARAMS_H

#include "core/base/kernel_abi.h"

/* Words of all parameters together. A parameter that an expression uses in several dtypes is stored once for each. */
#define QN_MAX_SLOTS 64

/* A parameter in the dtype in which it is used. */
typedef struct qn_slot {
  uint8_t param, dtype;
} qn_slot;

/* Parameters in the layout of kernels: each value is in the first bytes of its qn_dtype_words words. */
typedef struct qn_params {
  uint64_t slot[QN_MAX_SLOTS];
} qn_params;

/* The words of 8 bytes that a parameter or single value of a dtype takes. */
int32_t qn_dtype_words(uint8_t dtype);

/* Converts one number to a dtype and stores it in qn_dtype_words words from `slot` on; QN_B64 is an integer modulo 2^64. The
 * scalar is of a known kind, C128 only for a complex dtype. Returns an error as a phrase ("NaN"), or NULL. */
const char *qn_params_number(const quern_scalar *scalar, uint8_t dtype, uint64_t *slot);
qn_from_number qn_params_bool, qn_params_integer, qn_params_bits, qn_params_narrow, qn_params_f32, qn_params_f64, qn_params_complex;

/* Converts the first n_given parameters from `given` and the rest from their defaults. To an integer: saturating; NaN and
 * fractions are refused (DTYPE). To a float: rounded once; every NaN becomes the canonical one. To bool: != 0. n: the number of
 * results: one of each parameter, in `dtype` (slots NULL), or those that `slots` lists (an expression). */
quern_status qn_params_convert(const quern_op_info *info, uint8_t dtype, int32_t n, const qn_slot *slots, int32_t n_given,
                               const quern_scalar *given, qn_params *params);

#endif
