/* SPDX-License-Identifier: Apache-2.0
 *
 * dispatch.c: from a call to its implementation: the registered one, or the op's kind and the device's backend. See calls.h. */
#include "core/call/calls.h"

#include "core/base/float_env.h"
#include "core/op/backend.h"
#include "core/op/kind.h"

int qn_dispatch_falls_back(const quern_op *op, quern_status status, const qn_sentence *kept) {
  int declined = status == QUERN_E_UNSUPPORTED || status == QUERN_E_DTYPE || status == QUERN_E_DEVICE ||
                 status == QUERN_E_LAYOUT || status == QUERN_E_ALIGNMENT;
  if (status && !(declined && qn_kind_is_there(op))) return 0;
  qn_status_restore(kept);
  return declined;
}

static quern_status call_own(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  QN_IN_SCRATCH(qn_decision, decision);
  qn_float_env was = qn_float_env_enter(); /* also for the rounding of parameters */
  quern_status status = qn_kind_of(op)->decide(op, in, out, call, 1, decision);
  if (status == QUERN_OK && decision->nest.n_elements) status = decision->backend->call(decision, call);
  qn_float_env_leave(was);
  return status;
}

/* Asks the registered implementation. Returns 1 if it declines; else *status is the result. Not inlined, for its stack. */
__attribute__((noinline)) static int is_declined(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                 const quern_call *call, quern_status *status) {
  const quern_op_def *def = op->registered;
  qn_sentence kept;
  qn_status_keep(&kept);
  *status = def->call(def->self, def->n_in, in, def->n_out, out, call);
  return qn_dispatch_falls_back(op, *status, &kept);
}

quern_status qn_dispatch_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  const qn_kind *kind = qn_kind_of(op);
  quern_status status;
  if (op->registered && !is_declined(op, in, out, call, &status)) return status;
  return kind->call ? kind->call(op, in, out, call) : call_own(op, in, out, call);
}

/* The workspace of the library's own kernels: that of the first operand's backend that uses one. */
static quern_status own_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                  size_t *bytes) {
  const quern_op_info *info = qn_registry_own_info(op);
  *bytes = 0;
  for (int32_t k = 0; k < info->n_in + info->n_out && qn_kind_is_there(op); k++) {
    const DLTensor *tensor = k < info->n_in ? in[k] : out[k - info->n_in];
    const qn_backend *backend = tensor ? qn_backend_of(tensor->device) : NULL;
    if (backend && backend->workspace) return backend->workspace(op, in, out, call, bytes);
  }
  return QUERN_OK;
}

quern_status qn_dispatch_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   size_t *bytes) {
  const quern_op_def *def = op->registered;
  *bytes = 0;
  if (!def) return own_workspace(op, in, out, call, bytes);
  if (!def->workspace) return QUERN_OK;
  qn_sentence kept;
  qn_status_keep(&kept);
  quern_status status = def->workspace(def->self, def->n_in, in, def->n_out, out, call, bytes);
  if (!qn_dispatch_falls_back(op, status, &kept)) return status;
  return own_workspace(op, in, out, call, bytes);
}
