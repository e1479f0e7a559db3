/* SPDX-License-Identifier: Apache-2.0
 *
 * instruction.h: the instructions of a parsed expression. Knows no grammar and no dtype rules. */
#ifndef QN_INSTRUCTION_H
#define QN_INSTRUCTION_H

#include "core/op/registry.h"
#include "lang/primitives.h"
#include "lang/parse/syntax.h"

typedef enum qn_code_kind {
  QN_CODE_NUMBER,
  QN_CODE_INPUT,    /* index */
  QN_CODE_PARAM,    /* index */
  QN_CODE_VARIABLE, /* index: its value */
  QN_CODE_UNARY,    /* what: a qn_sign */
  QN_CODE_BINARY,   /* what: a qn_sign */
  QN_CODE_SELECT,   /* condition, one, other */
  QN_CODE_CAST,     /* what: a qn_dtype */
  QN_CODE_OP,       /* n_args: inputs, then parameters; what: which of its outputs */
  QN_CODE_FUNCTION, /* n_args */
  QN_CODE_GRAD,     /* operands: an expression, and the input to differentiate by */
  QN_CODE_ASSIGN    /* pops the value; index: the variable; what: its declared qn_dtype, QN_ASSIGN_AUTO, or QN_DTYPE_NONE: an output */
} qn_code_kind;

#define QN_ASSIGN_AUTO 0xfe /* a local of the dtype that the value has */

/* The axes of a call that reduces or scans, as it is written. */
#define QN_MAX_AXES 32
typedef struct qn_axes {
  uint8_t is_all, keepdims;
  uint8_t reverse, exclusive; /* of a scan */
  uint8_t n;
  int8_t axis[QN_MAX_AXES]; /* negative: counted from the last dimension of the argument */
} qn_axes;

/* An expression is a list of these in postfix order, operands before operators: it is evaluated by one walk with a stack of
 * values. */
typedef struct qn_instruction {
  uint8_t kind, what;
  uint16_t n_args;
  uint16_t axes; /* of a call that reduces: the number of its axes in the expression's list */
  uint32_t at; /* its place in the text */
  union {
    qn_number number;
    int32_t index;
    const quern_op *op;
    const qn_function *function;
  } v;
} qn_instruction;

#endif
