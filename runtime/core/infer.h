/* infer.h: shapes and dtypes of an op's outputs from its inputs' descriptors. No data is touched. */
#ifndef QN_INFER_H
#define QN_INFER_H

#include "registry.h"

/* out: [n_out], elements of out[0].size bytes each. */
quern_status qn_infer(const quern_op *op, DLTensor *const *in, quern_shape *out);

#endif
