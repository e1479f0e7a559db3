/* SPDX-License-Identifier: Apache-2.0
 *
 * hint.c: see hint.h. */
#include "lang/hint.h"

#include <stdio.h>
#include <string.h>

#include "lang/foreign.h"

/* Whether a '//' that divides stands before token `index` so that it may have been meant as a comment: it is one of the two tokens
 * before it or, where the text beyond cannot be read, on the same line. */
static int may_be_comment(const qn_source *source, int32_t index, uint32_t at) {
  const int is_unread = index == source->n_tokens;
  for (int32_t k = index - 1; k >= 0; k--) {
    const qn_token *token = &source->tokens[k];
    if (!is_unread && k < index - 2) return 0;
    if (is_unread && memchr(source->text + token->at, '\n', at - token->at)) return 0;
    if (qn_token_is_sign(token, QN_SIGN_FLOOR_DIVIDE)) return 1;
  }
  return 0;
}

static const qn_foreign *word_at(const qn_source *source, int32_t index) {
  const qn_token *token = &source->tokens[index];
  return token->kind == QN_TOKEN_NAME ? qn_foreign_word(source->text + token->at, token->size) : NULL;
}

void qn_hint(const qn_source *source, uint32_t at, char hint[QN_HINT_BYTES]) {
  int32_t index = 0;
  *hint = 0;
  if (!source->tokens) return;
  while (index < source->n_tokens && source->tokens[index].at < at) index++;
  if (may_be_comment(source, index, at)) {
    snprintf(hint, QN_HINT_BYTES, "; '//' behind a value is floor_divide: a comment begins with '#'");
    return;
  }
  const qn_foreign *word = index < source->n_tokens ? word_at(source, index) : qn_foreign_word(source->text + at, at < source->size);
  if (!word && index > 0) word = word_at(source, index - 1);
  if (word) snprintf(hint, QN_HINT_BYTES, ": %s", word->sentence);
}
