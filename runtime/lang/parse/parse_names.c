/* SPDX-License-Identifier: Apache-2.0
 *
 * parse_names.c: the names of a text: inputs, params, variables, constants. See parser.h. */
#include "lang/parse/parser.h"

#include "lang/foreign_names.h"

/* The hash table's entry for a token's name: its own, or the free one for it. */
static int32_t *name_entry(qn_parser *p, const qn_token *token) {
  const char *name = p->parsed.source.text + token->at;
  uint32_t hash = 2166136261u;
  for (uint32_t i = 0; i < token->size; i++) hash = (hash ^ (unsigned char)name[i]) * 16777619u;
  for (hash ^= hash >> 15;; hash++) {
    int32_t *entry = &p->names[hash & p->names_mask];
    if (!*entry) return entry;
    const qn_token *first = &p->parsed.tokens[*entry - 1];
    if (first->size == token->size && memcmp(p->parsed.source.text + first->at, name, token->size) == 0) return entry;
  }
}

void qn_parser_name_define(qn_parser *p, int32_t *entry, qn_token *token, char letter, int32_t number) {
  *entry = (int32_t)(token - p->parsed.tokens) + 1;
  token->renamed = (uint8_t)letter;
  token->variable = number;
}

static const qn_named_constant *find_constant(const qn_parser *p, const qn_token *token) {
  for (int32_t k = 0; k < qn_n_named_constants; k++)
    if (qn_parser_is_word(p, token, qn_named_constants[k].name)) return &qn_named_constants[k];
  return NULL;
}

/* Constants in lower case, unless the text declares or assigns the name. ORDER QN_WRITTEN_PI */
static const struct {
  char name[4], constant[9];
} own_constants[] = {{"pi", "PI"}, {"inf", "INFINITY"}, {"nan", "NAN"}};

/* The index of the constant in lower case that a word is; -1: it is none. */
static int32_t own_constant(const qn_parser *p, const qn_token *token) {
  for (int32_t k = 0; k < (int32_t)(sizeof own_constants / sizeof *own_constants); k++)
    if (qn_parser_is_word(p, token, own_constants[k].name)) return k;
  return -1;
}

void qn_parser_find_own_names(qn_parser *p) {
  for (int32_t i = 0; i + 1 < p->parsed.n_tokens; i++) {
    const int32_t k = own_constant(p, &p->parsed.tokens[i]);
    const int is_assigned = qn_token_is_sign(&p->parsed.tokens[i + 1], QN_SIGN_ASSIGN);
    if (k >= 0 && (is_assigned || (i > 0 && qn_parser_is_word(p, &p->parsed.tokens[i - 1], "param")))) p->own_names |= 1u << k;
  }
}

/* The constant that a name without an entry is: by its own name or, with *written, in lower case; NULL: it is none. */
static const qn_named_constant *constant_of(const qn_parser *p, const qn_token *token, uint8_t *written) {
  const int32_t own = own_constant(p, token);
  *written = QN_WRITTEN_AS_IS;
  if (own < 0 || p->own_names >> own & 1) return find_constant(p, token);
  *written = (uint8_t)(QN_WRITTEN_PI + own);
  for (int32_t k = 0; k < qn_n_named_constants; k++)
    if (strcmp(qn_named_constants[k].name, own_constants[own].constant) == 0) return &qn_named_constants[k];
  return NULL;
}

/* Refuses np.pi and the like. */
static int refuse_dots(qn_parser *p, const qn_token *token) {
  const char *name = p->parsed.source.text + token->at;
  const size_t module = qn_foreign_module(name, token->size);
  const qn_token rest = {.at = token->at + (uint32_t)module, .size = token->size - (uint32_t)module, .kind = QN_TOKEN_NAME};
  if (module && (own_constant(p, &rest) >= 0 || find_constant(p, &rest)))
    return QN_PARSER_WRONG(p, token->at, "unknown name '%.*s': write %.*s", QN_PARSER_SHOWN(p, token), QN_PARSER_SHOWN(p, &rest));
  if (module && qn_parser_is_word(p, &rest, "e"))
    return QN_PARSER_WRONG(p, token->at, "unknown name '%.*s': write E", QN_PARSER_SHOWN(p, token));
  return QN_PARSER_WRONG(p, token->at, "unknown name '%.*s': only a function may have a namespace, and operands have no attributes: give a view", QN_PARSER_SHOWN(p, token));
}

/* Words and constants that no variable may be called. */
static int check_variable(qn_parser *p, const qn_token *token) {
  if (qn_parser_is_word(p, token, "rare")) return qn_parser_refuse_rare(p, token);
  if (qn_parser_is_word(p, token, "return") || qn_parser_is_word(p, token, "param") || qn_parser_is_word(p, token, "lookup"))
    return QN_PARSER_WRONG(p, token->at, "'%.*s' cannot be a variable's name", QN_PARSER_SHOWN(p, token));
  return memchr(p->parsed.source.text + token->at, '.', token->size) ? refuse_dots(p, token) : 1;
}

int qn_parser_check_operands(qn_parser *p, uint32_t at) {
  if (p->parsed.n_in + p->parsed.n_out < QN_MAX_OPERANDS) return 1;
  return QN_PARSER_FAIL(p, QUERN_E_LIMIT, at, "more than %d inputs and outputs", QN_MAX_OPERANDS);
}

int qn_parser_reference(qn_parser *p, qn_token *token) {
  if (!check_variable(p, token)) return 0;
  int32_t *entry = name_entry(p, token);
  const qn_named_constant *constant = *entry ? NULL : constant_of(p, token, &token->written);
  if (constant) {
    qn_parser_emit(p, QN_CODE_NUMBER, 0, token->at, 0, 1)->v.number = (qn_number){.is_float = 1, .v.f = constant->value};
    return 1;
  }
  if (!*entry) {
    const qn_foreign *foreign = qn_foreign_word(p->parsed.source.text + token->at, token->size);
    if (foreign && foreign->is_refused) return QN_PARSER_WRONG(p, token->at, "'%.*s' is no value", QN_PARSER_SHOWN(p, token));
    if (!qn_parser_check_operands(p, token->at)) return 0;
    p->parsed.in[p->parsed.n_in] = (int32_t)(token - p->parsed.tokens);
    qn_parser_name_define(p, entry, token, 'x', p->parsed.n_in++);
  }
  token->renamed = p->parsed.tokens[*entry - 1].renamed;
  token->variable = p->parsed.tokens[*entry - 1].variable;
  qn_code_kind kind = token->renamed == 'x' ? QN_CODE_INPUT : token->renamed == 'p' ? QN_CODE_PARAM : QN_CODE_VARIABLE;
  qn_parser_emit(p, kind, 0, token->at, 0, 1)->v.index = token->variable;
  return 1;
}

int qn_parser_new_name(qn_parser *p, const qn_token *token, int32_t **entry) {
  if (!check_variable(p, token)) return 0;
  *entry = name_entry(p, token);
  if (**entry && p->parsed.tokens[**entry - 1].renamed == 'x')
    return QN_PARSER_WRONG(p, token->at, "'%.*s' is an input: it was read before", QN_PARSER_SHOWN(p, token));
  if (**entry) return QN_PARSER_WRONG(p, token->at, "'%.*s' is already defined", QN_PARSER_SHOWN(p, token));
  if (!find_constant(p, token)) return 1;
  return QN_PARSER_WRONG(p, token->at, "'%.*s' is a constant: choose another name", QN_PARSER_SHOWN(p, token));
}
