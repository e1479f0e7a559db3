/* SPDX-License-Identifier: Apache-2.0
 *
 * infer.c: shapes and dtypes of an op's outputs, inferred from its inputs' descriptors or measured from their data. See
 * calls.h. */
#include "core/call/calls.h"

#include <string.h>

#include "core/op/kind.h"
#include "core/tensor/tensor.h"

/* Infers by the op's kind; a registered op without a row is taken as elementwise. */
static quern_status infer_own(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  if (!op->builtin && qn_registry_is_measured(op->info))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: its output's shape depends on values, and its registered implementation "
                          "has no function infer", op->info->name);
  return qn_kind_of(op)->infer(op, in, out);
}

/* Asks a function of the registered implementation, with shapes of the size that it knows. Not inlined, for its stack. */
__attribute__((noinline)) static quern_status ask(const quern_op_def *def, DLTensor *const *in, quern_shape *out, int measures,
                                                  const quern_call *call) {
  QN_IN_SCRATCH(struct { quern_shape of[QN_MAX_OPERANDS]; }, room);
  quern_shape *const shapes = room->of;
  const size_t size = def->size > offsetof(quern_op_def, keeps_layout) ? sizeof *shapes : QN_SHAPE_LEAST, first = sizeof size, n = out->size < sizeof *shapes ? out->size : sizeof *shapes;
  int32_t order[QUERN_MAX_NDIM];
  memset(shapes, 0, (size_t)def->n_out * sizeof *shapes);
  for (int32_t k = 0; k < def->n_out; k++) {
    memcpy(qn_shape_at(shapes, k), qn_shape_at(out, k), QN_SHAPE_LEAST);
    qn_shape_at(shapes, k)->size = size;
  }
  quern_status status = measures ? def->measure(def->self, def->n_in, in, def->n_out, shapes, call)
                                 : def->infer(def->self, def->n_in, in, def->n_out, shapes);
  for (int32_t k = 0; k < def->n_out && status == QUERN_OK; k++) {
    quern_shape *answer = qn_shape_at(shapes, k), *result = qn_shape_at(out, k);
    memcpy((char *)result + first, (char *)answer + first, (n < size ? n : size) - first);
    answer->size = size;
    qn_tensor_lay_out(result, (uint32_t)answer->ndim <= QUERN_MAX_NDIM ? qn_tensor_order_of(answer, order) : NULL);
  }
  return status;
}

/* Asks the registered implementation; its function measure, if it has one, where `measures`. Returns 1 if it has no answer. */
static int has_no_answer(const quern_op *op, DLTensor *const *in, quern_shape *out, int measures, const quern_call *call,
                       quern_status *status) {
  const quern_op_def *def = op->registered;
  qn_sentence kept;
  measures = measures && def && def->measure;
  if (!measures && !(def && def->infer)) return 1;
  qn_status_keep(&kept);
  *status = ask(def, in, out, measures, call);
  return qn_dispatch_falls_back(op, *status, &kept);
}

quern_status qn_infer(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  quern_status status;
  return has_no_answer(op, in, out, 0, NULL, &status) ? infer_own(op, in, out) : status;
}

/* Refuses unknown extents (-1) from a registered implementation: measured shapes must be exact. */
static quern_status check_measured(const quern_op_info *info, quern_shape *out) {
  for (int32_t k = 0; k < info->n_out; k++) {
    const quern_shape *shape = qn_shape_at(out, k);
    int is_shape = shape->ndim >= 0 && shape->ndim <= QUERN_MAX_NDIM;
    for (int32_t d = 0; is_shape && d < shape->ndim; d++) is_shape = shape->shape[d] >= 0;
    if (!is_shape)
      return qn_tensor_fail(QUERN_E_UNSUPPORTED, info->name, &info->args[info->n_in + k], k,
                            "its registered implementation does not say how large it is");
  }
  return QUERN_OK;
}

quern_status qn_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  const qn_kind *kind = qn_kind_of(op);
  quern_status status;
  if (!qn_registry_is_measured(op->info) && !kind->measure) return qn_infer(op, in, out);
  if (!has_no_answer(op, in, out, 1, call, &status)) return status ? status : check_measured(op->info, out);
  return kind->measure ? kind->measure(op, in, out, call) : infer_own(op, in, out);
}
