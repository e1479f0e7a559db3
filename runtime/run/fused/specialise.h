/* SPDX-License-Identifier: Apache-2.0
 *
 * specialise.h: a fused op for one choice of operand dtypes: computed by a built op or by a program of the interpreter.
 * Knows no compiled code. */
#ifndef QN_SPECIALISE_H
#define QN_SPECIALISE_H

#include <stdatomic.h>

#include "base/digest.h"
#include "core/op/kind.h"
#include "lang/parse/expression.h"
#include "run/interpret/interpreter.h"
#include "toolchain/generator.h"
#include "run/fused/specialised.h"

/* The op for one choice of operand dtypes. Immutable, except its layouts. */
typedef struct qn_specialisation {
  struct qn_specialisation *next;
  qn_specialised specialised;
  qn_interpreted *interpreted; /* NULL: one built op computes it: */
  const qn_builtin *built;
  struct qn_row_stages *rows; /* of an expression that reduces, in place of both; else NULL */
  _Atomic(struct qn_layout *) layouts; /* layouts.h */
  uint8_t dtypes[QN_MAX_OPERANDS];
  uint8_t results[QN_MAX_OPERANDS]; /* the inferred dtypes of the outputs */
} qn_specialisation;

typedef struct qn_fused_op {
  qn_fused base; /* first: the core's view of it */
  quern_op op;
  qn_generator *generator; /* these two are its context's */
  struct qn_jit *jit;
  _Atomic(qn_expression *) expression; /* of a named op: parsed at first use */
  qn_spec_op *spec;                    /* NULL: of an expression, or a built-in op */
  qn_digest digest;                    /* of the specs that a spec's op depends on */
  _Atomic(qn_specialisation *) specialisations;
  quern_op_info info;
  char *strings;
} qn_fused_op;

static inline qn_fused_op *qn_fused_op_of(const quern_op *op) { return (qn_fused_op *)(uintptr_t)op->fused; }

static inline qn_specialisation *qn_specialisation_of(const qn_specialised *specialised) {
  return (qn_specialisation *)(uintptr_t)((const char *)specialised - offsetof(qn_specialisation, specialised));
}

/* The numbers of its kernels' inputs and operands; an index op has the positions as a further input. */
static inline int32_t qn_fused_op_n_inputs(const qn_fused_op *fused) {
  return fused->op.info->n_in + qn_kind_of(&fused->op)->n_positions;
}
static inline int32_t qn_fused_op_n_operands(const qn_fused_op *fused) {
  return qn_fused_op_n_inputs(fused) + fused->op.info->n_out;
}

/* Whether the op runs by itself only: no expression computes what it computes. */
int qn_specialise_is_free(const qn_builtin *builtin);

/* The op's expression; parsed at first use. */
quern_status qn_specialise_expression(qn_fused_op *fused, const qn_expression **expression);

/* The specialisation for these dtypes (inputs, then outputs), which it checks; made at first need. */
quern_status qn_specialise(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised);

/* Infers the outputs' dtypes. */
quern_status qn_specialise_infer(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes);

/* The same of an expression that reduces. *stages: of some specialisation for these inputs; their reductions are the same in all. */
quern_status qn_specialise_infer_rows(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes,
                                      const struct qn_row_stages **stages);

/* The digest of the specs of ops; zero if all are built in. */
qn_digest qn_specs_of_ops(int32_t n, const quern_op *const *ops);

/* The same of an expression's. */
qn_digest qn_specs_of(const qn_expression *expression);

/* Does not free its layouts. NULL is allowed. */
void qn_specialisation_free(qn_specialisation *specialisation);

#endif
