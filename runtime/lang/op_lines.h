/* SPDX-License-Identifier: Apache-2.0
 *
 * op_lines.h: what an op of a spec computes, in lines of text as the generator writes them -> one line at a time, its words
 * resolved. Knows nothing of what becomes of them.
 *
 * Line k defines value k, but `out` lines:
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
  QN_OP_LINE_TABLE, /* number: of items, at least 1; they follow */
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
  int32_t n_values; /* that have been defined */
} qn_op_lines;

/* 1: the next line; 0: there is none; -1: the text is not what it should be. */
int qn_op_lines_next(qn_op_lines *lines, qn_op_line *line);

/* The items of a TABLE, to be read before the next line. 0: the text is not what it should be. */
int qn_op_lines_item(qn_op_lines *lines, uint64_t *bits);

/* At least as many as the text has. */
int32_t qn_op_lines_count(const char *text);

#endif
