/* infer.c: see infer.h. */
#include "core/call/infer.h"

#include <string.h>

#include "core/call/dispatch.h"
#include "core/kinds/dynamic.h"
#include "core/op/fused.h"
#include "core/op/resolve.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

static DLDataType dlpack_dtype(uint8_t dtype) {
  const qn_dtype_info *info = &qn_dtype_infos[dtype];
  return (DLDataType){.code = info->code, .bits = info->bits, .lanes = 1};
}

/* The dtype of output k. `chosen`: the caller's wish, read where it is his to choose. */
static quern_status infer_dtype(const quern_op *op, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype) {
  const quern_op_info *info = op->info;
  if (!op->builtin) {
    if (info->n_in > 0) return qn_resolve_promotion(info, in_dtypes, dtype);
  } else if (op->builtin->rule == QN_RULE_INDEX) {
    qn_signature signature;
    quern_status status = qn_tensor_read_dtype(chosen, info->name, &info->args[0], 0, dtype);
    return status ? status : qn_resolve_index(op->builtin, *dtype, &signature);
  } else if (op->builtin->rule != QN_RULE_CAST) {
    return qn_resolve_result(op->builtin, in_dtypes, k, dtype);
  }
  return qn_tensor_read_dtype(chosen, info->name, &info->args[info->n_in + k], k, dtype);
}

/* As an elementwise op. */
static quern_status infer_elementwise(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  const quern_op_info *info = op->info;
  qn_tensor tensors[QN_MAX_OPERANDS];
  uint8_t in_dtypes[QN_MAX_OPERANDS], dtypes[QN_MAX_OPERANDS];
  int64_t shape[QUERN_MAX_NDIM];
  int32_t ndim;
  DLDevice device;
  quern_status status;
  for (int32_t k = 0; k < info->n_in; k++) {
    status = qn_tensor_read(in[k], info->name, &info->args[k], k, 0, &tensors[k]);
    if (status) return status;
    in_dtypes[k] = tensors[k].dtype;
  }
  if (op->fused && (status = op->fused->infer(op, in_dtypes, dtypes))) return status;
  for (int32_t k = 0; k < info->n_out && !op->fused; k++) {
    status = infer_dtype(op, in_dtypes, k, qn_infer_shape_at(out, k)->dtype, &dtypes[k]);
    if (status) return status;
  }
  status = qn_tensor_broadcast(info->name, info->args, info->n_in, tensors, shape, &ndim);
  if (status) return status;
  status = qn_tensor_check_devices(info->name, info->args, info->n_in, tensors, 0, NULL, &device);
  if (status) return status;
  for (int32_t k = 0; k < info->n_out; k++) {
    quern_shape *result = qn_infer_shape_at(out, k);
    result->dtype = dlpack_dtype(dtypes[k]);
    if (info->n_in == 0) continue; /* shape and device are the caller's choice too */
    result->device = device;
    result->ndim = ndim;
    if (ndim) memcpy(result->shape, shape, (size_t)ndim * sizeof shape[0]);
  }
  return QUERN_OK;
}

/* Of the library's own op, or an elementwise one. */
static quern_status infer_own(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  if (qn_registry_is_dynamic(op)) return qn_dynamic_infer(op, in, out);
  if (op->info->op_class == QUERN_CLASS_DYNAMIC && !op->builtin)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: its output's shape depends on values, and its registered implementation "
                          "has no function infer", op->info->name);
  return infer_elementwise(op, in, out);
}

quern_status qn_infer(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  const quern_op_def *def = op->registered;
  if (def && def->infer) {
    qn_sentence kept;
    qn_status_keep(&kept);
    quern_status status = def->infer(def->self, def->n_in, in, def->n_out, out);
    if (!qn_dispatch_falls_back(op->builtin || op->fused, status, &kept)) return status;
  }
  return infer_own(op, in, out);
}

/* What a registered op has said must be exact. */
static quern_status check_measured(const quern_op_info *info, quern_shape *out) {
  for (int32_t k = 0; k < info->n_out; k++) {
    const quern_shape *shape = qn_infer_shape_at(out, k);
    int is_shape = shape->ndim >= 0 && shape->ndim <= QUERN_MAX_NDIM;
    for (int32_t d = 0; is_shape && d < shape->ndim; d++) is_shape = shape->shape[d] >= 0;
    if (!is_shape)
      return qn_tensor_fail(QUERN_E_UNSUPPORTED, info->name, &info->args[info->n_in + k], k,
                            "its registered implementation does not say how large it is");
  }
  return QUERN_OK;
}

quern_status qn_measure(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  const quern_op_def *def = op->registered;
  if (op->info->op_class != QUERN_CLASS_DYNAMIC) return qn_infer(op, in, out);
  if (def && (def->measure || def->infer)) {
    qn_sentence kept;
    qn_status_keep(&kept);
    quern_status status = def->measure ? def->measure(def->self, def->n_in, in, def->n_out, out, call)
                                       : def->infer(def->self, def->n_in, in, def->n_out, out);
    if (!qn_dispatch_falls_back(qn_registry_is_dynamic(op), status, &kept))
      return status ? status : check_measured(op->info, out);
  }
  return qn_registry_is_dynamic(op) ? qn_dynamic_measure(op, in, out, call) : infer_own(op, in, out);
}
