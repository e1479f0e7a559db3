/* SPDX-License-Identifier: Apache-2.0
 *
 * row_call.c: see row_call.h. */
#include "core/row/row_call.h"

#include "core/base/status.h"
#include "core/op/kind.h"
#include "core/row/row_nest.h"
#include "core/tensor/device.h"

quern_status qn_row_read_inputs(const quern_op_info *info, DLTensor *const *in, int needs_data, qn_row_operands *operands) {
  operands->has_data = 1;
  for (int32_t k = 0; k < info->n_in; k++) {
    quern_status status = qn_tensor_read(in[k], info->name, &info->args[k], k, needs_data, &operands->tensor[k]);
    if (status) return status;
    operands->dtype[k] = operands->tensor[k].dtype;
    operands->has_data &= operands->tensor[k].ref.base != NULL || operands->tensor[k].n_elements == 0;
  }
  return qn_tensor_broadcast(info->name, info->args, info->n_in, operands->tensor, operands->shape, &operands->ndim);
}

/* The shape of output k. Returns its rank. */
static int32_t output_shape(const qn_row_operands *operands, int32_t k, int64_t *shape) {
  const uint32_t axes = operands->reduced >> k & 1 ? operands->axes : 0;
  return qn_row_shape(operands->ndim, operands->shape, axes, operands->keepdims >> k & 1, shape);
}

quern_status qn_row_read_outputs(const quern_op_info *info, DLTensor *const *out, int needs_data, const uint8_t *results,
                                 qn_row_operands *operands) {
  for (int32_t k = 0; k < info->n_out; k++) {
    int64_t shape[QUERN_MAX_NDIM];
    const int32_t ndim = output_shape(operands, k, shape);
    const quern_arg_info *arg = &info->args[info->n_in + k];
    qn_tensor *read = &operands->tensor[info->n_in + k];
    quern_status status = qn_tensor_read(out[k], info->name, arg, k, needs_data, read);
    if (status) return status;
    operands->dtype[info->n_in + k] = read->dtype;
    operands->has_data &= read->ref.base != NULL || read->n_elements == 0;
    if ((status = qn_resolve_stored(info, k, results[k], read->dtype))) return status;
    if ((status = qn_tensor_check_shape(info->name, arg, k, read, ndim, shape))) return status;
  }
  return QUERN_OK;
}

/* Lays out output k with the dimensions that are left of an order of all. */
static void row_lay_out(const qn_row_operands *operands, int32_t k, const int32_t *order, quern_shape *result) {
  const uint32_t dropped = operands->reduced >> k & ~operands->keepdims >> k & 1 ? operands->axes : 0;
  int32_t left[QUERN_MAX_NDIM], n = 0;
  for (int32_t i = 0; order && i < operands->ndim; i++)
    if (!(dropped >> order[i] & 1)) left[n++] = order[i] - __builtin_popcount(dropped & ((1u << order[i]) - 1));
  qn_tensor_lay_out(result, order ? left : NULL);
}

quern_status qn_row_measure(const quern_op_info *info, const qn_row_operands *operands, const uint8_t *results, quern_shape *out) {
  DLDevice device;
  int32_t room[QUERN_MAX_NDIM];
  quern_status status = qn_tensor_check_devices(info->name, info->args, info->n_in, operands->tensor, 0, NULL, &device);
  const int32_t *order = qn_tensor_order(operands->ndim, operands->shape, info->n_in, operands->tensor, room);
  for (int32_t k = 0; k < info->n_out && status == QUERN_OK; k++) {
    quern_shape *result = qn_shape_at(out, k);
    const qn_dtype_info *of = &qn_dtype_infos[results[k]];
    result->dtype = (DLDataType){.code = of->code, .bits = of->bits, .lanes = 1};
    result->device = device;
    result->ndim = output_shape(operands, k, result->shape);
    row_lay_out(operands, k, order, result);
  }
  return status;
}

quern_status qn_row_check_empty(const quern_op_info *info, const qn_row_program *program, const qn_row_operands *operands) {
  int32_t empty = -1;
  if (program->has_empty) return QUERN_OK;
  for (int32_t d = 0; d < operands->ndim; d++) {
    if (operands->shape[d]) continue;
    if (!(operands->axes >> d & 1)) return QUERN_OK;
    empty = d;
  }
  for (int32_t i = 0; i < program->n_stages && empty >= 0; i++)
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++)
      if (!program->stages[i].reduces[r].by->has_empty && !program->stages[i].reduces[r].takes_none)
        return qn_status_fail(QUERN_E_ARGUMENT, "%s: axis %d has no elements, and %s of none is not defined", info->name, empty,
                              program->stages[i].reduces[r].by->name);
  return QUERN_OK;
}

