/* SPDX-License-Identifier: Apache-2.0
 *
 * typing.h: an expression and the dtypes of its inputs -> typed values: promotion, weak numbers, casts. The same semantics
 * as gen/graph/host.lua; t550 compares the two. Knows no shapes; of kernels only whether they exist. */
#ifndef QN_TYPING_H
#define QN_TYPING_H

#include "lang/parse/expression.h"
#include "lang/typing/values.h"

/* in_dtypes: [n_in]. Errors: DTYPE, LIMIT, MEMORY; UNSUPPORTED where this build lacks a primitive's kernel. */
quern_status qn_typing_run(const qn_expression *expression, const uint8_t *in_dtypes, qn_typed **typed);
void qn_typing_free(qn_typed *typed);

#endif
