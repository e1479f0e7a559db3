/* SPDX-License-Identifier: Apache-2.0
 *
 * operand.c: see operand.h. The program sets no locale, so that numbers are read and written as C has them. */
#include "operand.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Dtypes ---- */

const char *operand_dtype_name(DLDataType dtype, char text[OPERAND_DTYPE_SIZE]) {
  const char *letters = dtype.code == kDLInt ? "i" : dtype.code == kDLUInt ? "u" : dtype.code == kDLFloat ? "f" : "?";
  if (dtype.code == kDLBool) return "bool";
  if (dtype.code == kDLBfloat) letters = "bf";
  snprintf(text, OPERAND_DTYPE_SIZE, "%s%d", letters, dtype.bits);
  return text;
}

int operand_dtype_find(const char *name, size_t length, DLDataType *dtype) {
  static const DLDataType all[] = {{kDLBool, 8, 1},   {kDLInt, 8, 1},    {kDLInt, 16, 1},   {kDLInt, 32, 1},
                                   {kDLInt, 64, 1},   {kDLUInt, 8, 1},   {kDLUInt, 16, 1},  {kDLUInt, 32, 1},
                                   {kDLUInt, 64, 1},  {kDLFloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1},
                                   {kDLBfloat, 16, 1}};
  for (size_t k = 0; k < sizeof all / sizeof all[0]; k++) {
    char text[OPERAND_DTYPE_SIZE];
    const char *known = operand_dtype_name(all[k], text);
    if (strlen(known) == length && memcmp(known, name, length) == 0) {
      *dtype = all[k];
      return 1;
    }
  }
  return 0;
}

/* ---- Names ---- */

static int is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static int is_digit(char c) { return c >= '0' && c <= '9'; }

/* The name that the word begins with; *rest: behind it. */
static int read_name(const char *word, char name[OPERAND_NAME_SIZE], const char **rest, char *why) {
  size_t n = 0;
  if (is_letter(word[0]))
    while (is_letter(word[n]) || is_digit(word[n])) n++;
  if (n == 0) return refuse(why, "'%.100s' does not begin with a name", word);
  if (n >= OPERAND_NAME_SIZE)
    return refuse(why, "'%.100s': the name has %zu letters, %d at most", word, n, OPERAND_NAME_SIZE - 1);
  memcpy(name, word, n);
  name[n] = 0;
  *rest = word + n;
  return 1;
}

/* The dtype behind a colon at *rest, up to one of `ends`. */
static int read_dtype(const char *word, const char *ends, operand_word *operand, const char **rest, char *why) {
  const char *dtype = *rest + 1;
  const size_t n = strcspn(dtype, ends);
  if (!operand_dtype_find(dtype, n, &operand->dtype))
    return refuse(why, "'%.100s': '%.*s' is no dtype such as f32, bf16, i64, u8, bool", word, (int)(n < 40 ? n : 40),
                  dtype);
  operand->has_dtype = 1;
  *rest = dtype + n;
  return 1;
}

/* The extents behind a bracket at *rest. */
static int read_shape(const char *word, operand_word *operand, const char **rest, char *why) {
  const char *at = *rest + 1;
  operand->has_shape = 1;
  while (*at != ']') {
    char *end;
    errno = 0;
    const long long extent = is_digit(*at) ? strtoll(at, &end, 10) : -1;
    if (extent < 0 || errno)
      return refuse(why, "'%.100s': the shape is not of whole numbers, as in x:f32[100,3]", word);
    if (operand->ndim == QUERN_MAX_NDIM) return refuse(why, "'%.100s': more than %d dimensions", word, QUERN_MAX_NDIM);
    operand->shape[operand->ndim++] = extent;
    at = end;
    if (*at == ',' && is_digit(at[1]))
      at++;
    else if (*at != ']')
      return refuse(why, "'%.100s': the shape has no end, as in x:f32[100,3]", word);
  }
  *rest = at + 1;
  return 1;
}

int operand_parse_file(const char *word, operand_word *operand, char why[WHY_SIZE]) {
  const char *rest;
  memset(operand, 0, sizeof *operand);
  if (!read_name(word, operand->name, &rest, why)) return 0;
  if (*rest == ':' && !read_dtype(word, "=[", operand, &rest, why)) return 0;
  if (*rest == '[' && operand->has_dtype && !read_shape(word, operand, &rest, why)) return 0;
  if (*rest != '=') return refuse(why, "'%.100s' is not NAME=FILE or NAME:DTYPE=FILE", word);
  if (!rest[1]) return refuse(why, "'%.100s' names no file", word);
  operand->path = rest + 1;
  return 1;
}

