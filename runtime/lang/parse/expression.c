/* SPDX-License-Identifier: Apache-2.0
 *
 * expression.c: the parsed expression that an op keeps: names, code and canonical text in one allocation. See expression.h. */
#include "lang/parse/expression.h"

#include <stdlib.h>
#include <string.h>

#include "core/row/row_program.h"
#include "lang/parse/callee.h"
#include "lang/parse/canonical.h"
#include "lang/parse/parse.h"

/* ---- The whole ---- */

/* Copies a text with its terminating 0 to *at, and moves *at behind it. */
static const char *keep_text(const char *text, size_t size, char **at) {
  char *copy = *at;
  memcpy(copy, text, size);
  copy[size] = 0;
  *at += size + 1;
  return copy;
}

static size_t names_bytes(const qn_parsed *p, int32_t n, const int32_t *tokens) {
  size_t bytes = 0;
  for (int32_t k = 0; k < n; k++) bytes += (tokens[k] < 0 ? strlen("out") : p->tokens[tokens[k]].size) + 1;
  return bytes;
}

static const char *const *keep_names(const qn_parsed *p, int32_t n, const int32_t *tokens, const char **list, char **at) {
  for (int32_t k = 0; k < n; k++) {
    if (tokens[k] < 0)
      list[k] = keep_text("out", strlen("out"), at);
    else
      list[k] = keep_text(p->source.text + p->tokens[tokens[k]].at, p->tokens[tokens[k]].size, at);
  }
  return list;
}

static quern_status no_memory(const qn_parsed *p) {
  return qn_status_fail(QUERN_E_MEMORY, "%.*s: out of memory", (int)p->source.name_size, p->source.name);
}

/* ---- Reduced outputs ---- */

/* Whether the values on a stack, and of variables, are one for each row; and whether that keeps the reduced dimensions. */
typedef struct row_flags {
  uint8_t is_element, keeps;
} row_flags;

/* Sets which outputs are values of a row. flags: room for the stack and the variables. */
static void find_reduced(const qn_parsed *p, row_flags *flags, qn_expression *e) {
  row_flags *variables = flags + p->stack;
  int32_t n = 0;
  for (int32_t i = 0; i < p->n_code; i++) {
    const qn_instruction *at = &p->code[i];
    row_flags made = {0, 0};
    for (int32_t k = n - at->n_args; k < n; k++) {
      made.is_element |= flags[k].is_element;
      made.keeps |= flags[k].keeps;
    }
    n -= at->n_args;
    if (at->kind == QN_CODE_INPUT) made.is_element = 1;
    if (at->kind == QN_CODE_VARIABLE) made = variables[at->v.index];
    if (qn_callee_reduces(at)) {
      made.keeps |= p->axes[at->axes].keepdims;
      if (qn_row_op_of(at->v.op->builtin)->is_reduced) made.is_element = 0;
    }
    if (at->kind == QN_CODE_ASSIGN) {
      variables[at->v.index] = made;
      n = 0;
    } else {
      flags[n++] = made;
    }
  }
  for (int32_t k = 0; k < p->n_out; k++) {
    const row_flags out = variables[p->out_variables[k]];
    if (p->n_axes && !out.is_element) e->reduced |= 1u << k;
    if (out.keeps) e->keepdims |= 1u << k;
  }
}

/* Makes the expression, in one allocation. */
static quern_status keep(const qn_parsed *p, qn_expression **expression) {
  const size_t canonical = qn_canonical_write(p, NULL), n_names = (size_t)(p->n_in + p->n_out + p->n_params);
  const size_t code_bytes = (size_t)p->n_code * sizeof p->code[0], ops_bytes = (size_t)p->n_ops * sizeof p->ops[0];
  const size_t out_bytes = (size_t)p->n_out * sizeof(int32_t), axes_bytes = (size_t)p->n_axes * sizeof(qn_axes);
  row_flags *flags = malloc(((size_t)p->stack + (size_t)p->n_variables) * sizeof *flags + 1);
  if (!flags) return no_memory(p);
  qn_expression *e = malloc(sizeof *e + axes_bytes + code_bytes + ops_bytes + n_names * sizeof(char *) + out_bytes + p->source.name_size +
                            p->source.size + canonical + 3 + names_bytes(p, p->n_in, p->in) +
                            names_bytes(p, p->n_out, p->out) + names_bytes(p, p->n_params, p->params));
  if (!e) {
    free(flags);
    return no_memory(p);
  }
  qn_instruction *code = (qn_instruction *)(e + 1);
  const quern_op **ops = (const quern_op **)(code + p->n_code);
  const char **names = (const char **)(ops + p->n_ops);
  int32_t *out_variables = (int32_t *)(names + n_names);
  qn_axes *axes = (qn_axes *)(void *)(out_variables + p->n_out);
  char *text = (char *)(axes + p->n_axes);
  if (p->n_axes) memcpy(axes, p->axes, axes_bytes);
  memcpy(code, p->code, code_bytes);
  if (p->n_ops) memcpy(ops, p->ops, ops_bytes);
  memcpy(out_variables, p->out_variables, out_bytes);
  *e = (qn_expression){.n_in = p->n_in, .n_out = p->n_out, .n_params = p->n_params, .n_ops = p->n_ops, .ops = ops, .code = code,
                       .n_code = p->n_code, .n_variables = p->n_variables, .stack = p->stack, .out_variables = out_variables,
                       .axes = axes, .n_axes = p->n_axes};
  find_reduced(p, flags, e);
  free(flags);
  e->name = keep_text(p->source.name, p->source.name_size, &text);
  e->text = keep_text(p->source.text, p->source.size, &text);
  e->in_names = keep_names(p, p->n_in, p->in, names, &text);
  e->out_names = keep_names(p, p->n_out, p->out, names + p->n_in, &text);
  e->param_names = keep_names(p, p->n_params, p->params, names + p->n_in + p->n_out, &text);
  e->canonical = text;
  qn_canonical_write(p, text);
  *expression = e;
  return QUERN_OK;
}

quern_status qn_expression_parse(quern_ctx *ctx, const char *text, qn_expression **expression) {
  qn_parsed p = {.source = {.text = text, .name = "expression", .name_size = 10}};
  p.source.size = (uint32_t)strnlen(text, QN_SYNTAX_MAX_BYTES + 1);
  const size_t n = p.source.size <= QN_SYNTAX_MAX_BYTES ? p.source.size : 0; /* too long: refused before any token */
  p.tokens = malloc((n + 1) * sizeof p.tokens[0]);
  if (!p.tokens) return no_memory(&p);
  quern_status status = qn_syntax_scan(&p.source, p.tokens, &p.n_tokens);
  if (status == QUERN_OK) status = qn_parse(ctx, &p);
  if (status == QUERN_OK) status = keep(&p, expression);
  qn_parse_free(&p);
  free(p.tokens);
  return status;
}

void qn_expression_free(qn_expression *expression) { free(expression); }
