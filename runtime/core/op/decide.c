/* SPDX-License-Identifier: Apache-2.0
 *
 * decide.c: see decide.h. */
#include "core/op/decide.h"

#include "core/tensor/device.h"

quern_status qn_decide_choose_backend(const quern_op_info *info, DLDevice device, qn_decision *decision) {
  const qn_backend *backend = qn_backend_of(device);
  decision->device = device;
  decision->backend = backend;
  if (!backend && device.device_type == kDLCPU) return qn_decide_check_backend(info, decision); /* no kernels at all */
  return backend && backend->check ? backend->check(info) : QUERN_OK;
}

quern_status qn_decide_check_backend(const quern_op_info *info, const qn_decision *decision) {
  char text[QN_DEVICE_CHARS];
  const char *where = qn_backends[0] ? qn_backends[0]->device_name : "another device";
  if (decision->backend) return QUERN_OK;
  if (decision->device.device_type == kDLCPU)
    return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on the cpu, which no kernels are built for; copy them to %s",
                          info->name, where);
  return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on %s, which this library has no kernels for; copy them to %s",
                        info->name, qn_device_text(decision->device, text), where);
}

quern_status qn_decide_convert(const quern_op_info *info, const qn_decision *decision, const quern_call *call,
                                 qn_params *params) {
  const quern_scalar *given = call ? call->params : NULL;
  int32_t n_given = given ? call->n_params : 0;
  const qn_kind *kind = qn_kind_of(decision->called);
  quern_status status =
      qn_params_convert(info, decision->param_dtype, decision->n_slots, decision->slots, n_given, given, params);
  if (kind->bind && status == QUERN_OK) kind->bind(decision, params);
  return status;
}

#define DLPACK_READ_ONLY 1u

quern_status qn_decide_check_flags(const quern_op_info *info, const uint64_t *out_flags) {
  if (!out_flags) return QUERN_OK;
  for (int32_t k = 0; k < info->n_out; k++)
    if (out_flags[k] & DLPACK_READ_ONLY)
      return qn_tensor_fail(QUERN_E_READONLY, info->name, &info->args[info->n_in + k], k, "it is flagged read-only");
  return QUERN_OK;
}
