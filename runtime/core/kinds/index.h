/* index.h: calls of ops whose elements follow from where they stand (QN_RULE_INDEX). The indices are an input of the nest that
 * has no memory, one byte an element in row-major order of the output, so that whatever turns, flips, merges and cuts the
 * output does the same to them. */
#ifndef QN_INDEX_H
#define QN_INDEX_H

#include "core/call/dispatch.h"

/* As qn_dispatch_decide, which calls it. The decision's operands are the indices, of QN_INDEX_DTYPE, size 0 and no data, and the
 * output. Whether that meets itself has been checked. */
quern_status qn_index_decide(const quern_op *op, DLTensor *const *out, const quern_call *call, int needs_data,
                             qn_decision *decision);

/* Writes the number of elements behind a call's parameters. */
void qn_index_count(const qn_decision *decision, qn_params *params);

#endif
