/* SPDX-License-Identifier: Apache-2.0
 *
 * kind.h: the interface of a kind of op: its dtype rules, and how its calls are decided and run. Each kind is a file of
 * core/kinds; a generated tree has only those of its ops. All that is special about a kind is in this table. */
#ifndef QN_KIND_H
#define QN_KIND_H

#include "core/base/status.h"
#include "core/op/decision.h"
#include "core/op/registry.h"
#include "core/op/resolve.h"

/* ORDER LAUNCHED. The work that a device's kernels share out: items of the output; rows (core/row); rows that are scanned, for which
 * decisions have `launch`. */
typedef enum qn_launched { QN_LAUNCHED_ITEMS, QN_LAUNCHED_ROWS, QN_LAUNCHED_SCANS, QN_LAUNCHED_COUNT } qn_launched;

typedef struct qn_kind {
  const char *name;
  uint8_t keeps_bits;    /* its kernels copy values bit for bit, as the bits dtypes QN_B8 ... */
  uint8_t chooses_dtype; /* the caller chooses the outputs' dtype; such an op cannot be part of an expression */
  uint8_t n_positions;   /* operands of its kernels before the op's own: qn_nest.n_positions */
  uint8_t n_own_params;  /* parameters of its kernels after the op's own: `bind` */
  uint8_t has_own_entry; /* its ops are compiled as themselves, not as the expression of a call */
  uint8_t launched;      /* qn_launched: how devices run its kernels */
  const char *not_planned; /* the reason why ops of this kind cannot be prepared, as a phrase; NULL: they can */

  /* Checks the dtypes of a kernel's operands (positions, inputs, outputs) and finds the kernels for them. */
  quern_status (*resolve)(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature);
  /* The dtype of output k. chosen: the dtype that the caller asks for, used where chooses_dtype is 1. */
  quern_status (*result)(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype);

  /* For these counts are the op's own, and `call` is of this library's size, or NULL. */

  /* Implements quern_op_infer, and quern_op_measure too where `measure` is NULL. */
  quern_status (*infer)(const quern_op *op, DLTensor *const *in, quern_shape *out);
  quern_status (*measure)(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call);
  /* Reads and checks the operands and decides the call, for a backend to prepare and launch. needs_data 0: data pointers may be
   * NULL; overlap is then checked only if all pointers are set. */
  quern_status (*decide)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, int needs_data,
                         qn_decision *decision);
  /* Appends the kind's own parameters, computed from the decision, to those of the call. NULL: there are none. */
  void (*bind)(const qn_decision *decision, qn_params *params);
  /* Whether a run of a plan may have the parameters of `call`. NULL: it may have any. */
  quern_status (*check_run)(const qn_decision *decision, const quern_call *call);

  /* For a kind that runs its calls itself: they replace `decide` and `bind`. Else NULL. */
  quern_status (*call)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call);
  quern_status (*explain)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, qn_strbuf *buf);
} qn_kind;

/* The implementation of an op without kernels of its own: an expression, or an op of a spec. It is above the core. */
typedef struct qn_fused {
  /* Checks the dtypes (inputs, then outputs). Sets the decision's specialised, signature, slots and, on the CPU, backend. */
  quern_status (*decide)(const quern_op *op, const uint8_t *dtypes, qn_decision *decision);
  /* The dtypes of the outputs where the caller asks for none. */
  quern_status (*infer)(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes);
} qn_fused;

static inline const qn_kind *qn_kind_of(const quern_op *op) { return op->own_kind; }

/* Whether the library itself implements the op, apart from a registered implementation. */
static inline int qn_kind_is_there(const quern_op *op) { return op->builtin || op->fused; }

/* The size of a shape before it had strides. */
#define QN_SHAPE_LEAST offsetof(quern_shape, strides)

/* Element k of a caller's array of shapes. The caller's structs may be longer than ours. */
static inline quern_shape *qn_shape_at(quern_shape *out, int32_t k) { return (quern_shape *)(void *)((char *)out + (size_t)k * out->size); }

#endif
