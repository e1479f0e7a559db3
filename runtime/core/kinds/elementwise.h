/* SPDX-License-Identifier: Apache-2.0
 *
 * elementwise.h: calls with one result for each element of the broadcast inputs: the functions that the
 * kinds elementwise, copy and cast share. */
#ifndef QN_ELEMENTWISE_H
#define QN_ELEMENTWISE_H

#include "core/op/kind.h"

/* As qn_kind.infer and .decide. The kind, or the expression, infers and resolves dtypes. */
quern_status qn_elementwise_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);
quern_status qn_elementwise_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   int needs_data, qn_decision *decision);

/* As qn_kind.result: the promoted dtype of the inputs, or the output's fixed dtype. */
quern_status qn_elementwise_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen,
                                   uint8_t *dtype);

#endif
