/* SPDX-License-Identifier: Apache-2.0
 *
 * specialise.h: a fused op for operands of certain dtypes: what it computes by, which is a built op or a program of the
 * interpreter. Knows no compiled code. */
#ifndef QN_SPECIALISE_H
#define QN_SPECIALISE_H

#include <stdatomic.h>

#include "base/digest.h"
#include "core/op/fused.h"
#include "lang/expression.h"
#include "run/interpreter.h"
#include "toolchain/generator.h"

/* The op for operands of certain dtypes. Never changed after it is made, but for its layouts. */
typedef struct qn_specialisation {
  struct qn_specialisation *next;
  qn_specialised specialised;
  qn_interpreted *interpreted; /* NULL: one built op computes it: */
  const qn_builtin *built;
  _Atomic(struct qn_layout *) layouts; /* layouts.h */
  uint8_t dtypes[QN_MAX_OPERANDS];
  uint8_t results[QN_MAX_OPERANDS]; /* the dtypes that the outputs have of themselves */
} qn_specialisation;

typedef struct qn_fused_op {
  qn_fused face; /* first: what the core has of it */
  quern_op op;
  qn_generator *generator; /* these two are its context's */
  struct qn_jit *jit;
  _Atomic(qn_expression *) expression; /* of an op with a name: read at its first use; else never */
  qn_spec_op *spec;                    /* NULL: an expression of the host's, or a built-in op */
  qn_digest digest;                    /* of the specs that a spec's op depends on */
  _Atomic(qn_specialisation *) specialisations;
  quern_op_info info;
  char *strings;
} qn_fused_op;

static inline qn_fused_op *qn_fused_op_of(const quern_op *op) { return (qn_fused_op *)(uintptr_t)op->fused; }

static inline qn_specialisation *qn_specialisation_of(const qn_specialised *specialised) {
  return (qn_specialisation *)(uintptr_t)((const char *)specialised - offsetof(qn_specialisation, specialised));
}

/* Operands of its kernels: an index op has its indices before the output. */
static inline int32_t qn_fused_op_n_inputs(const qn_fused_op *fused) {
  return fused->op.info->n_in + qn_registry_is_index(&fused->op);
}
static inline int32_t qn_fused_op_n_operands(const qn_fused_op *fused) {
  return qn_fused_op_n_inputs(fused) + fused->op.info->n_out;
}

/* Whether its dtype is the choice of the output's owner, which no expression can say: an op that casts, or an index op. */
int qn_specialise_is_free(const qn_builtin *builtin);

/* The expression that the op is: read from its text at first use. */
quern_status qn_specialise_expression(qn_fused_op *fused, const qn_expression **expression);

/* For dtypes of inputs, then outputs, which it checks; made at first need. */
quern_status qn_specialise(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised);

/* The dtypes that the outputs have of themselves. */
quern_status qn_specialise_infer(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes);

/* Without its layouts. NULL is allowed. */
void qn_specialisation_free(qn_specialisation *specialisation);

#endif
