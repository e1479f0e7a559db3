/* SPDX-License-Identifier: Apache-2.0
 *
 * calls.h: the functions of this folder, which the public ones of api.c call when their arguments are checked. Counts are those of
 * the op; `call` is of this library's size, or NULL. */
#ifndef QN_CALLS_H
#define QN_CALLS_H

#include "core/base/status.h"
#include "core/op/registry.h"

/* dispatch.c: from a call to its implementation: the registered one, or the op's kind and the device's backend. On the CPU
 * nothing can fail after the kind has decided; on other devices the launch still may. */
quern_status qn_dispatch_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call);
quern_status qn_dispatch_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   size_t *bytes);

/* Whether a registered implementation that returned `status` declines the call, so that the library's own op runs. kept: the
 * error sentence from before the attempt; restored after success and after a declined call. */
int qn_dispatch_falls_back(const quern_op *op, quern_status status, const qn_sentence *kept);

/* infer.c: shapes and dtypes of an op's outputs, without reading data. out: [n_out], elements of out[0].size bytes each. */
quern_status qn_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);

/* The same for a call on this data: values are read if shapes depend on them. */
quern_status qn_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call);

/* outputs.c: a call with outputs made by the caller's allocator. Owns the outputs until the call is done. Arguments as
 * quern_op_call_alloc has them; shapes may be NULL, `allocate` is not. */
quern_status qn_outputs_call(const quern_op *op, DLTensor *const *in, quern_shape *shapes, struct DLManagedTensorVersioned **out,
                             quern_allocator allocate, const quern_call *call);

/* plan.c: calls prepared once and run many times. A plan is constant after it is made. */
quern_status qn_plan_create(quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, quern_plan **plan);
quern_status qn_plan_run(const quern_plan *plan, void *const *in, void *const *out, const quern_call *call);
void qn_plan_destroy(quern_plan *plan);
const quern_op *qn_plan_op(const quern_plan *plan); /* borrowed */

/* explain.c: the text that explains how a call would run; computes nothing. text: a buffer of `size` bytes, at least 1; always
 * terminated. LIMIT if it is too small. */
quern_status qn_explain(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, char *text,
                        size_t size);

#endif
