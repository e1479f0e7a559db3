/* SPDX-License-Identifier: Apache-2.0
 *
 * op_lines.h: reads the body of a spec's op, as lines of text written by the generator, one line at a time with its words
 * resolved. Does not know what the lines are used for.
 *
 * Line k defines value k, except `out` lines:
 *   in TYPE | param TYPE INDEX | const TYPE HEX | table TYPE N HEX... | prim OP TYPE ARG_TYPE A B C | out VALUE
 * The inputs come first, all of them, then the parameters; HEX has 16 digits. OP, TYPE and ARG_TYPE name a qn_primitive; of a
 * lookup, A is a table. */
#ifndef QN_OP_LINES_H
#define QN_OP_LINES_H

#include "lang/primitives.h"

#define QN_OP_LINE_MAX_ARGS 6

typedef enum qn_op_line_kind {
  QN_OP_LINE_IN,
  QN_OP_LINE_PARAM, /* number: its index */
  QN_OP_LINE_CONST, /* number: its bits */
  QN_OP_LINE_TABLE, /* number of items, at least 1; they follow */
  QN_OP_LINE_PRIM,
  QN_OP_LINE_OUT /* number: the value */
} qn_op_line_kind;

typedef struct qn_op_line {
  uint8_t kind, type; /* type: a qn_dtype, of all but OUT */
  uint64_t number;
  const qn_primitive *primitive;
  int32_t args[QN_OP_LINE_MAX_ARGS]; /* of a PRIM: values defined before */
} qn_op_line;

/* A reader's position: {text, 0} to begin with. */
typedef struct qn_op_lines {
  const char *at;
  int32_t n_values; /* defined so far */
} qn_op_lines;

/* 1: *line is the next line; 0: end of the text; -1: the text is malformed. */
int qn_op_lines_next(qn_op_lines *lines, qn_op_line *line);

/* Reads one item of a TABLE: all of them before the next line. 0: the text is malformed. */
int qn_op_lines_item(qn_op_lines *lines, uint64_t *bits);

/* An upper bound of the number of lines. */
int32_t qn_op_lines_count(const char *text);

#endif