int operand_parse_shape(const char *word, operand_word *operand, char why[WHY_SIZE]) {
  const char *rest;
  memset(operand, 0, sizeof *operand);
  if (!read_name(word, operand->name, &rest, why)) return 0;
  if (*rest != ':') return refuse(why, "'%.100s' is not NAME:DTYPE[SHAPE], such as x:f32[100,3]", word);
  if (!read_dtype(word, "[", operand, &rest, why)) return 0;
  if (!*rest) return 1;
  if (!read_shape(word, operand, &rest, why)) return 0;
  if (*rest) return refuse(why, "'%.100s' goes on behind its shape", word);
  return 1;
}

/* ---- Numbers ---- */

/* A whole number with no dtype's limits but those of 64 bits: negative ones as i64, those beyond it as u64. */
static int read_integer(const char *digits, int is_negative, int base, quern_scalar *number, char *why) {
  char *end;
  errno = 0;
  const unsigned long long magnitude = strtoull(digits, &end, base);
  if (errno || (is_negative && magnitude > 1ull << 63))
    return refuse(why, "it does not fit into 64 bits; as a float it would have a point or an exponent");
  number->kind = magnitude >> 63 && !is_negative ? QUERN_U64 : QUERN_I64;
  number->v.u = is_negative ? 0 - magnitude : magnitude;
  return 1;
}

/* Whether the text has characters of a number only. strtod also takes words and parentheses. */
static int is_float(const char *text) {
  const int is_hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
  return text[strspn(text, is_hex ? "0123456789abcdefABCDEFxXpP.+-" : "0123456789eE.+-")] == 0;
}

static int read_number(const char *text, quern_scalar *number, char *why) {
  const int is_negative = *text == '-';
  const char *digits = text + (*text == '-' || *text == '+');
  const int is_hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  const char *whole = digits + (is_hex ? 2 : 0);
  char *end;
  if (*whole && whole[strspn(whole, is_hex ? "0123456789abcdefABCDEF" : "0123456789")] == 0)
    return read_integer(whole, is_negative, is_hex ? 16 : 10, number, why);
  number->kind = QUERN_F64;
  number->v.f[1] = 0;
  if (strcmp(digits, "inf") == 0 || strcmp(digits, "nan") == 0) {
    const double value = *digits == 'i' ? INFINITY : NAN;
    number->v.f[0] = is_negative ? -value : value;
    return 1;
  }
  number->v.f[0] = (is_digit(*digits) || *digits == '.') && is_float(digits) ? strtod(text, &end) : (end = NULL, 0.0);
  if (!end || end == text || *end) return refuse(why, "it is not a number");
  if (isinf(number->v.f[0])) return refuse(why, "it is too large for an f64; infinity is inf");
  return 1;
}

int operand_parse_number(const char *word, char name[OPERAND_NAME_SIZE], quern_scalar *number,
                         char why[WHY_SIZE]) {
  const char *rest;
  char reason[WHY_SIZE];
  if (!read_name(word, name, &rest, why)) return 0;
  if (*rest != '=' || !rest[1]) return refuse(why, "'%.100s' is not NAME=NUMBER", word);
  if (!read_number(rest + 1, number, reason)) return refuse(why, "'%.100s': %.120s", word, reason);
  return 1;
}

int operand_parse_count(const char *text, int32_t low, int32_t high, int32_t *count) {
  int64_t value = 0;
  if (!*text || strlen(text) > 10) return 0;
  for (; *text; text++) {
    if (!is_digit(*text)) return 0;
    value = value * 10 + (*text - '0');
  }
  *count = (int32_t)value;
  return value >= low && value <= high;
}

const char *operand_number_text(const quern_scalar *number, char text[OPERAND_NUMBER_SIZE]) {
  if (number->kind == QUERN_I64) {
    snprintf(text, OPERAND_NUMBER_SIZE, "%lld", (long long)number->v.i);
  } else if (number->kind == QUERN_U64) {
    snprintf(text, OPERAND_NUMBER_SIZE, "%llu", (unsigned long long)number->v.u);
  } else if (number->kind == QUERN_F64) {
    const double value = number->v.f[0];
    for (int digits = 15; digits <= 17; digits++) {
      snprintf(text, OPERAND_NUMBER_SIZE, "%.*g", digits, value);
      if (strtod(text, NULL) == value) break;
    }
    if (isnan(value)) snprintf(text, OPERAND_NUMBER_SIZE, "nan");
  } else {
    snprintf(text, OPERAND_NUMBER_SIZE, "none");
  }
  return text;
}
