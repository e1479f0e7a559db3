/* SPDX-License-Identifier: Apache-2.0
 *
 * syntax.c: tokens, numbers, places. See syntax.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* newlocale, strtod_l */
#endif
#include "lang/parse/syntax.h"

#include <errno.h>
#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

#include "core/base/float_env.h"
#include "lang/dtype_name.h"
#include "lang/foreign_names.h"

/* ---- Places ---- */

#define SHOWN_COLUMNS 160

/* The longest message; with hint, name, place, line and caret it fits a sentence of QN_STATUS_BYTES. */
#define MESSAGE_BYTES 400
#define HINT_BYTES 160

/* Whether a '//' before token `index`, which divides, may have been meant as a comment. Such a '//' is one of the two tokens before it; or,
 * where the text beyond cannot be read, it is on the same line. */
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

/* What the name of a cast's dtype means here, as in "(float)x", which reads as a value in parentheses; index: the token behind it. NULL: there
 * is no such name. */
static const qn_foreign *cast_before(const qn_source *source, int32_t index) {
  if (index < 3) return NULL;
  const qn_token *token = &source->tokens[index - 2];
  if (!qn_token_is_sign(&token[-1], QN_SIGN_OPEN) || token->kind != QN_TOKEN_NAME || !qn_token_is_sign(&token[1], QN_SIGN_CLOSE)) return NULL;
  const qn_foreign *word = word_at(source, index - 2);
  return word ? word : qn_foreign_function(source->text + token->at, token->size);
}

/* The bytes of the character of UTF-8 at a place, 4 at most; 0 at the end. */
static size_t sign_bytes(const qn_source *source, uint32_t at) {
  uint32_t end = at;
  if (end < source->size) end++;
  while (end < source->size && end - at < 4 && (source->text[end] & 0xc0) == 0x80) end++;
  return end - at;
}

/* What is added to an error at a place, by the tokens there: that '//' divides, or what a word of another language is here. "": there is
 * nothing to say. gen/front/hint.lua gives the same. */
static void find_hint(const qn_source *source, uint32_t at, char hint[HINT_BYTES]) {
  int32_t index = 0;
  *hint = 0;
  if (!source->tokens) return;
  while (index < source->n_tokens && source->tokens[index].at < at) index++;
  if (may_be_comment(source, index, at)) {
    snprintf(hint, HINT_BYTES, "; '//' behind a value is floor_divide: a comment begins with '#'");
    return;
  }
  const qn_foreign *word = index < source->n_tokens ? word_at(source, index) : qn_foreign_word(source->text + at, sign_bytes(source, at));
  if (!word && index > 0) word = word_at(source, index - 1);
  if (!word) word = cast_before(source, index);
  if (word) snprintf(hint, HINT_BYTES, ": %s", word->sentence);
}

quern_status qn_syntax_fail(const qn_source *source, quern_status status, uint32_t at, const char *format, ...) {
  const int kept_errno = errno;
  char message[MESSAGE_BYTES], shown[SHOWN_COLUMNS + 1];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  errno = kept_errno;

  if (at > source->size) at = source->size;
  uint32_t line = 1, start = 0, end = at;
  for (uint32_t i = 0; i < at; i++) {
    if (source->text[i] != '\n') continue;
    line++;
    start = i + 1;
  }
  while (end < source->size && source->text[end] != '\n') end++;
  uint32_t column = at - start, first = start;
  if (end - start > SHOWN_COLUMNS) {
    if (column > SHOWN_COLUMNS / 2) first = at - SHOWN_COLUMNS / 2;
    if (end - first > SHOWN_COLUMNS) end = first + SHOWN_COLUMNS;
  }
  for (uint32_t i = first; i < end; i++) {
    unsigned char c = (unsigned char)source->text[i];
    shown[i - first] = c < ' ' || c > '~' ? ' ' : (char)c;
  }
  shown[end - first] = 0;
  char hint[HINT_BYTES];
  find_hint(source, at, hint);
  return qn_status_fail(status, "%.*s:%u:%u: %s%s\n  %s\n  %*s^", (int)source->name_size, source->name, line, column + 1,
                        message, hint, shown, (int)(at - first), "");
}

