/* SPDX-License-Identifier: Apache-2.0
 *
 * elementwise.c: see elementwise.h. Checks are ordered so that the most helpful error is found first. */
#include "core/kinds/elementwise.h"

#include <string.h>

#include "core/op/decide.h"
#include "core/tensor/device.h"

/* ---- Inferred ---- */

quern_status qn_elementwise_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen,
                                   uint8_t *dtype) {
  (void)chosen;
  quern_status status = qn_resolve_promoted(builtin, in_dtypes, dtype);
  if (status == QUERN_OK) *dtype = qn_resolve_result(builtin, *dtype, k);
  return status;
}

/* The dtype of output k. */
static quern_status infer_dtype(const quern_op *op, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype) {
  const quern_op_info *info = op->info;
  if (op->builtin) return op->builtin->kind->result(op->builtin, in_dtypes, k, chosen, dtype);
  if (info->n_in > 0) return qn_resolve_promotion(info, in_dtypes, dtype);
  return qn_tensor_read_dtype(chosen, info->name, &info->args[k], k, dtype);
}

quern_status qn_elementwise_infer(const quern_op *op, DLTensor *const *in, quern_shape *out) {
  const quern_op_info *info = op->info;
  qn_tensor tensors[QN_MAX_OPERANDS];
  uint8_t in_dtypes[QN_MAX_OPERANDS], dtypes[QN_MAX_OPERANDS];
  int64_t shape[QUERN_MAX_NDIM];
  int32_t ndim, room[QUERN_MAX_NDIM];
  int has_other = 0; /* an input that is not row-major */
  DLDevice device;
  quern_status status;
  for (int32_t k = 0; k < info->n_in; k++) {
    if ((status = qn_tensor_read(in[k], info->name, &info->args[k], k, 0, &tensors[k]))) return status;
    in_dtypes[k] = tensors[k].dtype;
    has_other |= !tensors[k].compact;
  }
  if (op->fused && (status = op->fused->infer(op, in_dtypes, dtypes))) return status;
  for (int32_t k = 0; k < info->n_out && !op->fused; k++) {
    if ((status = infer_dtype(op, in_dtypes, k, qn_shape_at(out, k)->dtype, &dtypes[k]))) return status;
  }
  if ((status = qn_tensor_broadcast(info->name, info->args, info->n_in, tensors, shape, &ndim))) return status;
  if ((status = qn_tensor_check_devices(info->name, info->args, info->n_in, tensors, 0, NULL, &device))) return status;
  const int keeps = has_other && (qn_kind_is_there(op) || op->registered->keeps_layout);
  const int32_t *order = keeps ? qn_tensor_order(ndim, shape, info->n_in, tensors, room) : NULL;
  for (int32_t k = 0; k < info->n_out; k++) {
    quern_shape *result = qn_shape_at(out, k);
    const qn_dtype_info *dtype = &qn_dtype_infos[dtypes[k]];
    result->dtype = (DLDataType){.code = dtype->code, .bits = dtype->bits, .lanes = 1};
    if (info->n_in > 0) { /* else shape and device are the caller's choice too */
      result->device = device;
      result->ndim = ndim;
      if (ndim) memcpy(result->shape, shape, (size_t)ndim * sizeof shape[0]);
    }
    qn_tensor_lay_out(result, order);
  }
  return QUERN_OK;
}

/* ---- Decided ---- */

/* The operands of one call, read: inputs, then outputs. */
typedef struct operand_list {
  qn_tensor tensor[QN_MAX_OPERANDS];
  uint8_t dtype[QN_MAX_OPERANDS];
  int32_t ndim;
  int32_t apart;    /* the first operand in memory that the host cannot read; -1: there is none */
  uint8_t has_data; /* no data pointer is NULL */
  int64_t shape[QUERN_MAX_NDIM];
} operand_list;

