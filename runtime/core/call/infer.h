/* SPDX-License-Identifier: Apache-2.0
 *
 * infer.h: shapes and dtypes of an op's outputs, from its inputs' descriptors, and where they are measured from the data. */
#ifndef QN_INFER_H
#define QN_INFER_H

#include "core/op/registry.h"

/* No data is touched. out: [n_out], elements of out[0].size bytes each. */
quern_status qn_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);

/* The same for a call on these data: where shapes depend on values, these are read. `call` is of this library's size, or NULL. */
quern_status qn_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call);

#endif