/* Chooses the device and its backend. */
static quern_status check_row_device(const quern_op_info *info, const qn_row_operands *operands, qn_decision *decision) {
  const quern_op *op = decision->op;
  quern_status status = qn_tensor_check_devices(info->name, info->args, info->n_in, operands->tensor, info->n_out,
                                                operands->tensor + info->n_in, &decision->device);
  if (status) return status;
  if ((status = qn_decide_choose_backend(info, decision->device, decision))) return status;
  if ((status = qn_decide_check_backend(info, decision))) return status;
  if (decision->device.device_type == kDLCPU) decision->backend = qn_row_backend;
  return op->builtin && decision->backend->stand_in ? decision->backend->stand_in(op, operands->dtype, decision) : QUERN_OK;
}

/* Whether a stage, or a scan that it reads, reads inputs. */
static int reads_inputs(const qn_row_program *program, const qn_row_stage *stage) {
  int reads = stage->scan && stage->scan->from < QN_ROW_INDEX;
  for (int32_t k = 0; k < stage->n_in; k++) reads |= stage->values[k] < QN_ROW_INDEX;
  for (int32_t r = 0; r < stage->n_reduces; r++)
    for (int32_t part = 0; part < stage->reduces[r].by->n_parts; part++) reads |= qn_row_from(&stage->reduces[r], part) < QN_ROW_INDEX;
  for (int32_t s = 0; stage->feeders >> s && !reads; s++)
    if (stage->feeders >> s & 1) reads = reads_inputs(program, &program->stages[s]);
  return reads;
}

/* The outputs, as bits, after which a stage reads inputs. */
static uint32_t stored_early(const qn_row_program *program) {
  uint32_t early = 0, stored = 0;
  for (int32_t s = 0; s < program->n_stages; s++) {
    const qn_row_stage *stage = &program->stages[s];
    if (stage->is_again) continue;
    if (stored && !stage->scan && reads_inputs(program, stage)) early |= stored;
    for (int32_t k = stage->n_in; k < stage->n_in + stage->n_out; k++)
      if (stage->values[k] >= QN_ROW_OUTPUT && stage->values[k] < QN_ROW_VALUE) stored |= 1u << (stage->values[k] - QN_ROW_OUTPUT);
  }
  return early;
}

quern_status qn_row_decide(const quern_op_info *info, const qn_row_program *program, const qn_row_operands *operands,
                           const quern_call *call, qn_decision *decision) {
  quern_status status = check_row_device(info, operands, decision);
  if (status) return status;
  if (call && (status = qn_decide_check_flags(info, call->out_flags))) return status;
  decision->of_kind = program;
  decision->n_in = info->n_in;
  decision->n_operands = info->n_in + info->n_out;
  for (int32_t k = 0; k < decision->n_operands; k++) {
    decision->dtypes[k] = operands->dtype[k];
    decision->sizes[k] = operands->tensor[k].size;
    decision->device_types[k] = (uint8_t)operands->tensor[k].device.device_type;
    decision->byte_offset[k] = operands->tensor[k].ref.offset;
  }
  qn_row_normalise(operands->ndim, operands->shape, operands->axes, operands->reduced, info->n_in, operands->tensor, info->n_out,
                   operands->tensor + info->n_in, &decision->nest, &decision->count);
  decision->nest.has_handles = decision->backend->has_handles;
  if (info->n_out > 1) decision->nest.apart = stored_early(program);
  if (decision->device.device_type != kDLCPU && decision->nest.n_reduced * decision->n_operands > QN_ROW_STRIDES)
    return qn_status_fail(QUERN_E_LIMIT, "%s: %d operands and %d axes that cannot be merged are more than a kernel's arguments hold",
                          info->name, decision->n_operands, decision->nest.n_reduced);
  for (int32_t k = 0; k < decision->n_operands && decision->count == 0; k++)
    if (k < info->n_in || operands->tensor[k].n_elements == 0) decision->sizes[k] = 0; /* in no memory */
  if ((status = qn_decide_convert(info, decision, call, &decision->params))) return status;
  if ((status = qn_row_check_still(info, operands->reduced, &decision->nest))) return status;
  if (decision->nest.n_elements == 0 || !operands->has_data) return QUERN_OK;
  return qn_tensor_check_overlap(info->name, info->args, &decision->nest, info->n_out, decision->sizes);
}

void qn_row_bind(const qn_decision *decision, qn_params *params) {
  int32_t words = 0;
  for (int32_t k = 0; k < decision->n_slots; k++) words += qn_dtype_words(decision->slots[k].dtype);
  params->slot[words] = (uint64_t)decision->count;
}
