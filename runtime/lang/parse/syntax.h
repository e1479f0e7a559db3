/* SPDX-License-Identifier: Apache-2.0
 *
 * syntax.h: the text of an expression as tokens, its numbers, and errors at places in it. The same tokens, numbers and words
 * as gen/front/tokens.lua, places as gen/base/source.lua. Knows no grammar and no ops. */
#ifndef QN_SYNTAX_H
#define QN_SYNTAX_H

#include "core/base/status.h"

#define QN_SYNTAX_MAX_BYTES (64 << 10)
#define QN_SYNTAX_MAX_NAME 64 /* of each part of a name with dots */

/* A text, and its name for error messages. */
typedef struct qn_source {
  const char *text; /* a 0 byte follows */
  uint32_t size;
  const char *name;
  uint32_t name_size;
  const struct qn_token *tokens; /* those read so far, for hints; NULL: none */
  int32_t n_tokens;
} qn_source;

/* Records "name:line:col: message" with a hint, the line and a caret under the place, and returns `status`. `at`: 0-based. */
quern_status qn_syntax_fail(const qn_source *source, quern_status status, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

typedef enum qn_token_kind { QN_TOKEN_END, QN_TOKEN_NAME, QN_TOKEN_NUMBER, QN_TOKEN_SIGN } qn_token_kind;

/* Signs; binary operators by precedence, lowest first. ORDER SIGN: qn_syntax_signs */
typedef enum qn_sign {
  QN_SIGN_OR_ELSE,
  QN_SIGN_AND_ALSO,
  QN_SIGN_OR,
  QN_SIGN_XOR,
  QN_SIGN_AND,
  QN_SIGN_EQ,
  QN_SIGN_NE,
  QN_SIGN_LT,
  QN_SIGN_LE,
  QN_SIGN_GT,
  QN_SIGN_GE,
  QN_SIGN_SHL,
  QN_SIGN_SHR,
  QN_SIGN_ADD,
  QN_SIGN_SUB,
  QN_SIGN_MUL,
  QN_SIGN_DIV,
  QN_SIGN_REMAINDER,
  QN_SIGN_FLOOR_DIVIDE, /* the last binary operator */
  QN_SIGN_NOT,
  QN_SIGN_INVERT,
  QN_SIGN_ASSIGN,
  QN_SIGN_QUESTION,
  QN_SIGN_COLON,
  QN_SIGN_SEMICOLON,
  QN_SIGN_COMMA,
  QN_SIGN_OPEN,
  QN_SIGN_CLOSE,
  QN_SIGN_POWER,    /* binds tighter than the signs of one operand before it */
  QN_SIGN_NOT_WORD, /* "not": binds looser than comparisons */
  QN_SIGN_OTHER, /* not used in expressions: braces, <<= */
  QN_SIGN_COUNT
} qn_sign;

extern const char qn_syntax_signs[QN_SIGN_COUNT][4];

/* How a token is written in the canonical text, where not as in the source. */
typedef enum qn_written { QN_WRITTEN_AS_IS, QN_WRITTEN_OR, QN_WRITTEN_AND, QN_WRITTEN_NOT, QN_WRITTEN_COMMA, QN_WRITTEN_PI,
                          QN_WRITTEN_INFINITY, QN_WRITTEN_NAN } qn_written;

typedef struct qn_token {
  uint32_t at, size;
  uint8_t kind, sign;
  uint8_t dtype;    /* that the name is of; QN_DTYPE_NONE: it is of none */
  uint8_t renamed;  /* set by the parser: a variable's letter in the canonical text, or 0 */
  uint8_t written;  /* a qn_written */
  uint8_t closes;   /* set by the parser: the ')' that are added behind it */
  uint16_t opens;   /* likewise: the last qn_opening before it, plus 1; 0: there is none */
  int32_t variable; /* set by the parser: the variable's number; of a called op: its number in qn_parsed.ops, plus 1 */
} qn_token;

static inline int qn_token_is_sign(const qn_token *token, qn_sign sign) {
  return token->kind == QN_TOKEN_SIGN && token->sign == sign;
}

/* tokens: room for source->size + 1. Sets source->name if the text begins with one. Errors: SYNTAX, LIMIT. */
quern_status qn_syntax_scan(qn_source *source, qn_token *tokens, int32_t *n_tokens);

/* Whether the first two tokens are a kernel's name and a colon. */
int qn_syntax_begins_with_name(const char *text, const qn_token *tokens);

/* A literal: weak, 64 bits. is_pattern: a hexadecimal integer from 2^63 on. A signed type takes it as bits, other types as its
 * unsigned value. Results of constant arithmetic are signed. */
typedef struct qn_number {
  int is_float, is_pattern;
  union {
    int64_t i;
    double f;
  } v;
} qn_number;

/* The value of a NUMBER, independent of the locale; errno is kept. Errors: SYNTAX, MEMORY. */
quern_status qn_syntax_number(const qn_source *source, const qn_token *token, qn_number *number);

#endif
