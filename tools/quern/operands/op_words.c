/* SPDX-License-Identifier: Apache-2.0
 *
 * op_words.c: see op_words.h. */
#include "op_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "say.h"

int op_words_open(quern_ctx *ctx, const char *text, const word_list *words, quern_op **op, int *is_op) {
  int is_operand = 0;
  for (int k = 0; k < words->n; k++) is_operand |= strcmp(words->words[k].name, text) == 0;
  *is_op = !is_operand && quern_op_find(ctx, text, op) == QUERN_OK;
  if (!is_operand && !*is_op && refuse_name(ctx, text)) return STATUS_FAILED;
  if (!*is_op && quern_op_compile(ctx, text, op)) return complain_library();
  return STATUS_GOOD;
}

static int32_t param_at(const quern_op_info *info, const char *name) {
  int32_t at = 0;
  while (at < info->n_params && strcmp(info->params[at].name, name) != 0) at++;
  return at < info->n_params ? at : -1;
}

/* The parameter that says which axes, or -1. */
static int32_t axes_at(const quern_op_info *info) {
  for (int32_t k = 0; k < info->n_params; k++)
    if (quern_param_role(info, k) == QUERN_ROLE_AXES || quern_param_role(info, k) == QUERN_ROLE_AXIS) return k;
  return -1;
}

static int has_arg(const quern_op_info *info, const char *name) {
  for (int32_t k = 0; k < info->n_in + info->n_out; k++)
    if (info->args[k].name && strcmp(info->args[k].name, name) == 0) return 1;
  return 0;
}

/* A number given in the place of a file's name. 0: the word is no number. */
static int number_of(const operand_word *word, quern_scalar *number) {
  char text[OPERAND_NAME_SIZE + 128], name[OPERAND_NAME_SIZE], why[WHY_SIZE];
  if (word->has_dtype || !word->path || strlen(word->path) > 100) return 0;
  snprintf(text, sizeof text, "%s=%s", word->name, word->path);
  return operand_parse_number(text, name, number, why);
}

static int add_param(op_words *divided, const operand_word *word) {
  param_word *param = &divided->given[divided->n_given];
  if (divided->n_given == OP_WORDS_PARAMS) return complain("more than %d parameters", OP_WORDS_PARAMS);
  if (!number_of(word, &param->value))
    return complain("%s is a parameter, a number: %s=0.5; '%.100s' is none", word->name, word->name, word->path);
  for (int k = 0; k < divided->n_given; k++)
    if (strcmp(divided->given[k].name, word->name) == 0) return complain("parameter %s is given twice", word->name);
  snprintf(param->name, sizeof param->name, "%s", word->name);
  divided->n_given++;
  return STATUS_GOOD;
}

/* Whoever gives a number for an input gets to know that it is one. */
static int check_file(const quern_op_info *info, int is_op, const operand_word *word) {
  quern_scalar number;
  int is_input = 0;
  for (int32_t k = 0; k < info->n_in; k++) is_input |= strcmp(info->args[k].name, word->name) == 0;
  if (!is_input || !number_of(word, &number) || access(word->path, F_OK) == 0) return STATUS_GOOD;
  return complain("%s is an input, for which a file is wanted, and there is none called %s; %s", word->name, word->path,
                  is_op ? "an expression may have numbers" : "write the number in the expression, or declare it: \"param NAME; ...\"");
}

/* The output of an op that has one may be called anything. */
static void name_output(const quern_op_info *info, word_list *list) {
  const char *output = info->args[info->n_in].name;
  operand_word *unknown = NULL;
  for (int k = 0; k < list->n; k++) {
    operand_word *word = &list->words[k];
    if (strcmp(word->name, output) == 0) return;
    if (has_arg(info, word->name)) continue;
    if (unknown) return; /* not to be guessed */
    unknown = word;
  }
  if (unknown) snprintf(unknown->name, sizeof unknown->name, "%s", output);
}

int op_words_divide(const quern_op_info *info, int is_op, const word_list *words, op_words *divided) {
  int status = STATUS_GOOD;
  divided->operands.n = 0;
  for (int k = 0; k < words->n && !status; k++) {
    const operand_word *word = &words->words[k];
    if (has_arg(info, word->name)) {
      status = check_file(info, is_op, word);
      divided->operands.words[divided->operands.n++] = *word;
    } else if (param_at(info, word->name) >= 0) {
      status = add_param(divided, word);
    } else if (is_op && strcmp(word->name, "axis") == 0 && axes_at(info) >= 0 && word->path) {
      divided->axes = word->path;
    } else {
      divided->operands.words[divided->operands.n++] = *word;
    }
  }
  if (is_op && info->n_out == 1) name_output(info, &divided->operands);
  return status;
}

/* "0,-1" as bits. */
static int read_axes(const char *text, int32_t ndim, int64_t *bits) {
  const char *at = text;
  *bits = 0;
  do {
    char *end;
    const long axis = strtol(at, &end, 10);
    if (end == at || (*end && *end != ',')) return complain("axis=%.60s: whole numbers are wanted, such as axis=-1 or axis=0,2", text);
    if (axis < -ndim || axis >= ndim) return complain("axis=%.60s: the input has %d dimensions", text, ndim);
    *bits |= (int64_t)1 << (axis < 0 ? axis + ndim : axis);
    at = end + 1;
    if (!*end) break;
  } while (1);
  return STATUS_GOOD;
}

/* The parameter at `at` as the command line has it. 0: it says nothing of it. */
static int find_given(const quern_op_info *info, int32_t at, const op_words *divided, quern_scalar *value) {
  for (int k = 0; k < divided->n_given; k++)
    if (strcmp(divided->given[k].name, info->params[at].name) == 0) return *value = divided->given[k].value, 1;
  return 0;
}

int op_words_bind(const quern_op_info *info, int is_op, int32_t ndim, op_words *divided) {
  int64_t bits;
  if (info->n_params > OP_WORDS_PARAMS) return complain("the expression has more than %d parameters", OP_WORDS_PARAMS);
  for (int k = 0; k < divided->n_given; k++)
    if (param_at(info, divided->given[k].name) < 0)
      return complain("unknown names: --param %s: the %s no such parameter", divided->given[k].name, is_op ? "op has" : "expression declares");
  for (int32_t at = 0; at < info->n_params; at++) {
    const char *name = info->params[at].name;
    divided->params[at] = info->params[at].value;
    if (find_given(info, at, divided, &divided->params[at])) divided->n_params = at + 1;
    if (divided->params[at].kind == QUERN_NONE && !is_op)
      return complain("missing names: parameter %s has no value: --param %s=NUMBER", name, name);
  }
  const int32_t axes = divided->axes ? axes_at(info) : -1;
  if (axes < 0) return STATUS_GOOD;
  if (read_axes(divided->axes, ndim, &bits)) return STATUS_FAILED;
  divided->params[axes] = (quern_scalar){.kind = QUERN_I64, .v = {.i = bits}};
  if (divided->n_params <= axes) divided->n_params = axes + 1;
  return STATUS_GOOD;
}
