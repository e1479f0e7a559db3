/* SPDX-License-Identifier: Apache-2.0
 *
 * callee.h: the functions of expressions: grad, the ops of a context, then the primitives. Knows no grammar and no dtypes. */
#ifndef QN_CALLEE_H
#define QN_CALLEE_H

#include "lang/parse/instruction.h"

/* The op of a name, where need be the derivative of a spec's op, made now; *op NULL: there is none. Errors: those of making it. */
quern_status qn_callee_op(quern_ctx *ctx, const char *name, const quern_op **op);

/* The callee of that name: *call is an OP, a FUNCTION or a GRAD, without arguments yet. Errors: NOTFOUND with the nearest
 * name, SYNTAX, UNSUPPORTED, those of making a derivative. */
quern_status qn_callee_find(quern_ctx *ctx, const qn_source *source, const qn_token *token, qn_instruction *call);

/* The same of a name that the text does not have: `token` is the operator that calls it. */
quern_status qn_callee_find_name(quern_ctx *ctx, const qn_source *source, const qn_token *token, const char *name, qn_instruction *call);

/* Whether a call is of an op that reduces or of a row; of one that scans; of either. */
int qn_callee_reduces(const qn_instruction *call);
int qn_callee_scans(const qn_instruction *call);
int qn_callee_has_axes(const qn_instruction *call);

/* Whether it takes `n` arguments. Errors: SYNTAX. */
quern_status qn_callee_check(const qn_source *source, const qn_token *token, const qn_instruction *call, int32_t n);

#endif
