/* SPDX-License-Identifier: Apache-2.0
 *
 * op_lines.c: see op_lines.h. */
#include "lang/op_lines.h"

#include <stdlib.h>
#include <string.h>

#include "lang/dtype_name.h"

#define MAX_WORD 63
#define MAX_TABLE (1 << 20)

/* The next word of a line; 0 at the end of the line. */
static int read_word(qn_op_lines *lines, char word[MAX_WORD + 1]) {
  size_t n = 0;
  while (*lines->at == ' ') lines->at++;
  while (*lines->at && *lines->at != ' ' && *lines->at != '\n' && n < MAX_WORD) word[n++] = *lines->at++;
  word[n] = 0;
  return n > 0;
}

static int read_type(qn_op_lines *lines, uint8_t *type) {
  char word[MAX_WORD + 1];
  if (!read_word(lines, word)) return 0;
  *type = qn_dtype_of_name(word, strlen(word));
  return *type != QN_DTYPE_NONE;
}

static int read_number(qn_op_lines *lines, int base, uint64_t *number) {
  char word[MAX_WORD + 1], *end;
  if (!read_word(lines, word)) return 0;
  *number = strtoull(word, &end, base);
  return *end == 0;
}

/* A value defined before. */
static int read_value(qn_op_lines *lines, uint64_t *value) {
  return read_number(lines, 10, value) && *value < (uint64_t)lines->n_values;
}

static int read_primitive(qn_op_lines *lines, qn_op_line *line) {
  char op[MAX_WORD + 1];
  uint8_t arg_type;
  uint64_t value;
  if (!read_word(lines, op) || !read_type(lines, &line->type) || !read_type(lines, &arg_type)) return 0;
  line->primitive = qn_primitive_find(op, line->type, arg_type);
  if (!line->primitive || line->primitive->n_args > QN_OP_LINE_MAX_ARGS) return 0;
  for (int32_t k = 0; k < line->primitive->n_args; k++) {
    if (!read_value(lines, &value)) return 0;
    line->args[k] = (int32_t)value;
  }
  return 1;
}

/* Reads a line after its first word. */
static int read_rest(qn_op_lines *lines, qn_op_line *line) {
  switch (line->kind) {
    case QN_OP_LINE_IN: return read_type(lines, &line->type);
    case QN_OP_LINE_PARAM: return read_type(lines, &line->type) && read_number(lines, 10, &line->number);
    case QN_OP_LINE_CONST: return read_type(lines, &line->type) && read_number(lines, 16, &line->number);
    case QN_OP_LINE_TABLE:
      return read_type(lines, &line->type) && read_number(lines, 10, &line->number) && line->number > 0 &&
             line->number <= MAX_TABLE;
    case QN_OP_LINE_PRIM: return read_primitive(lines, line);
    default: return read_value(lines, &line->number);
  }
}

int qn_op_lines_next(qn_op_lines *lines, qn_op_line *line) {
  /* ORDER qn_op_line_kind */
  static const char words[][6] = {"in", "param", "const", "table", "prim", "out"};
  _Static_assert(sizeof words / sizeof words[0] == QN_OP_LINE_OUT + 1, "a word for each kind");
  char word[MAX_WORD + 1];
  if (lines->n_values && *lines->at && *lines->at++ != '\n') return -1; /* surplus words on the line before */
  if (!*lines->at) return 0;
  if (!read_word(lines, word)) return -1;
  for (uint8_t kind = 0; kind <= QN_OP_LINE_OUT; kind++) {
    if (strcmp(word, words[kind]) != 0) continue;
    *line = (qn_op_line){.kind = kind};
    if (!read_rest(lines, line)) return -1;
    lines->n_values += kind != QN_OP_LINE_OUT;
    return 1;
  }
  return -1;
}

int qn_op_lines_item(qn_op_lines *lines, uint64_t *bits) { return read_number(lines, 16, bits); }

int32_t qn_op_lines_count(const char *text) {
  int32_t n = 1;
  for (; *text; text++) n += *text == '\n';
  return n;
}