/* ---- Tokens ---- */

/* ORDER SIGN */
const char qn_syntax_signs[QN_SIGN_COUNT][4] = {"||", "&&", "|",  "^", "&", "==", "!=", "<", "<=", ">", ">=", "<<", ">>", "+",  "-",   "*",
                                                "/",  "%",  "//", "!", "~", "=",  "?",  ":", ";",  ",", "(",  ")",  "**", "not", ""};

static int is_digit(char c) { return c >= '0' && c <= '9'; }
static int is_hex_digit(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }
static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_word(char c) { return is_letter(c) || is_digit(c); }

/* The place behind the exponent that begins with its letter at `at`; `at`: there is none. */
static uint32_t skip_exponent(const char *text, uint32_t at) {
  uint32_t end = at + 1;
  if (text[end] == '+' || text[end] == '-') end++;
  if (!is_digit(text[end])) return at;
  while (is_digit(text[end])) end++;
  return end;
}

/* The end of the number that begins at `at`. Malformed numbers are detected when the value is read. */
static uint32_t number_end(const char *text, uint32_t at) {
  uint32_t end = at;
  if (text[at] == '0' && (text[at + 1] | 0x20) == 'x') {
    end = at + 2;
    while (is_hex_digit(text[end]) || text[end] == '.') end++;
    uint32_t behind = (text[end] | 0x20) == 'p' ? skip_exponent(text, end) : end;
    if (behind > at + 2) return behind;
    end = at;
  }
  while (is_digit(text[end]) || text[end] == '.') end++;
  return (text[end] | 0x20) == 'e' ? skip_exponent(text, end) : end;
}

/* The sign at the beginning of `text`: returns its bytes; 0: there is none. */
static uint32_t sign_of(const char *text, uint8_t *sign) {
  const char c = text[0];
  *sign = QN_SIGN_OTHER;
  if ((c == '<' || c == '>') && text[1] == c && text[2] == '=') return 3;
  if (c == '{' || c == '}') return 1;
  for (uint32_t size = 2; c && size; size--) {
    for (uint8_t s = 0; s < QN_SIGN_OTHER; s++) {
      if (qn_syntax_signs[s][0] != c || strlen(qn_syntax_signs[s]) != size) continue;
      if (size == 2 && qn_syntax_signs[s][1] != text[1]) continue;
      *sign = s;
      return size;
    }
  }
  return 0;
}

/* The end of the dotted name (namespace, op, output) that begins at `at`; 0: a part, from *wrong on, is too long. */
static uint32_t name_end(const char *text, uint32_t at, uint32_t *wrong) {
  for (int part = 0;; part++) {
    uint32_t end = at;
    while (is_word(text[end])) end++;
    *wrong = at;
    if (end - at > QN_SYNTAX_MAX_NAME) return 0;
    if (part == 2 || text[end] != '.' || !is_letter(text[end + 1])) return end;
    at = end + 1;
  }
}

/* Whether the last of the tokens ends a value: '//' behind it divides. */
static int ends_value(const char *text, const qn_token *tokens, int32_t n) {
  static const char *const words[] = {"T", "param", "rare", "return"};
  if (n == 0) return 0;
  const qn_token *last = &tokens[n - 1];
  if (last->kind == QN_TOKEN_NUMBER) return 1;
  if (last->kind == QN_TOKEN_NAME) {
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
      if (last->size == strlen(words[k]) && memcmp(text + last->at, words[k], last->size) == 0) return 0;
    return last->dtype == QN_DTYPE_NONE;
  }
  if (!qn_token_is_sign(last, QN_SIGN_CLOSE)) return 0;
  const int is_cast = n >= 3 && qn_token_is_sign(&last[-2], QN_SIGN_OPEN) && last[-1].kind == QN_TOKEN_NAME && !ends_value(text, tokens, n - 1);
  return !is_cast;
}