static quern_status read_operands(const quern_op_info *info, DLTensor *const *in, DLTensor *const *out, int needs_data,
                                  operand_list *operands) {
  operands->has_data = 1;
  operands->apart = -1;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    int is_output = k >= info->n_in;
    int32_t index = is_output ? k - info->n_in : k;
    qn_tensor *read = &operands->tensor[k];
    quern_status status = qn_tensor_read(is_output ? out[index] : in[index], info->name, &info->args[k], index, needs_data, read);
    if (status) return status;
    if (!read->ref.base) operands->has_data = 0;
    operands->dtype[k] = read->dtype;
    if (operands->apart < 0 && !qn_device_is_host(read->device)) operands->apart = k;
  }
  return QUERN_OK;
}

static quern_status check_shapes(const quern_op_info *info, operand_list *operands) {
  const qn_tensor *out = operands->tensor + info->n_in;
  quern_status status =
      qn_tensor_broadcast(info->name, info->args, info->n_in, operands->tensor, operands->shape, &operands->ndim);
  if (status) return status;
  if (info->n_in == 0) { /* the first output's shape is then that of the call */
    operands->ndim = out[0].ndim;
    for (int32_t d = 0; d < out[0].ndim; d++) operands->shape[d] = out[0].shape[d];
  }
  for (int32_t k = 0; k < info->n_out; k++) {
    status = qn_tensor_check_shape(info->name, &info->args[info->n_in + k], k, &out[k], operands->ndim, operands->shape);
    if (status) return status;
  }
  return QUERN_OK;
}

/* Checks dtypes and sets the op with the kernels that run. */
static quern_status resolve(const quern_op *op, const operand_list *operands, qn_decision *decision) {
  decision->called = decision->op = op;
  decision->param_dtype = 0;
  decision->n_slots = op->info->n_params;
  decision->slots = NULL;
  decision->specialised = NULL;
  decision->signature = &decision->own_signature;
  if (op->fused) return op->fused->decide(op, operands->dtype, decision);
  quern_status status = op->builtin->kind->resolve(op->builtin, operands->dtype, &decision->own_signature);
  if (status) return status;
  decision->param_dtype = decision->own_signature.param;
  if (!decision->backend || !decision->backend->stand_in) return QUERN_OK;
  return decision->backend->stand_in(op, operands->dtype, decision);
}

static quern_status check_device(const quern_op_info *info, const operand_list *operands, qn_decision *decision) {
  quern_status status = qn_tensor_check_devices(info->name, info->args, info->n_in, operands->tensor, info->n_out,
                                                operands->tensor + info->n_in, &decision->device);
  if (status || decision->backend) return status;
  return qn_decide_check_backend(info, decision);
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) quern_status qn_elementwise_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                             const quern_call *call, int needs_data, qn_decision *decision) {
  const quern_op_info *info = qn_registry_own_info(op);
  const DLDevice host = {kDLCPU, 0};
  qn_nest *nest = &decision->nest;
  operand_list operands;
  quern_status status = read_operands(info, in, out, needs_data, &operands);
  if (status) return status;
  status = qn_decide_choose_backend(info, operands.apart < 0 ? host : operands.tensor[operands.apart].device, decision);
  if (status) return status;
  if ((status = resolve(op, &operands, decision))) return status;
  if ((status = check_shapes(info, &operands))) return status;
  if ((status = check_device(info, &operands, decision))) return status;
  if (call && (status = qn_decide_check_flags(info, call->out_flags))) return status;
  if (info->n_params || (call && call->n_params)) {
    if ((status = qn_decide_convert(info, decision, call, &decision->params))) return status;
  }
  decision->n_in = info->n_in;
  decision->n_operands = info->n_in + info->n_out;
  for (int32_t k = 0; k < decision->n_operands; k++) {
    decision->dtypes[k] = operands.dtype[k];
    decision->sizes[k] = operands.tensor[k].size;
    decision->device_types[k] = (uint8_t)operands.tensor[k].device.device_type;
    decision->byte_offset[k] = operands.tensor[k].ref.offset;
  }
  qn_tensor_normalise(operands.ndim, operands.shape, info->n_in, operands.tensor, info->n_out, operands.tensor + info->n_in,
                      nest);
  nest->has_handles = decision->backend->has_handles;
  if (nest->n_elements == 0 || !operands.has_data) return QUERN_OK;
  return qn_tensor_check_overlap(info->name, info->args, nest, info->n_out, decision->sizes);
}
