/* SPDX-License-Identifier: Apache-2.0
 *
 * outputs.h: a call with outputs made by the caller's allocator. Owns the outputs until the call is done. */
#ifndef QN_OUTPUTS_H
#define QN_OUTPUTS_H

#include "core/op/registry.h"

/* Arguments as quern_op_call_alloc has them, checked; shapes may be NULL, `allocate` is not. */
quern_status qn_outputs_call(const quern_op *op, DLTensor *const *in, quern_shape *shapes, struct DLManagedTensorVersioned **out,
                             quern_allocator allocate, const quern_call *call);

#endif