/* The place behind blanks and comments; *wrong: the beginning of an unterminated comment. divides: '//' is an operator here */
static uint32_t skip_blank(const char *text, uint32_t at, int divides, uint32_t *wrong) {
  for (;;) {
    if (text[at] == ' ' || text[at] == '\t' || text[at] == '\n' || text[at] == '\r') {
      at++;
    } else if (text[at] == '#' || (text[at] == '/' && text[at + 1] == '/' && !divides)) {
      while (text[at] && text[at] != '\n') at++;
    } else if (text[at] == '/' && text[at + 1] == '*') {
      const char *end = strstr(text + at + 2, "*/");
      if (!end) *wrong = at;
      if (!end) return at;
      at = (uint32_t)(end + 2 - text);
    } else {
      return at;
    }
  }
}

/* Makes a sign of "and", "or" or "not". */
static void read_logic_word(const char *text, qn_token *token) {
  static const struct {
    char word[4];
    uint8_t sign, written;
  } words[] = {{"or", QN_SIGN_OR_ELSE, QN_WRITTEN_OR}, {"and", QN_SIGN_AND_ALSO, QN_WRITTEN_AND}, {"not", QN_SIGN_NOT_WORD, QN_WRITTEN_NOT}};
  for (size_t k = 0; k < sizeof words / sizeof *words; k++) {
    if (token->size != strlen(words[k].word) || memcmp(text + token->at, words[k].word, token->size) != 0) continue;
    token->kind = QN_TOKEN_SIGN;
    token->sign = words[k].sign;
    token->written = words[k].written;
  }
}

/* Reads the token at token->at. */
static quern_status scan_token(const qn_source *source, qn_token *token) {
  const char *text = source->text;
  const uint32_t at = token->at;
  uint32_t end, wrong = at;
  if (is_letter(text[at])) {
    token->kind = QN_TOKEN_NAME;
    end = name_end(text, at, &wrong);
    if (!end) return qn_syntax_fail(source, QUERN_E_SYNTAX, wrong, "a name may have %d letters", QN_SYNTAX_MAX_NAME);
  } else if (is_digit(text[at]) || (text[at] == '.' && is_digit(text[at + 1]))) {
    token->kind = QN_TOKEN_NUMBER;
    end = number_end(text, at);
    uint32_t after = end;
    while (is_word(text[after]) || text[after] == '.') after++;
    if (after > end + 20) after = end + 20;
    if (after > end)
      return qn_syntax_fail(source, QUERN_E_SYNTAX, end, "'%.*s' after a number: literals have no suffix", (int)(after - end),
                            text + end);
  } else {
    token->kind = QN_TOKEN_SIGN;
    end = at + sign_of(text + at, &token->sign);
    if (end == at && (text[at] < ' ' || text[at] > '~'))
      return qn_syntax_fail(source, QUERN_E_SYNTAX, at, "the byte 0x%02x does not belong to the expression language",
                            (unsigned)(unsigned char)text[at]);
    if (end == at)
      return qn_syntax_fail(source, QUERN_E_SYNTAX, at, "'%c' does not belong to the expression language", text[at]);
  }
  token->size = end - at;
  if (token->kind != QN_TOKEN_NAME) return QUERN_OK;
  token->dtype = qn_dtype_of_name(text + at, token->size);
  read_logic_word(text, token);
  return QUERN_OK;
}

int qn_syntax_begins_with_name(const char *text, const qn_token *tokens) {
  return tokens[0].kind == QN_TOKEN_NAME && tokens[1].sign == QN_SIGN_COLON &&
         !memchr(text + tokens[0].at, '.', tokens[0].size);
}

