/* SPDX-License-Identifier: Apache-2.0
 *
 * values.h: the values of an expression under construction, hash-consed: equal values are one. Knows no syntax and no dtype
 * rules. */
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
  QN_VALUE_PRIMITIVE,
  QN_VALUE_KERNEL, /* `kernel` of a stage of an op that reduces */
  QN_VALUE_REDUCE, /* part `bits` of its arguments, the parts of a state, reduced by `reducer` over the axes number `index` */
  QN_VALUE_SCAN,   /* its argument scanned by `op` over the axes number `index`; kernel_dtype: the promoted dtype; bits: QN_SCAN_... */
  QN_VALUE_INDEX,  /* an i64: the place of an element in its row */
  QN_VALUE_COUNT   /* an i64: the elements that one result is made of, over the axes number `index` */
} qn_value_kind;

#define QN_SCAN_REVERSE 1u
#define QN_SCAN_EXCLUSIVE 2u

typedef struct qn_value {
  uint8_t kind;
  uint8_t type;         /* compute type, a qn_dtype; bool for a condition */
  uint8_t dtype;        /* INPUT: the tensor's qn_dtype */
  uint8_t is_row;       /* INPUT of a stage: a value of the row */
  uint8_t kernel_dtype; /* OP: the kernel dtype for the promoted dtype of its inputs */
  uint8_t takes_none;   /* REDUCE: see qn_row_reduce */
  int32_t index;        /* of the INPUT or PARAM; OP, KERNEL: of the output */
  uint64_t bits;        /* CONSTANT: its bits, in the low bytes; bool: 0 or 1. KERNEL: the number of its outputs. INPUT of a stage: 1 if it is
                           the result of a reduction or a scan */
  const quern_op *op;   /* OP, KERNEL, SCAN */
  const qn_primitive *primitive;
  const qn_variant *kernel;
  const struct qn_reducer *reducer;
  /* COUNT, REDUCE of a derivative or of places: its axes count dimensions of these inputs, as bits. Else 0: of those that its arguments
   * depend on. elements: of such a REDUCE, a set of inputs; one of them must have all elements along the axes. */
  uint32_t inputs, elements;
  /* Values args[first_arg ...]: the inputs; then the parameters of an OP or KERNEL: CONSTANT, PARAM, COUNT,
   * or computed from those. */
  int32_t n_args, n_params, first_arg;
} qn_value;

typedef struct qn_typed {
  int32_t n_values, n_args, n_out;
  /* Arguments come before their users; equal values are one. Values that no output needs are left out, except inputs
   * and params: every (param, type) of the expression is there. */
  qn_value *values;
  int32_t *args;
  int32_t out[QN_MAX_OPERANDS]; /* the value of each output */
  /* The inferred qn_dtype of each output. Not a property of its value: for an f16 input x, x and (f32)x are one value. */
  uint8_t out_dtypes[QN_MAX_OPERANDS];
} qn_typed;

typedef struct qn_values {
  qn_value *values;
  int32_t *args;
  uint16_t *table;  /* hash table: index of a value plus 1; 0: free */
  int32_t n_values, room_values, n_args, room_args;
  uint32_t mask;
  int exceeded; /* QN_MAX_VALUES */
} qn_values;

/* Finds or makes the value equal to `like` over args[0 ... n_args + n_params); -1: exceeded, or out of memory. A qn_values must
 * be zeroed before its first use. */
int32_t qn_values_add(qn_values *all, const qn_value *like, const int32_t *args);

/* Makes a qn_typed of the values that the outputs need, all inputs and all params, in the same order and in one
 * allocation. out: values of `all`. NULL: out of memory. */
qn_typed *qn_values_keep(const qn_values *all, int32_t n_out, const int32_t *out);

void qn_values_free(qn_values *all);

#endif
