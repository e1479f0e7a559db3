/* typing.h: an expression and the dtypes of its inputs -> values with types: promotion, weak numbers, casts. The same
 * meaning as gen/graph/host.lua gives; a test holds the two together. Knows no shapes, no kernels beyond their being there. */
#ifndef QN_TYPING_H
#define QN_TYPING_H

#include "lang/expression.h"
#include "lang/primitives.h"

#define QN_TYPING_MAX_VALUES 4096

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

/* in_dtypes: [n_in]. Errors: DTYPE, LIMIT, MEMORY; UNSUPPORTED where this build lacks a primitive's kernel. */
quern_status qn_typing_run(const qn_expression *expression, const uint8_t *in_dtypes, qn_typed **typed);
void qn_typing_free(qn_typed *typed);

#endif
