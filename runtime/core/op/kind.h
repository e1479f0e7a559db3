/* SPDX-License-Identifier: Apache-2.0
 *
 * kind.h: what a kind of op is to the core: its dtype rules, how a call of it is decided and run. One file each in core/kinds; a
 * generated tree has those of its ops. Everything that is special about a kind is asked of this table. */
#ifndef QN_KIND_H
#define QN_KIND_H

#include "core/base/strbuf.h"
#include "core/op/decision.h"
#include "core/op/registry.h"
#include "core/op/resolve.h"

typedef struct qn_kind {
  const char *name;
  uint8_t keeps_bits;    /* its kernels move values, of dtypes of bits (QN_B8 ...) */
  uint8_t chooses_dtype; /* an output's dtype is its owner's choice: no expression can say it */
  uint8_t n_positions;   /* operands that its kernels have before the op's own: qn_nest.n_positions */
  uint8_t n_own_params;  /* parameters that they have behind the op's own: `bind` */
  const char *not_planned; /* why an op of this kind has no plan, as a phrase; NULL: it has */

  /* dtypes: of a kernel's operands: positions, inputs, outputs. Checks them. */
  quern_status (*resolve)(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature);
  /* The dtype that output k has of itself. chosen: what its owner has asked for. */
  quern_status (*result)(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype);

  /* For these counts are the op's own, and `call` is of this library's size, or NULL. */

  /* What quern_op_infer gives; quern_op_measure too, where `measure` is NULL. */
  quern_status (*infer)(const quern_op *op, DLTensor *const *in, quern_shape *out);
  quern_status (*measure)(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call);
  /* Reads and checks the operands and decides the call, for a backend to prepare and launch. needs_data 0: data pointers may be
   * NULL; the overlap of operands is then checked only if none is. */
  quern_status (*decide)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, int needs_data,
                         qn_decision *decision);
  /* Writes the parameters that follow from the decision behind those of the call. NULL: there are none. */
  void (*bind)(const qn_decision *decision, qn_params *params);

  /* Of a kind that runs its calls itself, instead of the two above; else NULL. */
  quern_status (*call)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call);
  quern_status (*explain)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, qn_strbuf *buf);
} qn_kind;

/* What an op without a row is: an expression, an op that the host has registered. */
extern const qn_kind qn_kind_elementwise;

static inline const qn_kind *qn_kind_of(const quern_op *op) { return op->builtin ? op->builtin->kind : &qn_kind_elementwise; }

/* Whether the library has an op of its own, the registered implementation aside. */
static inline int qn_kind_is_there(const quern_op *op) { return op->builtin || op->fused; }

/* Element k of a caller's array of shapes, whose structs may be longer than ours. */
static inline quern_shape *qn_shape_at(quern_shape *out, int32_t k) {
  return (quern_shape *)(void *)((char *)out + (size_t)k * out->size);
}

/* Dtypes that the op's own row rules. */
static inline quern_status qn_kind_resolve(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  return builtin->kind->resolve(builtin, dtypes, signature);
}

#endif
