/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.h: calls prepared once and run many times. A plan is constant after it is made. */
#ifndef QN_PLAN_H
#define QN_PLAN_H

#include "core/op/registry.h"

/* `call` is of this library's size, or NULL; counts are those of the op. */
quern_status qn_plan_create(quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                            quern_plan **plan);

quern_status qn_plan_run(const quern_plan *plan, void *const *in, void *const *out, const quern_call *call);

void qn_plan_destroy(quern_plan *plan);

/* The op of the plan; borrowed. */
const quern_op *qn_plan_op(const quern_plan *plan);

#endif
