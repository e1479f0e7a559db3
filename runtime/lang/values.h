/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h: the values of an expression while they are made: each one once, found again by what it is. Knows no syntax and no
 * rules of dtypes. */
#ifndef QN_VALUES_H
#define QN_VALUES_H

#include "core/op/registry.h"
#include "lang/primitives.h"

#define QN_MAX_VALUES 4096

typedef enum qn_value_kind {
  QN_VALUE_INPUT,
  QN_VALUE_PARAM,
  QN_VALUE_CONSTANT,
  QN_VALUE_OP,
  QN_VALUE_PRIMITIVE
} qn_value_kind;

typedef struct qn_value {
  uint8_t kind;
  uint8_t type;         /* qn_dtype it is computed in; bool for a condition */
  uint8_t dtype;        /* INPUT: the tensor's qn_dtype */
  uint8_t kernel_dtype; /* OP: what its kernels compute in, for what its inputs promote to */
  int32_t index;        /* INPUT, PARAM: which; OP: which of its outputs */
  uint64_t bits;        /* CONSTANT: its bytes, in the low ones; bool: 0 or 1 */
  const quern_op *op;
  const qn_primitive *primitive;
  /* Values args[first_arg ...]: the inputs; then, of an OP, its parameters: CONSTANT, PARAM, or computed from those. */
  int32_t n_args, n_params, first_arg;
} qn_value;

typedef struct qn_typed {
  int32_t n_values, n_args, n_out;
  /* Arguments come before what uses them; each value is made once. Those that no output needs are left out, but for inputs
   * and params: every (param, type) that the expression has is there. */
  qn_value *values;
  int32_t *args;
  int32_t out[QN_MAX_OPERANDS]; /* the value of each output */
  /* qn_dtype that each output has of itself. Not a property of its value: of an f16 input x, x and (f32)x are one value. */
  uint8_t out_dtypes[QN_MAX_OPERANDS];
} qn_typed;

typedef struct qn_values {
  qn_value *values;
  int32_t *args;
  uint16_t *places; /* by hash: a value plus 1; 0: free */
  int32_t n_values, room_values, n_args, room_args;
  uint32_t mask;
  int exceeded; /* QN_MAX_VALUES */
} qn_values;

/* The value like `like` over args[0 ... n_args + n_params), made if there is none; -1: exceeded, or lack of memory. Zero a
 * qn_values before its first use. */
int32_t qn_values_add(qn_values *all, const qn_value *like, const int32_t *args);

/* What the outputs need, all inputs and all params, in the same order: a qn_typed with its values and args in one
 * allocation. out is read as values of `all`. NULL: lack of memory. */
qn_typed *qn_values_keep(const qn_values *all, int32_t n_out, const int32_t *out);

void qn_values_free(qn_values *all);

#endif
