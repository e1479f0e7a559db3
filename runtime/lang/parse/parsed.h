/* SPDX-License-Identifier: Apache-2.0
 *
 * parsed.h: a text as the parser has read it. */
#ifndef QN_PARSED_H
#define QN_PARSED_H

#include "lang/parse/instruction.h"

typedef struct qn_opening qn_opening;

/* A parsed text. Names are indices of tokens. */
typedef struct qn_parsed {
  qn_source source;
  qn_token *tokens; /* the last one is END; in variables `renamed` is set */
  int32_t n_tokens;
  qn_instruction *code;
  const quern_op **ops; /* called ops, each once; with a grad also their backward ops */
  int32_t n_code, n_ops;
  int32_t n_in, n_out, n_params, n_variables;
  int32_t stack;        /* the greatest depth of the stack */
  int32_t in[QN_MAX_OPERANDS], params[QN_MAX_PARAMS];
  int32_t out[QN_MAX_OPERANDS]; /* -1: the result, which has no name */
  int32_t out_variables[QN_MAX_OPERANDS]; /* the variable with each output's value */
  qn_axes *axes;        /* of each call that reduces or scans */
  int32_t n_axes;
  qn_opening *openings; /* canonical.h */
  int32_t n_openings;
  const quern_op *lowered_ops[2]; /* by qn_lowered; NULL: not called */
  void *scratch;        /* memory of code, ops, axes and openings */
} qn_parsed;

#endif
