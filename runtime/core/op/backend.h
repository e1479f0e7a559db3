/* SPDX-License-Identifier: Apache-2.0
 *
 * backend.h: the interface of a backend, which runs calls on devices of one type. The CPU's is core/cpu. */
#ifndef QN_BACKEND_H
#define QN_BACKEND_H

#include "core/base/status.h"
#include "core/op/decision.h"

/* A decision prepared for many launches. Each backend defines its own: one allocation, constant after it is made. */
typedef struct qn_run qn_run;

typedef struct qn_backend {
  const char *device_name; /* "the cpu" */
  uint8_t device_type; /* DLDeviceType of its tensors; host memory that it can use too: qn_device_joins */
  uint8_t has_handles; /* 1: a tensor's `data` is a handle, not an address; base and offset are passed separately */
  /* Whether this machine can run the op; NULL: the launch reports it. */
  quern_status (*check)(const quern_op_info *info);
  /* Replaces a built-in op by its stand-in on these devices, where it has one: sets decision->op to the stand-in and
   * decision->specialised for these dtypes. NULL: no op has a stand-in. */
  quern_status (*stand_in)(const quern_op *op, const uint8_t *dtypes, qn_decision *decision);
  /* Implements quern_op_workspace for the library's own kernels; NULL: no call uses a workspace. *bytes is 0 at first. */
  quern_status (*workspace)(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, size_t *bytes);

  /* For all of these the decision's nest has elements, and `call` is of this library's size, or NULL. */

  /* Prepares and launches at decision->nest.ref. `call` and `launch` need the default floating point environment. */
  quern_status (*call)(const qn_decision *decision, const quern_call *call);
  /* *run: freed by the caller with free(). */
  quern_status (*prepare)(const qn_decision *decision, const quern_call *call, qn_run **run);
  /* ref: the operands' first items, as decision->nest.ref has them. */
  quern_status (*launch)(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                         const quern_call *call);
  const struct qn_device_memory *memory; /* memory functions of its devices: runtime/base/memory/device_memory.h; NULL: none */
  /* Writes the lines of quern_op_explain. Here the nest may have no elements. */
  quern_status (*explain)(const qn_decision *decision, const quern_call *call, qn_strbuf *buf);
} qn_backend;

/* Generated: the backends with kernels in this library or tree, ended by NULL. */
extern const qn_backend *const qn_backends[];

/* The backend of a device; NULL: none. */
static inline const qn_backend *qn_backend_of(DLDevice device) {
  const qn_backend *const *at = qn_backends;
  while (*at && (int)(*at)->device_type != (int)device.device_type) at++;
  return *at;
}

#endif
