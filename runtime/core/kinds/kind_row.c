/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_row.c: ops that reduce over axes. The first parameters of such an op give its shape: `axes`, and, where its outputs are reduced,
 * `keepdims`. They are no parameters of kernels; the number of elements of a row follows those. */
#include <stdlib.h>
#include <string.h>

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/cpu/cpu_backend.h"
#include "core/op/decide.h"
#include "core/op/kind.h"
#include "core/row/row_engine.h"
#include "core/row/row_nest.h"
#include "core/tensor/device.h"

extern const qn_kind qn_kind_row;

static const qn_row_op *row_op(const qn_builtin *builtin) { return builtin->of_kind; }

/* ---- Dtypes ---- */

/* The dtype of the outputs before they are stored. */
static quern_status row_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype) {
  uint8_t promoted;
  (void)k, (void)chosen;
  quern_status status = qn_resolve_promoted(builtin, in_dtypes, &promoted);
  if (status) return status;
  *dtype = row_op(builtin)->results[promoted];
  return QUERN_OK;
}

/* ---- Shapes ---- */

/* The operands of a call, read. */
typedef struct row_operands {
  qn_tensor tensor[QN_ROW_MAX_VALUES];
  uint8_t dtype[QN_ROW_MAX_VALUES];
  int32_t ndim;
  uint8_t has_data; /* no data pointer is NULL */
  uint8_t keepdims;
  uint32_t axes;
  int64_t shape[QUERN_MAX_NDIM];
} row_operands;

static quern_status read_inputs(const quern_op_info *info, DLTensor *const *in, int needs_data, row_operands *operands) {
  operands->has_data = 1;
  for (int32_t k = 0; k < info->n_in; k++) {
    quern_status status = qn_tensor_read(in[k], info->name, &info->args[k], k, needs_data, &operands->tensor[k]);
    if (status) return status;
    operands->dtype[k] = operands->tensor[k].dtype;
    operands->has_data &= operands->tensor[k].ref.base != NULL || operands->tensor[k].n_elements == 0;
  }
  return qn_tensor_broadcast(info->name, info->args, info->n_in, operands->tensor, operands->shape, &operands->ndim);
}

/* One of the parameters that give the shape, or its default, as an i64. */
static quern_status shape_param(const quern_op_info *info, int32_t k, const quern_call *call, int64_t *value) {
  const int32_t n_given = call && call->params ? call->n_params : 0;
  const qn_slot slot = {(uint8_t)k, QN_I64};
  qn_params params;
  quern_status status = qn_params_convert(info, QN_I64, 1, &slot, n_given, call ? call->params : NULL, &params);
  *value = status ? 0 : (int64_t)params.slot[0];
  return status;
}

/* Reads axes and keepdims. */
static quern_status read_axes(const quern_op_info *info, const qn_row_op *row, const quern_call *call, int64_t given[2],
                              row_operands *operands) {
  quern_status status = shape_param(info, 0, call, &given[0]);
  given[1] = 0;
  if (status) return status;
  if ((status = qn_row_axes(info->name, given[0], operands->ndim, &operands->axes))) return status;
  if (row->is_reduced && (status = shape_param(info, 1, call, &given[1]))) return status;
  if (given[1] != 0 && given[1] != 1)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: keepdims is %lld, expected 0 or 1", info->name, (long long)given[1]);
  operands->keepdims = (uint8_t)given[1];
  return QUERN_OK;
}

/* The shape of the outputs. Returns its rank. */
static int32_t output_shape(const qn_row_op *row, const row_operands *operands, int64_t *shape) {
  return qn_row_shape(operands->ndim, operands->shape, row->is_reduced ? operands->axes : 0, operands->keepdims, shape);
}

/* Refuses a row of no elements for reductions without a result for it, unless there is no row. */
static quern_status check_empty(const quern_op_info *info, const qn_row_program *program, const row_operands *operands) {
  int32_t empty = -1;
  if (program->has_empty) return QUERN_OK;
  for (int32_t d = 0; d < operands->ndim; d++) {
    if (operands->shape[d]) continue;
    if (!(operands->axes >> d & 1)) return QUERN_OK;
    empty = d;
  }
  for (int32_t i = 0; i < program->n_stages && empty >= 0; i++)
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++)
      if (!program->stages[i].reduces[r].by->has_empty)
        return qn_status_fail(QUERN_E_ARGUMENT, "%s: axis %d has no elements, and %s of none is not defined", info->name, empty,
                              program->stages[i].reduces[r].by->name);
  return QUERN_OK;
}

