/* SPDX-License-Identifier: Apache-2.0
 *
 * derive.h: the derivative of a typed value by an input, as more values: same walk and rules as gen/graph/derive.lua. Knows
 * no syntax and no places in a text. */
#ifndef QN_DERIVE_H
#define QN_DERIVE_H

#include "lang/typing/row_values.h"

typedef enum qn_derived {
  QN_DERIVED,
  QN_DERIVED_ZERO, /* it does not depend on the input */
  QN_DERIVED_NOT,  /* the op or primitive `name` has no derivative */
  QN_DERIVED_NOT_TWICE, /* the same, of a backward op */
  QN_DERIVED_NOT_HERE, /* the op `name`, which scans, has one only by itself */
  QN_DERIVED_NOT_BY, /* an op that reduces has none by its argument `name` */
  QN_DERIVED_FULL  /* no room for more values, or lack of memory: values->exceeded says which */
} qn_derived;

/* The derivative of value `of` by value `by`, in the type of `of` or of `by`. ops: include the backward ops of the ops among the values,
 * and sum where there are calls. calls: those that reduce; those of the derivative are added. *name is valid as long as the ops. */
qn_derived qn_derive(qn_values *values, const quern_op *const *ops, int32_t n_ops, qn_row_calls *calls, int32_t of, int32_t by,
                     int32_t *derivative, const char **name);

#endif
