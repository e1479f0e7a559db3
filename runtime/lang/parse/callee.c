/* SPDX-License-Identifier: Apache-2.0
 *
 * callee.c: see callee.h. */
#include "lang/parse/callee.h"

#include <string.h>

#include "base/op_traits.h"
#include "core/base/status.h"
#include "core/op/kind.h"
#include "core/row/row_program.h"
#include "core/row/scan_op.h"
#include "lang/foreign_names.h"

#define NAME_BYTES (3 * QN_SYNTAX_MAX_NAME + 3) /* namespace.name.output and a 0 */

/* The token in a message. */
#define SHOWN(source, token) (int)((token)->size > 40 ? 40 : (token)->size), (source)->text + (token)->at

static const qn_function *find_function(const char *name) {
  for (int32_t low = 0, high = qn_n_functions; low < high;) {
    int32_t middle = low + (high - low) / 2;
    int order = strcmp(qn_functions[middle].name, name);
    if (order == 0) return &qn_functions[middle];
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return NULL;
}

quern_status qn_callee_op(quern_ctx *ctx, const char *name, const quern_op **op) {
  quern_op *found = qn_registry_find(ctx, name);
  quern_status status = QUERN_OK;
  if (!found && qn_length_without_backward(name) > 0) status = qn_above.find(ctx, name, &found);
  *op = found;
  return found || status == QUERN_E_NOTFOUND ? QUERN_OK : status;
}

static int is_known(quern_ctx *ctx, const char *name) { return find_function(name) || qn_registry_find(ctx, name); }

static quern_status refuse_unknown(quern_ctx *ctx, const qn_source *source, const qn_token *token, const char *name) {
  char write[QN_ADVICE_BYTES];
  if (token->kind == QN_TOKEN_NAME && qn_foreign_word(name, strlen(name))) /* the hint says what it is */
    return qn_syntax_fail(source, QUERN_E_NOTFOUND, token->at, "unknown function '%.*s'", SHOWN(source, token));
  const char *sentence = qn_foreign_sentence(ctx, name, is_known, write);
  if (sentence)
    return qn_syntax_fail(source, QUERN_E_NOTFOUND, token->at, "unknown function '%.*s': %s%.64s", SHOWN(source, token), sentence, write);
  qn_guess guess = qn_guess_begin(name);
  qn_registry_guess(ctx, &guess);
  for (int32_t k = 0; k < qn_n_functions; k++) qn_guess_offer(&guess, qn_functions[k].name);
  if (!guess.nearest)
    return qn_syntax_fail(source, QUERN_E_NOTFOUND, token->at, "unknown function '%.*s'", SHOWN(source, token));
  return qn_syntax_fail(source, QUERN_E_NOTFOUND, token->at, "unknown function '%.*s', did you mean '%.64s'?",
                        SHOWN(source, token), guess.nearest);
}

/* Whether calls of an op may be values of the kind SCAN: it has one result, which is its state. */
static int op_scans(const quern_op *op) {
  const qn_scan_op *scan = qn_scan_op_of(op->builtin);
  return scan && op->builtin->info.n_out == 1 && !scan->has_states;
}

/* Checks that an op can be called in expressions. Of an op that a host registered over a built-in one that is the latter. */
static quern_status check_op(const qn_source *source, const qn_token *token, const quern_op *op) {
  if (!op->builtin)
    return qn_syntax_fail(source, QUERN_E_UNSUPPORTED, token->at,
                          "%.*s is an op that the host registered: nothing is known of it that an expression could use; call "
                          "it by itself",
                          SHOWN(source, token));
  const qn_op_traits *traits = op->builtin->traits;
  if (!traits || !traits->refusal || op_scans(op)) return QUERN_OK;
  return qn_syntax_fail(source, traits->is_limit ? QUERN_E_UNSUPPORTED : QUERN_E_SYNTAX, token->at, "%.*s is no part of an expression: %s",
                        SHOWN(source, token), traits->refusal);
}

/* The op and the index of the output of NAME.OUTPUT; *op NULL: there is none. Cuts ".OUTPUT" off the name. */
static quern_status find_output(quern_ctx *ctx, char *name, uint8_t *which, const quern_op **op) {
  char *dot = strrchr(name, '.');
  const quern_op *found = NULL;
  *op = NULL;
  if (!dot) return QUERN_OK;
  *dot = 0;
  const quern_status status = qn_callee_op(ctx, name, &found);
  const quern_op_info *info = found && found->builtin ? &found->builtin->info : NULL;
  for (int32_t k = 0; info && info->n_out > 1 && k < info->n_out && !*op; k++) {
    if (strcmp(info->args[info->n_in + k].name, dot + 1) != 0) continue;
    *which = (uint8_t)k;
    *op = found;
  }
  if (!*op) *dot = '.';
  return status;
}

/* The error of a call of an op of several outputs without ".OUTPUT". */
static quern_status refuse_all_outputs(const qn_source *source, const qn_token *token, const quern_op_info *info) {
  char words[160] = "";
  qn_strbuf buf = {words, sizeof words, 0};
  for (int32_t k = 0; k < info->n_out; k++)
    qn_strbuf_add(&buf, "%s%.40s.%.40s(...)", k ? " or " : "", info->name, info->args[info->n_in + k].name);
  return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "%.*s has %d outputs: write %s", SHOWN(source, token), info->n_out,
                        words);
}

