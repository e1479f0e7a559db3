/* SPDX-License-Identifier: Apache-2.0
 *
 * elementwise.h: calls whose elements each follow from the elements at the same place of the inputs, which broadcast: what the
 * kinds elementwise, copy and cast have in common. */
#ifndef QN_ELEMENTWISE_H
#define QN_ELEMENTWISE_H

#include "core/op/kind.h"

/* As qn_kind.infer and .decide. Dtypes are the kind's to infer and resolve, or the expression's. */
quern_status qn_elementwise_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);
quern_status qn_elementwise_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   int needs_data, qn_decision *decision);

/* As qn_kind.result: what the inputs promote to, or the output's own dtype. */
quern_status qn_elementwise_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen,
                                   uint8_t *dtype);

#endif
