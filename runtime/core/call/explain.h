/* SPDX-License-Identifier: Apache-2.0
 *
 * explain.h: the text that explains how a call would run. Computes nothing. */
#ifndef QN_EXPLAIN_H
#define QN_EXPLAIN_H

#include "core/op/registry.h"

/* text: a buffer of `size` bytes, at least 1; always terminated. LIMIT if it is too small. */
quern_status qn_explain(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, char *text,
                        size_t size);

#endif
