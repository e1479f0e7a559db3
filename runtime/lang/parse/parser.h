/* SPDX-License-Identifier: Apache-2.0
 *
 * parser.h: what the files of the parser share: parse_emit.c, parse_names.c, parse.c (expressions), parse_statements.c. */
#ifndef QN_PARSER_H
#define QN_PARSER_H

#include <string.h>

#include "lang/parse/parsed.h"

#define QN_NOWHERE UINT32_MAX
#define QN_PARSER_MAX_DEPTH 200

/* Where an operand begins, and how its text is built. */
typedef struct qn_form {
  int32_t start;     /* a token */
  int16_t height;    /* levels of nesting in its canonical text */
  uint8_t is_binary; /* it is an operator with two operands, without parentheses */
} qn_form;

/* A binary operator that still lacks its right operand. */
typedef struct qn_waiting {
  uint8_t sign, level;
  uint16_t chain; /* operators of its precedence in a row, including it */
  uint32_t at;
  qn_form left;
} qn_waiting;

/* A construct that has begun and has not ended. The first three kinds end with their operand. */
typedef enum qn_nest_kind { QN_IN_PREFIX, QN_IN_CAST, QN_IN_POWER, QN_IN_NOT, QN_IN_PARENTHESES, QN_IN_CALL, QN_IN_FIRST_BRANCH,
                            QN_IN_SECOND_BRANCH } qn_nest_kind;

typedef struct qn_nest {
  qn_nest_kind kind;
  int32_t n_outside; /* operators that were waiting when it began; they belong to outer nests */
  qn_token *token;   /* the name of a call, else the token that begins it */
  qn_instruction call;
  qn_form left;      /* of a power, the left operand; of branches, the condition */
  int16_t height;    /* of what was read in it so far */
  int32_t n_args;    /* likewise */
  int has_keepdims;  /* of a call that reduces */
} qn_nest;

typedef struct qn_parser {
  quern_ctx *ctx;
  quern_status status;
  qn_parsed parsed;
  int32_t next;        /* the next token */
  qn_form form;        /* of the last operand */
  uint32_t comparison; /* position of its operator if the last operand is a comparison without parentheses, else QN_NOWHERE */
  qn_waiting *waiting; /* the outermost first */
  int32_t n_waiting;
  qn_nest *nests;      /* likewise */
  int32_t depth;       /* of nests */
  int32_t *names;      /* by hash: the first token of each variable's name, plus 1; 0: free */
  uint32_t names_mask;
  uint32_t own_names;  /* bit k: the text declares or assigns the name of constant k of those in lower case */
  int32_t held;        /* operands on the stack */
  int has_grad;
} qn_parser;

/* Records an error and returns 0. After it every function of the parser returns 0. */
#define QN_PARSER_FAIL(p, code, at, ...) ((p)->status = qn_syntax_fail(&(p)->parsed.source, code, at, __VA_ARGS__), 0)
#define QN_PARSER_WRONG(p, at, ...) QN_PARSER_FAIL(p, QUERN_E_SYNTAX, at, __VA_ARGS__)

/* A token in a message. */
#define QN_PARSER_SHOWN(p, token) (int)((token)->size > 40 ? 40 : (token)->size), (p)->parsed.source.text + (token)->at

static inline qn_token *qn_parser_peek(qn_parser *p, int32_t offset) {
  int32_t at = p->next + offset;
  return &p->parsed.tokens[at < p->parsed.n_tokens ? at : p->parsed.n_tokens - 1];
}

static inline qn_token *qn_parser_take(qn_parser *p) {
  qn_token *token = qn_parser_peek(p, 0);
  if (p->next < p->parsed.n_tokens - 1) p->next++;
  return token;
}

static inline int qn_parser_is_word(const qn_parser *p, const qn_token *token, const char *word) {
  return token->kind == QN_TOKEN_NAME && token->size == strlen(word) &&
         memcmp(p->parsed.source.text + token->at, word, token->size) == 0;
}

static inline int qn_parser_is_type(const qn_parser *p, const qn_token *token) {
  return token->kind == QN_TOKEN_NAME && (token->dtype != QN_DTYPE_NONE || qn_parser_is_word(p, token, "T"));
}

static inline int qn_parser_accept(qn_parser *p, qn_sign sign) {
  if (!qn_token_is_sign(qn_parser_peek(p, 0), sign)) return 0;
  qn_parser_take(p);
  return 1;
}

/* ---- parse_emit.c; note_op and expression are of parse.c ---- */

/* "expected WHAT WHERE NAME, found ..."; name: a token or NULL */
int qn_parser_missing(qn_parser *p, const char *what, const char *where, const qn_token *name, const qn_token *found);
int qn_parser_expect(qn_parser *p, qn_sign sign, const char *where, const qn_token *name);

/* Refuses the name T: the dtype variable of op bodies, not of expressions. */
int qn_parser_refuse_T(qn_parser *p, const qn_token *token);
int qn_parser_refuse_rare(qn_parser *p, const qn_token *token);

/* Adds an instruction that pops `n` values and pushes `made`. */
qn_instruction *qn_parser_emit(qn_parser *p, qn_code_kind kind, uint8_t what, uint32_t at, int32_t n, int32_t made);

/* Lists an op that is called, once; returns its number in the list. */
int32_t qn_parser_note_op(qn_parser *p, const quern_op *op);

/* One whole expression. */
int qn_parser_expression(qn_parser *p);

/* ---- parse_names.c ---- */

/* Finds which constants in lower case are names of the text's own. */
void qn_parser_find_own_names(qn_parser *p);

int qn_parser_check_operands(qn_parser *p, uint32_t at);

/* Reads a name where a value is expected. */
int qn_parser_reference(qn_parser *p, qn_token *token);

/* Checks the name that a statement defines; *entry: its entry in the table. */
int qn_parser_new_name(qn_parser *p, const qn_token *token, int32_t **entry);

/* Defines a name at its first token. */
void qn_parser_name_define(qn_parser *p, int32_t *entry, qn_token *token, char letter, int32_t number);

#endif
