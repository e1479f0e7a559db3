/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h: what computes on devices of one type. The CPU's is core/cpu; other targets have folders of their own. */
#ifndef QN_BACKEND_H
#define QN_BACKEND_H

#include "core/base/strbuf.h"
#include "core/op/decision.h"

/* A decision made ready for many launches: the backend's, one piece of memory. Only read once it is made. */
typedef struct qn_run qn_run;

typedef struct qn_backend {
  const char *place;   /* "the cpu" */
  uint8_t device_type; /* whose tensors it takes; those that join them: core/tensor/device.h */
  uint8_t has_handles; /* `data` of its tensors is no address: it is given base and offset apart */
  /* Whether it runs here at all; NULL: launching says it. */
  quern_status (*check)(const quern_op_info *info);
  /* Where another op computes what a built-in one does there: sets decision->op to that, and `specialised` for these dtypes. NULL:
   * the op itself does. */
  quern_status (*stand_in)(const quern_op *op, const uint8_t *dtypes, qn_decision *decision);

  /* For all of these the decision's nest has elements, and `call` is of this library's size, or NULL. */

  /* Prepares and launches at the decision's own places. To be called, as `launch`, in the default floating point environment. */
  quern_status (*call)(const qn_decision *decision, const quern_call *call);
  /* *run: for free(). */
  quern_status (*prepare)(const qn_decision *decision, const quern_call *call, qn_run **run);
  /* ref: the operands' first items, as decision->nest.ref has them. */
  quern_status (*launch)(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                         const quern_call *call);
  /* How much of a workspace helps, in bytes; NULL: none does. */
  quern_status (*workspace)(const qn_decision *decision, const quern_call *call, size_t *bytes);
  const struct qn_device_memory *memory; /* what runtime/base/device_memory.h has for its devices; NULL: nothing */
  /* The lines of quern_op_explain; here the nest may have no elements. */
  quern_status (*explain)(const qn_decision *decision, const quern_call *call, qn_strbuf *buf);
} qn_backend;

/* Generated, ended by NULL: those that this library or tree has kernels for. */
extern const qn_backend *const qn_backends[];

/* NULL: none. */
static inline const qn_backend *qn_backend_of(DLDevice device) {
  const qn_backend *const *at = qn_backends;
  while (*at && (int)(*at)->device_type != (int)device.device_type) at++;
  return *at;
}

#endif
