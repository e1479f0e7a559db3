/* SPDX-License-Identifier: Apache-2.0
 *
 * expression.h: the text of a host's expression -> instructions with resolved names. Finds the functions it calls; knows
 * no dtypes. Reads the same language as gen/front/parse.lua; t550 compares the two. */
#ifndef QN_EXPRESSION_H
#define QN_EXPRESSION_H

#include "lang/parse/instruction.h"

typedef struct qn_expression {
  const char *name;      /* of the kernel, or "expression" */
  const char *text;      /* as given */
  const char *canonical; /* tokens joined by one blank, variables renamed: x0 ... inputs, p0 ... params, v0 ... others */
  int32_t n_in, n_out, n_params, n_ops;
  const char *const *in_names;
  const char *const *out_names;
  const char *const *param_names;
  const quern_op *const *ops; /* called ops, each once; with a grad also their backward ops; valid as long as the context */

  /* For typing.c: */
  const qn_instruction *code;
  const int32_t *out_variables; /* [n_out]: the variable that holds each output's value at the end */
  const qn_axes *axes;          /* [n_axes]: of each call that reduces; none: the expression works element by element */
  int32_t n_axes;
  uint32_t reduced, keepdims;   /* bit k: output k is a row's value; and it keeps the reduced dimensions, as 1 */
  int32_t n_code, n_variables, stack; /* stack: its greatest depth */
} qn_expression;

/* The ops that `text` calls are looked up in `ctx`, once. Errors: SYNTAX, LIMIT, NOTFOUND, UNSUPPORTED, MEMORY. */
quern_status qn_expression_parse(quern_ctx *ctx, const char *text, qn_expression **expression);
void qn_expression_free(qn_expression *expression);

#endif