static quern_status measure_row(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  const quern_op_info *info = &op->builtin->info;
  const qn_row_op *row = row_op(op->builtin);
  int64_t given[2];
  row_operands operands;
  DLDevice device;
  uint8_t dtype;
  quern_status status = read_inputs(info, in, 0, &operands);
  if (status || (status = row_result(op->builtin, operands.dtype, 0, (DLDataType){0}, &dtype))) return status;
  if ((status = read_axes(info, row, call, given, &operands))) return status;
  if ((status = qn_tensor_check_devices(info->name, info->args, info->n_in, operands.tensor, 0, NULL, &device))) return status;
  for (int32_t k = 0; k < info->n_out; k++) {
    quern_shape *result = qn_shape_at(out, k);
    const qn_dtype_info *of = &qn_dtype_infos[dtype];
    result->dtype = (DLDataType){.code = of->code, .bits = of->bits, .lanes = 1};
    result->device = device;
    result->ndim = output_shape(row, &operands, result->shape);
  }
  return QUERN_OK;
}

static quern_status infer_row(const quern_op *op, DLTensor *const *in, quern_shape *out) { return measure_row(op, in, out, NULL); }

/* ---- Decided ---- */

static quern_status read_outputs(const quern_op_info *info, const qn_row_op *row, DLTensor *const *out, int needs_data, uint8_t result,
                                 row_operands *operands) {
  int64_t shape[QUERN_MAX_NDIM];
  const int32_t ndim = output_shape(row, operands, shape);
  for (int32_t k = 0; k < info->n_out; k++) {
    qn_tensor *read = &operands->tensor[info->n_in + k];
    quern_status status = qn_tensor_read(out[k], info->name, &info->args[info->n_in + k], k, needs_data, read);
    if (status) return status;
    operands->dtype[info->n_in + k] = read->dtype;
    operands->has_data &= read->ref.base != NULL || read->n_elements == 0;
    if ((status = qn_resolve_stored(info, k, result, read->dtype))) return status;
    if ((status = qn_tensor_check_shape(info->name, &info->args[info->n_in + k], k, read, ndim, shape))) return status;
  }
  return QUERN_OK;
}

extern const qn_backend qn_row_cpu;

/* Chooses the device and its backend, and notes what is in host memory of another device's call. */
static quern_status check_device(const quern_op_info *info, const row_operands *operands, qn_decision *decision) {
  DLDevice device;
  quern_status status = qn_tensor_check_devices(info->name, info->args, info->n_in, operands->tensor, info->n_out,
                                                operands->tensor + info->n_in, &device);
  decision->values = decision->pinned = 0;
  if (status || (status = qn_decide_choose_backend(info, device, decision))) return status;
  if ((status = qn_decide_check_backend(info, decision))) return status;
  if (device.device_type == kDLCPU) decision->backend = &qn_row_cpu;
  for (int32_t k = 0; k < info->n_in + info->n_out && device.device_type != kDLCPU; k++) {
    decision->values |= (uint32_t)(operands->tensor[k].device.device_type == kDLCPU) << k;
    decision->pinned |= (uint32_t)qn_device_is_pinned(operands->tensor[k].device) << k;
  }
  return QUERN_OK;
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status decide_row(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                         const quern_call *call, int needs_data, qn_decision *decision) {
  const quern_op_info *info = &op->builtin->info;
  const qn_row_op *row = row_op(op->builtin);
  row_operands operands;
  uint8_t promoted;
  quern_status status = read_inputs(info, in, needs_data, &operands);
  if (status || (status = qn_resolve_promoted(op->builtin, operands.dtype, &promoted))) return status;
  if ((status = read_axes(info, row, call, decision->shape_params, &operands))) return status;
  if ((status = read_outputs(info, row, out, needs_data, row->results[promoted], &operands))) return status;
  if ((status = check_device(info, &operands, decision))) return status;
  if (call && (status = qn_decide_check_flags(info, call->out_flags))) return status;
  const qn_row_program *program = row->programs[promoted];
  if (row->is_reduced && (status = check_empty(info, program, &operands))) return status;
  decision->called = decision->op = op;
  decision->of_kind = program;
  decision->specialised = NULL;
  decision->signature = NULL;
  decision->param_dtype = 0;
  decision->n_slots = program->n_slots;
  decision->slots = program->slots;
  decision->n_in = info->n_in;
  decision->n_operands = info->n_in + info->n_out;
  if (decision->backend->stand_in && (status = decision->backend->stand_in(op, operands.dtype, decision))) return status;
  for (int32_t k = 0; k < decision->n_operands; k++) {
    decision->dtypes[k] = operands.dtype[k];
    decision->sizes[k] = operands.tensor[k].size;
    decision->byte_offset[k] = operands.tensor[k].ref.offset;
  }
  qn_row_normalise(operands.ndim, operands.shape, operands.axes, row->is_reduced, info->n_in, operands.tensor, info->n_out,
                   operands.tensor + info->n_in, &decision->nest, &decision->count);
  decision->nest.has_handles = decision->backend->has_handles;
  for (int32_t k = 0; k < info->n_in && decision->count == 0; k++) decision->sizes[k] = 0; /* in no memory */
  if ((status = qn_decide_convert(info, decision, call, &decision->params))) return status;
  if (decision->nest.n_elements == 0 || !operands.has_data) return QUERN_OK;
  return qn_tensor_check_overlap(info->name, info->args, &decision->nest, info->n_out, decision->sizes);
}

static void bind_count(const qn_decision *decision, qn_params *params) {
  int32_t words = 0;
  for (int32_t k = 0; k < decision->n_slots; k++) words += qn_dtype_words(decision->slots[k].dtype);
  params->slot[words] = (uint64_t)decision->count; /* on each device: an i64 */
}

/* A run of a plan may not have another shape than was prepared. */
static quern_status check_run(const qn_decision *decision, const quern_call *call) {
  const quern_op_info *info = &decision->called->builtin->info;
  for (int32_t k = 0; k < 1 + row_op(decision->called->builtin)->is_reduced; k++) {
    int64_t given;
    quern_status status = shape_param(info, k, call, &given);
    if (status) return status;
    if (given != decision->shape_params[k])
      return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is %lld, but the plan was prepared for %lld; prepare another plan", info->name,
                            info->params[k].name, (long long)given, (long long)decision->shape_params[k]);
  }
  return QUERN_OK;
}

