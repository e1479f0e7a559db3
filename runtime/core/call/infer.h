/* SPDX-License-Identifier: Apache-2.0
 *
 * infer.h: shapes and dtypes of an op's outputs, inferred from its inputs' descriptors or measured from their data. */
#ifndef QN_INFER_H
#define QN_INFER_H

#include "core/op/registry.h"

/* Infers the outputs without reading data. out: [n_out], elements of out[0].size bytes each. */
quern_status qn_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);

/* The same for a call on this data: values are read if shapes depend on them. `call` is of this library's size, or NULL. */
quern_status qn_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call);

#endif
