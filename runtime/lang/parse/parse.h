/* SPDX-License-Identifier: Apache-2.0
 *
 * parse.h: the grammar of the expression language: tokens -> instructions, and the names of inputs, outputs and parameters.
 * Knows no dtype rules. */
#ifndef QN_PARSE_H
#define QN_PARSE_H

#include "lang/parse/parsed.h"

/* Fills in all but `source`, `tokens` and `n_tokens`, which come from qn_syntax_scan. To be freed on failure too. Ops are looked
 * up in `ctx`. Errors: SYNTAX, LIMIT, NOTFOUND, UNSUPPORTED, MEMORY. */
quern_status qn_parse(quern_ctx *ctx, qn_parsed *parsed);
void qn_parse_free(qn_parsed *parsed);

#endif