const qn_kind qn_kind_row = {.name = "row", .has_rows = 1, .n_own_params = 1, .result = row_result, .infer = infer_row, .measure = measure_row,
                             .decide = decide_row, .bind = bind_count, .check_run = check_run};

/* ---- On the CPU ---- */

static quern_status plan_rows(const qn_decision *decision, qn_row_job *job) {
  return qn_row_plan(decision->of_kind, decision->op->info->name, decision->dtypes, &decision->nest, decision->n_in, decision->count, job);
}

static void run_rows(const qn_decision *decision, const qn_row_job *job, const qn_ref *ref, const qn_params *params) {
  qn_row_run(job, ref, params, job->most_slices > 1 ? qn_registry_slices(decision->called) : NULL);
}

static quern_status row_call(const qn_decision *decision, const quern_call *call) {
  qn_row_job job;
  quern_status status = plan_rows(decision, &job);
  (void)call;
  if (status == QUERN_OK) run_rows(decision, &job, decision->nest.ref, &decision->params);
  return status;
}

static quern_status row_prepare(const qn_decision *decision, const quern_call *call, qn_run **made) {
  qn_row_job *job = malloc(sizeof *job);
  (void)call;
  if (!job) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  quern_status status = plan_rows(decision, job);
  if (status) {
    free(job);
    return status;
  }
  *made = (qn_run *)job;
  return QUERN_OK;
}

static quern_status row_launch(const qn_decision *decision, const qn_run *prepared, const qn_ref *ref, const qn_params *params,
                               const quern_call *call) {
  (void)call;
  run_rows(decision, (const qn_row_job *)prepared, ref, params);
  return QUERN_OK;
}

static const char *const path_words[] = {"rows as a whole", "rows in blocks", "columns"};

static quern_status row_explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const qn_row_program *program = decision->of_kind;
  qn_row_job job;
  (void)call;
  if (decision->nest.n_elements == 0) {
    qn_strbuf_add(buf, "tier: built\nreason: there are no elements\nthreads: 1\n");
    return QUERN_OK;
  }
  quern_status status = plan_rows(decision, &job);
  if (status) return status;
  qn_strbuf_add(buf, "tier: built\nreason: built kernels reduce %s\npasses: %d\n", path_words[job.path], program->n_stages);
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    if (stage->variant) qn_strbuf_add(buf, "variant: %s\n", stage->variant->name);
    for (int32_t r = 0; r < stage->n_reduces; r++) qn_strbuf_add(buf, "variant: %s\n", stage->reduces[r].by->inner->name);
  }
  qn_strbuf_add(buf, "threads: %d\n", qn_row_slices(&job, qn_registry_slices(decision->op)));
  return QUERN_OK;
}

const qn_backend qn_row_cpu = {.device_name = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = row_call,
                               .prepare = row_prepare, .launch = row_launch, .explain = row_explain};
