/* SPDX-License-Identifier: Apache-2.0
 *
 * row_values.h: a call of an op that reduces as values: the stages of its program. Knows no syntax and no dtype rules. */
#ifndef QN_ROW_VALUES_H
#define QN_ROW_VALUES_H

#include "core/row/row_program.h"
#include "lang/typing/values.h"

typedef struct qn_row_call {
  const quern_op *op;
  int32_t axes;   /* which of the expression's */
  int32_t result; /* the value of the output that the call is about */
  uint8_t dtype;  /* what its inputs promote to */
  /* The axes count dimensions of these inputs, as bits: of the argument of the call's first reduction. Set by qn_row_values. A derivative
   * has those of the call that was derived. 0: not known yet */
  uint32_t argument;
  int32_t inputs[QN_MAX_OPERANDS];
  int32_t params[QN_MAX_PARAMS + 1]; /* the op's own; then the number of elements, set by qn_row_values */
} qn_row_call;

/* The calls of an expression, in the order in which they were made. */
typedef struct qn_row_calls {
  qn_row_call *list;
  int32_t n, room;
} qn_row_calls;

/* Adds a call. 0: out of memory. */
int qn_row_note(qn_row_calls *calls, const qn_row_call *call);

typedef enum qn_row_made {
  QN_ROW_MADE_NOT, /* values->exceeded, or out of memory */
  QN_ROW_MADE,
  QN_ROW_MADE_NO_CAST /* this build has no kernel for a cast */
} qn_row_made;

/* Makes the values of the outputs of a call. Its inputs and params are set before. */
qn_row_made qn_row_values(qn_values *values, qn_row_call *call, int32_t *outputs);

/* A value in another type; -1: see above. */
qn_row_made qn_row_cast(qn_values *values, int32_t *value, uint8_t type);

#endif
