/* SPDX-License-Identifier: Apache-2.0
 *
 * canonical.c: see canonical.h. */
#include "lang/parse/canonical.h"

#include <string.h>

/* ORDER qn_written */
static const char *const written[] = {NULL, "||", "&&", "!", ",", "PI", "INFINITY", "NAN"};

void qn_canonical_enclose(qn_parsed *p, qn_lowered lowered, int32_t first, int32_t last) {
  qn_assert(p->n_openings < UINT16_MAX && p->tokens[last].closes < UINT8_MAX); /* of 64 KB; by the most levels of nesting */
  p->openings[p->n_openings++] = (qn_opening){.lowered = (uint8_t)lowered, .inner = p->tokens[first].opens};
  p->tokens[first].opens = (uint16_t)p->n_openings;
  p->tokens[last].closes++;
}

size_t qn_canonical_most_openings(const qn_token *tokens, int32_t n) {
  size_t most = 0;
  for (int32_t i = 0; i < n; i++) {
    const uint8_t sign = tokens[i].kind == QN_TOKEN_SIGN ? tokens[i].sign : QN_SIGN_OTHER;
    most += sign == QN_SIGN_POWER || sign == QN_SIGN_FLOOR_DIVIDE || sign == QN_SIGN_NOT_WORD;
  }
  return most;
}

static size_t put(char *out, size_t at, const char *text, size_t size) {
  if (out) memcpy(out + at, text, size);
  return at + size;
}

static size_t put_word(char *out, size_t at, const char *text, size_t size) {
  if (at) at = put(out, at, " ", 1);
  return put(out, at, text, size);
}

static size_t put_variable(char *out, size_t at, const qn_token *token) {
  char name[12];
  int begin = sizeof name;
  int32_t number = token->variable;
  do name[--begin] = (char)('0' + number % 10);
  while (number /= 10);
  name[--begin] = (char)token->renamed;
  return put_word(out, at, name + begin, sizeof name - (size_t)begin);
}

size_t qn_canonical_write(const qn_parsed *p, char *out) {
  size_t size = 0;
  int32_t first = qn_syntax_begins_with_name(p->source.text, p->tokens) ? 2 : 0, end = p->n_tokens - 1;
  if (qn_token_is_sign(&p->tokens[end - 1], QN_SIGN_SEMICOLON)) end--;
  for (int32_t i = first; i < end; i++) {
    const qn_token *token = &p->tokens[i];
    for (int32_t k = token->opens; k; k = p->openings[k - 1].inner) {
      const qn_opening *opening = &p->openings[k - 1];
      const quern_op *op = opening->lowered == QN_LOWERED_NONE ? NULL : p->lowered_ops[opening->lowered];
      if (op) size = put_word(out, size, op->info->name, strlen(op->info->name));
      size = put_word(out, size, "(", 1);
    }
    if (token->renamed)
      size = put_variable(out, size, token);
    else if (token->written != QN_WRITTEN_AS_IS)
      size = put_word(out, size, written[token->written], strlen(written[token->written]));
    else
      size = put_word(out, size, p->source.text + token->at, token->size);
    for (int32_t k = 0; k < token->closes; k++) size = put_word(out, size, ")", 1);
  }
  if (out) out[size] = 0;
  return size;
}

/* Each op once. */
static int32_t note(const quern_op **ops, int32_t n, const quern_op *op) {
  for (int32_t k = 0; k < n; k++)
    if (ops[k] == op) return n;
  ops[n] = op;
  return n + 1;
}

void qn_canonical_sort_ops(qn_parsed *p, const quern_op **room) {
  int32_t n = 0;
  if (!p->n_openings) return; /* they are in order */
  for (int32_t i = 0; i < p->n_tokens; i++) {
    const qn_token *token = &p->tokens[i];
    for (int32_t k = token->opens; k; k = p->openings[k - 1].inner)
      if (p->openings[k - 1].lowered != QN_LOWERED_NONE) n = note(room, n, p->lowered_ops[p->openings[k - 1].lowered]);
    if (token->kind == QN_TOKEN_NAME && !token->renamed && token->variable) n = note(room, n, p->ops[token->variable - 1]);
  }
  qn_assert(n == p->n_ops);
  memcpy(p->ops, room, (size_t)n * sizeof *room);
}
