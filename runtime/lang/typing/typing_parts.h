/* SPDX-License-Identifier: Apache-2.0
 *
 * typing_parts.h: what the files of typing share: typing.c, typing_values.c, typing_operators.c.
 *
 * An operand is strong or weak. A strong one has a value, and the dtype for promotion: an f16 is computed in f32, and stays an f16. A weak
 * one is a number, or a tree of numbers and parameters. It takes the dtype of the operand that it meets. */
#ifndef QN_TYPING_PARTS_H
#define QN_TYPING_PARTS_H

#include "lang/parse/expression.h"
#include "lang/typing/row_values.h"
#include "lang/typing/values.h"

typedef enum qn_typing_operand_kind { QN_STRONG, QN_NUMBER, QN_TREE } qn_typing_operand_kind;

typedef struct qn_typing_operand {
  uint8_t kind;
  uint8_t dtype;    /* QN_STRONG */
  uint8_t is_float; /* weak: an integer operand beside it is converted to a float */
  int32_t value;    /* QN_STRONG: the value; QN_TREE: its root branch; its nodes are the branches from `first` to it */
  int32_t first;
  int32_t finer; /* QN_STRONG: the value before it was rounded to the dtype, and 1, of which an output is rounded; 0: this one */
  qn_number number; /* QN_NUMBER */
} qn_typing_operand;

/* A node of a weak tree. Arguments come before the branches that use them. */
typedef struct qn_typing_branch {
  const char *op; /* NULL: a leaf */
  int32_t n_args, args[2];
  int32_t param; /* leaf: which, or -1: the number */
  qn_number number;
  int32_t value; /* while the tree is instantiated */
} qn_typing_branch;

typedef struct qn_typing {
  const qn_expression *expression;
  const uint8_t *in_dtypes;
  const qn_instruction *at; /* what is being typed */
  quern_status status;
  qn_values values;
  qn_typing_operand *stack, *variables;
  qn_typing_branch *branches;
  qn_row_calls row_calls; /* those that have been typed, for derivatives */
  int32_t n_stack, n_branches;
} qn_typing;

static inline const char *qn_typing_dtype_name(uint8_t dtype) { return qn_dtype_infos[dtype].name; }
static inline uint8_t qn_typing_compute_of(uint8_t dtype) { return qn_dtype_infos[dtype].compute; }
static inline uint8_t qn_typing_floating_of(uint8_t dtype) { return qn_dtype_infos[dtype].floating; }
static inline uint8_t qn_typing_kind_of(uint8_t dtype) { return qn_dtype_infos[dtype].kind; }
static inline int qn_typing_is_weak(const qn_typing_operand *x) { return x->kind != QN_STRONG; }
static inline qn_typing_operand qn_typing_strong(int32_t value, uint8_t dtype) { return (qn_typing_operand){.kind = QN_STRONG, .dtype = dtype, .value = value}; }

const qn_source *qn_typing_source(const qn_typing *t, qn_source *source);

/* Records an error at the instruction. FAIL is 0, for functions that return a success flag; NO_VALUE is -1, for those that return a value. */
#define QN_TYPING_FAIL_AS(t, code, ...) ((t)->status = qn_syntax_fail(qn_typing_source(t, &(qn_source){0}), code, (t)->at->at, __VA_ARGS__), 0)
#define QN_TYPING_FAIL(t, ...) QN_TYPING_FAIL_AS(t, QUERN_E_DTYPE, __VA_ARGS__)
#define QN_TYPING_NO_VALUE(t, ...) (QN_TYPING_FAIL(t, __VA_ARGS__) - 1)

int qn_typing_fail_common(qn_typing *t, uint8_t a, uint8_t b);
int qn_typing_fail_no_dtype(qn_typing *t, const qn_typing_operand *x);

/* The sign of the operator that is being typed, for messages. */
static inline const char *qn_typing_sign_text(const qn_typing *t) { return qn_syntax_signs[t->at->what]; }

/* ---- Values: their number, or -1 with the status set ---- */

/* Sets the status: too many values, or out of memory. */
int32_t qn_typing_no_room(qn_typing *t);
int32_t qn_typing_add(qn_typing *t, qn_value like, const int32_t *args);
int32_t qn_typing_constant(qn_typing *t, uint8_t type, uint64_t bits);
int32_t qn_typing_primitive(qn_typing *t, const char *op, uint8_t type, int32_t n, const int32_t *args);
int32_t qn_typing_unary(qn_typing *t, const char *op, uint8_t type, int32_t a);
int32_t qn_typing_binary(qn_typing *t, const char *op, uint8_t type, int32_t a, int32_t b);
int32_t qn_typing_converted(qn_typing *t, int32_t value, uint8_t type);
static inline uint8_t qn_typing_type_of(const qn_typing *t, int32_t value) { return t->values.values[value].type; }

/* A value rounded to a dtype, in its compute type. */
int32_t qn_typing_rounded(qn_typing *t, int32_t value, uint8_t dtype);

/* A weak operand in a compute type. */
int32_t qn_typing_weak_value(qn_typing *t, const qn_typing_operand *x, uint8_t type);

/* An operand converted to the compute type of a dtype; not rounded. */
int32_t qn_typing_promoted(qn_typing *t, const qn_typing_operand *x, uint8_t dtype);

qn_typing_operand qn_typing_tree_leaf(qn_typing *t, qn_typing_branch leaf);

/* A tree over weak operands, at least one of which is a tree. */
qn_typing_operand qn_typing_tree_of(qn_typing *t, const char *op, int32_t n, const qn_typing_operand *args);

/* ---- Operands: 1 with *made, or 0 with the status set ---- */

/* A value of a dtype; a number, or what is wrong with it. */
int qn_typing_gives(int32_t value, uint8_t dtype, qn_typing_operand *made);
int qn_typing_number_made(qn_typing *t, const char *wrong, qn_number number, qn_typing_operand *made);

/* ---- Operators: 1 with *made, or 0 with the status set ---- */

/* The common dtype of a call's arguments, except `conditions` (bit k: argument k); bool if all are conditions. */
int qn_typing_unify_arguments(qn_typing *t, int32_t n, const qn_typing_operand *args, uint32_t conditions, uint8_t *dtype);

/* An operand converted to a condition: a value. */
int32_t qn_typing_condition(qn_typing *t, const qn_typing_operand *x);

int qn_typing_binary_operator(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made);
int qn_typing_unary_operator(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made);
int qn_typing_select(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made);

#endif
