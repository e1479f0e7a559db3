/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_statements.c: statements, and the whole of a text. See parse.h. */
#include <stdlib.h>

#include "lang/parse/callee.h"
#include "lang/parse/canonical.h"
#include "lang/parse/parse.h"
#include "lang/parse/parser.h"

/* Assigns the value on the stack to a variable, which is an output unless it has a declared type or auto. name -1: the result */
static int assign(qn_parser *p, int32_t name, uint8_t dtype, uint32_t at) {
  if (dtype == QN_DTYPE_NONE) {
    if (!qn_parser_check_operands(p, at)) return 0;
    p->parsed.out[p->parsed.n_out] = name;
    p->parsed.out_variables[p->parsed.n_out++] = p->parsed.n_variables;
  }
  qn_parser_emit(p, QN_CODE_ASSIGN, dtype, at, 1, 0)->v.index = p->parsed.n_variables++;
  return 1;
}

/* [ type | auto ] name = expression ; */
static int assignment(qn_parser *p, int is_auto) {
  qn_token *name = qn_parser_take(p);
  uint8_t dtype = QN_DTYPE_NONE;
  if (is_auto) {
    dtype = QN_ASSIGN_AUTO;
    name = qn_parser_take(p);
  } else if (qn_parser_is_type(p, name)) {
    if (!qn_parser_refuse_T(p, name)) return 0;
    dtype = name->dtype;
    name = qn_parser_take(p);
  }
  if (name->kind != QN_TOKEN_NAME || qn_parser_is_type(p, name)) return qn_parser_missing(p, "a name", "", NULL, name);
  if (!qn_parser_expect(p, QN_SIGN_ASSIGN, " after ", name) || !qn_parser_expression(p)) return 0;
  int32_t *entry;
  if (!qn_parser_new_name(p, name, &entry)) return 0;
  qn_parser_name_define(p, entry, name, 'v', p->parsed.n_variables);
  if (!assign(p, (int32_t)(name - p->parsed.tokens), dtype, name->at)) return 0;
  return qn_parser_peek(p, 0)->kind == QN_TOKEN_END || qn_parser_expect(p, QN_SIGN_SEMICOLON, " after the value of ", name);
}

static int param(qn_parser *p) {
  qn_parser_take(p);
  qn_token *name = qn_parser_take(p);
  if (qn_parser_is_type(p, name)) return qn_parser_missing(p, "a name", " after param", NULL, name);
  int32_t *entry;
  if (!qn_parser_new_name(p, name, &entry)) return 0;
  if (p->parsed.n_params == QN_MAX_PARAMS) return QN_PARSER_FAIL(p, QUERN_E_LIMIT, name->at, "more than %d params", QN_MAX_PARAMS);
  p->parsed.params[p->parsed.n_params] = (int32_t)(name - p->parsed.tokens);
  qn_parser_name_define(p, entry, name, 'p', p->parsed.n_params++);
  return qn_parser_peek(p, 0)->kind == QN_TOKEN_END || qn_parser_expect(p, QN_SIGN_SEMICOLON, " after param", NULL);
}

/* The bare expression or the return at the end. where, last: for the messages */
static int result(qn_parser *p, const char *where, const char *last) {
  const uint32_t at = qn_parser_peek(p, 0)->at;
  if (!qn_parser_expression(p)) return 0;
  if (qn_parser_peek(p, 0)->kind != QN_TOKEN_END && !qn_parser_expect(p, QN_SIGN_SEMICOLON, where, NULL)) return 0;
  if (qn_parser_peek(p, 0)->kind != QN_TOKEN_END) return QN_PARSER_WRONG(p, qn_parser_peek(p, 0)->at, "nothing may follow %s", last);
  for (int32_t k = 0; k < p->parsed.n_in + p->parsed.n_out; k++)
    if (qn_parser_is_word(p, &p->parsed.tokens[k < p->parsed.n_in ? p->parsed.in[k] : p->parsed.out[k - p->parsed.n_in]], "out"))
      return QN_PARSER_WRONG(p, at, "the result is an output named out, and there is one of that name");
  return assign(p, -1, QN_DTYPE_NONE, at);
}