quern_status qn_syntax_scan(qn_source *source, qn_token *tokens, int32_t *n_tokens) {
  uint32_t at = 0, unfinished = UINT32_MAX;
  int32_t n = 0;
  if (source->size > QN_SYNTAX_MAX_BYTES)
    return qn_syntax_fail(source, QUERN_E_LIMIT, 0, "longer than %d bytes", QN_SYNTAX_MAX_BYTES);
  source->tokens = tokens;
  for (;; n++) {
    source->n_tokens = n;
    at = skip_blank(source->text, at, ends_value(source->text, tokens, n), &unfinished);
    if (unfinished != UINT32_MAX) return qn_syntax_fail(source, QUERN_E_SYNTAX, unfinished, "unfinished comment");
    tokens[n] = (qn_token){.at = at, .sign = QN_SIGN_OTHER, .dtype = QN_DTYPE_NONE};
    if (at == source->size) break;
    quern_status status = scan_token(source, &tokens[n]);
    if (status) return status;
    at += tokens[n].size;
    if (n == 1 && qn_syntax_begins_with_name(source->text, tokens)) {
      source->name = source->text + tokens[0].at;
      source->name_size = tokens[0].size;
    }
  }
  *n_tokens = source->n_tokens = n + 1;
  return QUERN_OK;
}

/* ---- Numbers ---- */

/* The C locale, made once; (locale_t)0 for lack of memory. */
static locale_t c_locale(void) {
  static _Atomic(locale_t) kept;
  locale_t locale = atomic_load_explicit(&kept, memory_order_acquire), none = (locale_t)0;
  if (locale) return locale;
  const int kept_errno = errno;
  locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  errno = kept_errno;
  if (!locale || atomic_compare_exchange_strong(&kept, &none, locale)) return locale;
  freelocale(locale); /* another thread was quicker */
  return none;
}

/* Reads an integer of at most 64 bits; 0: it has more. Hex digits are a bit pattern, decimal ones a positive int64. */
static int read_integer(const char *digit, const char *end, int base, int64_t *value) {
  uint64_t all = 0;
  const uint64_t most = base == 16 ? UINT64_MAX : INT64_MAX;
  for (; digit < end; digit++) {
    uint64_t d = (uint64_t)(is_digit(*digit) ? *digit - '0' : (*digit | 0x20) - 'a' + 10);
    if (all > (most - d) / (uint64_t)base) return 0;
    all = all * (uint64_t)base + d;
  }
  memcpy(value, &all, sizeof all);
  return 1;
}

/* 0: not a number; -1: out of memory. Correctly rounded if strtod of the C library is (in round-to-nearest mode). */
static int read_float(const char *text, const char *end, double *value) {
  locale_t locale = c_locale();
  if (!locale) return -1;
  const int kept_errno = errno;
  qn_float_env was = qn_float_env_enter();
  char *stop;
  *value = strtod_l(text, &stop, locale);
  qn_float_env_leave(was);
  errno = kept_errno;
  return stop == end;
}

quern_status qn_syntax_number(const qn_source *source, const qn_token *token, qn_number *number) {
  const char *text = source->text + token->at, *end = text + token->size;
  const int shown = token->size > 40 ? 40 : (int)token->size;
  const int is_hex = text[0] == '0' && (text[1] | 0x20) == 'x';
  number->is_float = number->is_pattern = 0;
  for (const char *c = text; c < end && !number->is_float; c++)
    number->is_float = *c == '.' || (*c | 0x20) == (is_hex ? 'p' : 'e');
  if (!number->is_float) {
    if (!is_hex && text[0] == '0' && token->size > 1)
      return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "'%.*s': octal numbers are not meant here; drop the leading 0",
                            shown, text);
    const int fits = read_integer(is_hex ? text + 2 : text, end, is_hex ? 16 : 10, &number->v.i);
    number->is_pattern = fits && number->v.i < 0;
    if (fits) return QUERN_OK;
    return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "'%.*s' does not fit 64 bits%s", shown, text,
                          is_hex ? "" : " with a sign: write it in hex, or as a float");
  }
  int read = read_float(text, end, &number->v.f);
  if (read < 0) return qn_status_fail(QUERN_E_MEMORY, "%.*s: out of memory", (int)source->name_size, source->name);
  if (read == 0) return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "'%.*s' is no number", shown, text);
  if (number->v.f > 0x1.fffffffffffffp1023)
    return qn_syntax_fail(source, QUERN_E_SYNTAX, token->at, "'%.*s' is too large: write INFINITY", shown, text);
  return QUERN_OK;
}
