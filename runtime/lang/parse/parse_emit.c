/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_emit.c: what the files of the parser write: instructions, and what is wrong with a token. See parser.h. */
#include "lang/parse/parser.h"

/* ---- Tokens ---- */

int qn_parser_missing(qn_parser *p, const char *what, const char *where, const qn_token *name, const qn_token *found) {
  const qn_token none = {.size = 0};
  if (!name) name = &none;
  if (found->kind == QN_TOKEN_END)
    return QN_PARSER_WRONG(p, found->at, "expected %s%s%.*s, found the end", what, where, QN_PARSER_SHOWN(p, name));
  return QN_PARSER_WRONG(p, found->at, "expected %s%s%.*s, found '%.*s'", what, where, QN_PARSER_SHOWN(p, name), QN_PARSER_SHOWN(p, found));
}

int qn_parser_expect(qn_parser *p, qn_sign sign, const char *where, const qn_token *name) {
  if (qn_parser_accept(p, sign)) return 1;
  const char what[] = {'\'', qn_syntax_signs[sign][0], '\'', 0};
  return qn_parser_missing(p, what, where, name, qn_parser_peek(p, 0));
}

int qn_parser_refuse_T(qn_parser *p, const qn_token *token) {
  return token->dtype == QN_DTYPE_NONE ? QN_PARSER_WRONG(p, token->at, "T has no meaning here: write a dtype") : 1;
}

int qn_parser_refuse_rare(qn_parser *p, const qn_token *token) {
  return QN_PARSER_WRONG(p, token->at, "rare belongs to the body of an op");
}

/* ---- Code ---- */

qn_instruction *qn_parser_emit(qn_parser *p, qn_code_kind kind, uint8_t what, uint32_t at, int32_t n, int32_t made) {
  qn_instruction *instruction = &p->parsed.code[p->parsed.n_code++];
  qn_assert(p->parsed.n_code <= p->parsed.n_tokens);
  *instruction = (qn_instruction){.kind = (uint8_t)kind, .what = what, .n_args = (uint16_t)n, .at = at};
  p->held += made - n;
  if (p->held > p->parsed.stack) p->parsed.stack = p->held;
  return instruction;
}