/* The text behind the kernel's name, if it has one. */
static int body(qn_parser *p) {
  while (qn_parser_peek(p, 0)->kind != QN_TOKEN_END) {
    const qn_token *token = qn_parser_peek(p, 0), *second = qn_parser_peek(p, 1);
    int is_result = 0, fine;
    if (qn_parser_is_word(p, token, "return")) {
      qn_parser_take(p);
      is_result = fine = result(p, " after return", "return");
    } else if (qn_parser_is_word(p, token, "param") && second->kind == QN_TOKEN_NAME) {
      fine = param(p);
    } else if (qn_parser_is_word(p, token, "auto") && second->kind == QN_TOKEN_NAME && qn_token_is_sign(qn_parser_peek(p, 2), QN_SIGN_ASSIGN)) {
      fine = assignment(p, 1);
    } else if (qn_parser_is_type(p, token) || (token->kind == QN_TOKEN_NAME && qn_token_is_sign(second, QN_SIGN_ASSIGN))) {
      fine = assignment(p, 0);
    } else {
      is_result = fine = result(p, " after the expression", "the result");
    }
    if (!fine) return 0;
    if (is_result) return 1;
  }
  if (p->parsed.n_out) return 1;
  return QN_PARSER_WRONG(p, p->parsed.source.size, "there is no output: write an expression, or y = ...");
}

/* ---- The whole ---- */

/* Lists the backward op of each op for derivatives, and what adds those of a row. There is room: a call has more than two tokens. */
static quern_status note_backward_ops(qn_parser *p) {
  for (int32_t k = 0; k < p->parsed.n_ops && p->has_grad; k++) {
    const char *name = p->parsed.ops[k]->builtin->info.backward;
    const quern_op *backward = NULL;
    const quern_status status = name ? qn_callee_op(p->ctx, name, &backward) : QUERN_OK;
    if (status) return status;
    if (backward && backward->builtin) qn_parser_note_op(p, backward);
  }
  const quern_op *sum = p->has_grad && p->parsed.n_axes ? qn_registry_find(p->ctx, "sum") : NULL;
  if (sum) qn_parser_note_op(p, sum);
  return QUERN_OK;
}

/* Scratch memory for everything: sizes follow from the number of tokens. 0: out of memory. */
static int make_room(qn_parser *p) {
  const size_t n = (size_t)p->parsed.n_tokens;
  size_t n_entries = 4;
  while (n_entries < n + n / 2) n_entries *= 2; /* every second token at most is a variable */
  const size_t code_bytes = n * sizeof(qn_instruction), ops_bytes = n * sizeof(quern_op *), waiting_bytes = n * sizeof(qn_waiting);
  const size_t nests_bytes = QN_PARSER_MAX_DEPTH * sizeof(qn_nest), names_bytes = n_entries * sizeof(int32_t);
  const size_t axes_bytes = (n / 2 + 1) * sizeof(qn_axes); /* a call that has begun has two tokens */
  const size_t openings_bytes = qn_canonical_most_openings(p->parsed.tokens, p->parsed.n_tokens) * sizeof(qn_opening);
  char *at = p->parsed.scratch =
      malloc(nests_bytes + code_bytes + ops_bytes + waiting_bytes + openings_bytes + names_bytes + axes_bytes);
  if (!at) return 0;
  p->nests = (qn_nest *)at;
  p->parsed.code = (qn_instruction *)(at += nests_bytes);
  p->parsed.ops = (const quern_op **)(at += code_bytes);
  p->waiting = (qn_waiting *)(at += ops_bytes);
  p->names = (int32_t *)(at += waiting_bytes);
  p->parsed.openings = (qn_opening *)(void *)(at += names_bytes);
  p->parsed.axes = (qn_axes *)(void *)(at + openings_bytes);
  p->names_mask = (uint32_t)n_entries - 1;
  memset(p->names, 0, names_bytes);
  return 1;
}

quern_status qn_parse(quern_ctx *ctx, qn_parsed *parsed) {
  qn_parser p = {.ctx = ctx, .comparison = QN_NOWHERE,
              .parsed = {.source = parsed->source, .tokens = parsed->tokens, .n_tokens = parsed->n_tokens}};
  int is_read = 0;
  if (make_room(&p)) {
    p.next = qn_syntax_begins_with_name(p.parsed.source.text, p.parsed.tokens) ? 2 : 0;
    qn_parser_find_own_names(&p);
    is_read = body(&p);
  } else {
    p.status = qn_status_fail(QUERN_E_MEMORY, "%.*s: out of memory", (int)parsed->source.name_size, parsed->source.name);
  }
  if (is_read) {
    qn_canonical_sort_ops(&p.parsed, (const quern_op **)(void *)p.waiting); /* none waits any more */
    p.status = note_backward_ops(&p);
  }
  *parsed = p.parsed;
  return p.status;
}

void qn_parse_free(qn_parsed *parsed) { free(parsed->scratch); }
