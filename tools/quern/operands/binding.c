/* SPDX-License-Identifier: Apache-2.0
 *
 * binding.c: see binding.h. */
#include "binding.h"

#include <stdio.h>
#include <string.h>

#include "say.h"

static const operand_word *find_word(const word_list *list, const char *name) {
  for (int k = 0; k < list->n; k++)
    if (strcmp(list->words[k].name, name) == 0) return &list->words[k];
  return NULL;
}

int word_list_add(word_list *list, const operand_word *word, const char *usage) {
  if (find_word(list, word->name)) return misuse(usage, "%s is given twice", word->name);
  if (list->n == BINDING_MAX) return misuse(usage, "more than %d operands", BINDING_MAX);
  list->words[list->n++] = *word;
  return STATUS_GOOD;
}

/* "x, w" and ever more; cut where there is no more room. */
static void add_name(char *text, size_t size, const char *name) {
  const size_t n = strlen(text);
  snprintf(text + n, size - n, "%s%s", n ? ", " : "", name);
}

static int has_operand(const quern_op_info *info, const char *name) {
  for (int32_t k = 0; k < info->n_in + info->n_out; k++)
    if (info->args[k].name && strcmp(info->args[k].name, name) == 0) return 1;
  return 0;
}

void write_call(const quern_op_info *info, char *text, size_t size) {
  char inputs[256] = "";
  for (int32_t k = 0; k < info->n_in; k++) add_name(inputs, sizeof inputs, info->args[k].name);
  const char *output = info->n_out > 1 ? info->args[info->n_in].name : "";
  snprintf(text, size, "%s%s%s(%s)", info->name, info->n_out > 1 ? "." : "", output, inputs);
}

int refuse_name(quern_ctx *ctx, const char *text) {
  char call[100];
  quern_op *op = NULL;
  const size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.");
  if (size < 2 || text[size] || size > sizeof call - 4) return STATUS_GOOD;
  snprintf(call, sizeof call, "%s(x)", text);
  const quern_status status = quern_op_compile(ctx, call, &op);
  quern_op_release(op);
  return status == QUERN_E_NOTFOUND ? complain_library() : STATUS_GOOD;
}

/* Whoever names an op where an operand is meant has probably forgotten to call it; not all can be. */
static const char *hint(quern_ctx *ctx, const char *name, char text[640]) {
  quern_op *op = NULL, *called = NULL;
  char call[480];
  text[0] = 0;
  if (quern_op_find(ctx, name, &op) == QUERN_OK) {
    write_call(quern_op_describe(op), call, sizeof call);
    if (quern_op_compile(ctx, call, &called) == QUERN_OK)
      snprintf(text, 640, "; %.64s is an op too: it is called as in %s", name, call);
  }
  quern_op_release(called);
  quern_op_release(op);
  return text;
}

int bind_words(quern_ctx *ctx, const quern_op_info *info, const word_list *list, int is_op, const operand_word *of[BINDING_MAX]) {
  char unknown[512] = "", missing[512] = "", inputs[512] = "", outputs[512] = "", more[640];
  const char *first_missing = NULL;
  if (info->n_in + info->n_out > BINDING_MAX) return complain("the expression has more than %d operands", BINDING_MAX);
  for (int k = 0; k < list->n; k++)
    if (!has_operand(info, list->words[k].name)) add_name(unknown, sizeof unknown, list->words[k].name);
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    const char *name = info->args[k].name ? info->args[k].name : "";
    of[k] = find_word(list, name);
    if (k < info->n_in)
      add_name(inputs, sizeof inputs, name);
    else
      add_name(outputs, sizeof outputs, name);
    if (of[k] || k >= info->n_in) continue;
    add_name(missing, sizeof missing, name);
    if (!first_missing) first_missing = name;
  }
  if (!unknown[0] && !first_missing) return STATUS_GOOD;
  return complain("%s names: %s; the %s inputs are %s, its outputs %s%s", unknown[0] ? "unknown" : "missing",
                  unknown[0] ? unknown : missing, is_op ? "op's" : "expression's", inputs[0] ? inputs : "none", outputs,
                  first_missing ? hint(ctx, first_missing, more) : "");
}