/* name: is changed */
static quern_status find_callee(quern_ctx *ctx, const qn_source *source, const qn_token *token, char *name, qn_instruction *call) {
  *call = (qn_instruction){.at = token->at};
  if (strcmp(name, "grad") == 0) {
    call->kind = QN_CODE_GRAD;
    return QUERN_OK;
  }
  const quern_op *op;
  quern_status status = qn_callee_op(ctx, name, &op);
  const int is_whole = op != NULL;
  if (status == QUERN_OK && !op) status = find_output(ctx, name, &call->what, &op);
  if (status) return status;
  if (op) {
    call->kind = QN_CODE_OP;
    call->v.op = op;
    status = check_op(source, token, op);
    if (status == QUERN_OK && is_whole && op->builtin->info.n_out > 1)
      return refuse_all_outputs(source, token, &op->builtin->info);
    return status;
  }
  if (strncmp(name, "raw_", 4) == 0)
    return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "%.*s is for the library's own math; write as_%.36s",
                          SHOWN(source, token), name + 4);
  if (strcmp(name, "lookup") == 0)
    return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "lookup is for the library's own math");
  call->kind = QN_CODE_FUNCTION;
  call->v.function = find_function(name);
  return call->v.function ? QUERN_OK : refuse_unknown(ctx, source, token, name);
}

quern_status qn_callee_find_name(quern_ctx *ctx, const qn_source *source, const qn_token *token, const char *given, qn_instruction *call) {
  char name[NAME_BYTES];
  memcpy(name, given, strlen(given) + 1);
  return find_callee(ctx, source, token, name, call);
}

quern_status qn_callee_find(quern_ctx *ctx, const qn_source *source, const qn_token *token, qn_instruction *call) {
  char name[NAME_BYTES];
  memcpy(name, source->text + token->at, token->size);
  name[token->size] = 0;
  return find_callee(ctx, source, token, name, call);
}

int qn_callee_reduces(const qn_instruction *call) { return call->kind == QN_CODE_OP && qn_row_op_of(call->v.op->builtin) != NULL; }

int qn_callee_scans(const qn_instruction *call) { return call->kind == QN_CODE_OP && op_scans(call->v.op); }

int qn_callee_has_axes(const qn_instruction *call) { return qn_callee_reduces(call) || qn_callee_scans(call); }

/* The name of the op of two operands for a call of a reduction such as max(x, y); NULL: there is none. */
static const char *elementwise_twin(const quern_op *op, char name[2 * QN_SYNTAX_MAX_NAME]) {
  qn_strbuf buf = {name, 2 * QN_SYNTAX_MAX_NAME, 0};
  qn_strbuf_add(&buf, "%.64simum", op->info->name);
  return qn_registry_find(op->ctx, name) ? name : NULL;
}

quern_status qn_callee_check(const qn_source *source, const qn_token *token, const qn_instruction *call, int32_t n) {
  const quern_op_info *info = call->kind == QN_CODE_OP ? &call->v.op->builtin->info : NULL;
  const qn_row_op *row = info ? qn_row_op_of(call->v.op->builtin) : NULL;
  int32_t n_in = info ? info->n_in : call->kind == QN_CODE_GRAD ? 2 : call->v.function->n_args, n_params = info ? info->n_params : 0;
  if (row) n_params -= qn_row_n_shape_params(row);
  if (qn_callee_scans(call)) n_params = 0; /* they are keywords */
  char twin[2 * QN_SYNTAX_MAX_NAME];
  if (row && n == 2 && n_in == 1 && elementwise_twin(call->v.op, twin))
    return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "%.*s takes 1 argument and axis=, got 2: of two operands write %s(x, y)",
                          SHOWN(source, token), twin);
  if (n < n_in || n > n_in + n_params) {
    const char *axes = n > n_in && qn_callee_has_axes(call) ? ": axes have a name, axis=0" : "";
    if (n_params == 0)
      return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "%.*s takes %d argument%s, got %d%s", SHOWN(source, token), n_in,
                            n_in == 1 ? "" : "s", n, axes);
    return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "%.*s takes %d argument%s and at most %d parameter%s, got %d%s",
                          SHOWN(source, token), n_in, n_in == 1 ? "" : "s", n_params, n_params == 1 ? "" : "s", n, axes);
  }
  return QUERN_OK;
}
