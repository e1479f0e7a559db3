/* values.h: the values of an expression while they are made: each one once, found again by what it is. Knows no syntax and no
 * rules of dtypes. */
#ifndef QN_VALUES_H
#define QN_VALUES_H

#include "lang/typing.h"

typedef struct qn_values {
  qn_value *values;
  int32_t *args;
  uint16_t *places; /* by hash: a value plus 1; 0: free */
  int32_t n_values, room_values, n_args, room_args;
  uint32_t mask;
  int exceeded; /* QN_TYPING_MAX_VALUES */
} qn_values;

/* The value like `like` over args[0 ... n_args + n_params), made if there is none; -1: exceeded, or lack of memory. Zero a
 * qn_values before its first use. */
int32_t qn_values_add(qn_values *all, const qn_value *like, const int32_t *args);

/* What the outputs need, all inputs and all params, in the same order: a qn_typed with its values and args in one
 * allocation. out is read as values of `all`. NULL: lack of memory. */
qn_typed *qn_values_keep(const qn_values *all, int32_t n_out, const int32_t *out);

void qn_values_free(qn_values *all);

#endif
