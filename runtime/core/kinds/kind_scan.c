/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_scan.c: scans: each result combines the elements up to its own along an axis. The parameters give the axis, as a bit, and the shift
 * of the result: include_initial (one more result, of no elements, before the others), exclusive (each without its own element),
 * reverse (from the end). include_initial scans n elements to the last n of n + 1 results; exclusive scans the first n - 1 elements to the
 * last n - 1 of n results; reverse negates the strides. So what runs is always a plain scan along the first dimension of a nest.
 * A second output has the places of the values, -1: before the first; or the outputs are made of states.
 * On the CPU, kind_scan_cpu.c runs it. */
#include "core/kinds/kind_scan.h"

#include <string.h>

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/op/decide.h"
#include "core/op/kind.h"
#include "core/row/row_nest.h"
#include "core/row/scan_axis.h"
#include "core/row/scan_launch.h"
#include "core/tensor/apart.h"

extern const qn_kind qn_kind_scan;

/* A call, read. */
typedef struct scan_call {
  const qn_scan_op *op;
  const qn_scan *scan;
  qn_scan_axis axis;
  qn_tensor tensor[QN_SCAN_MAX_OPERANDS];
  int64_t shape[QUERN_MAX_NDIM]; /* of the outputs */
} scan_call;

static const qn_scan_op *scan_op(const quern_op *op) { return op->builtin->of_kind; }

const qn_scan_op *qn_scan_op_of(const qn_builtin *builtin) { return builtin->kind == &qn_kind_scan ? builtin->of_kind : NULL; }

static int is_shifted(const scan_call *call) { return call->axis.is_shifted; }

/* ---- Read ---- */

/* Reads the input and the parameters. */
static quern_status read_input(const quern_op *op, DLTensor *const *in, const quern_call *given, int needs_data, scan_call *call) {
  const quern_op_info *info = &op->builtin->info;
  uint8_t promoted;
  quern_status status = qn_tensor_read(in[0], info->name, &info->args[0], 0, needs_data, &call->tensor[0]);
  if (status || (status = qn_resolve_promoted(op->builtin, &call->tensor[0].dtype, &promoted))) return status;
  call->op = scan_op(op);
  call->scan = &call->op->scans[promoted];
  if ((status = qn_scan_axis_read(info, given, call->tensor[0].ndim, &call->axis))) return status;
  for (int32_t d = 0; d < call->tensor[0].ndim; d++) call->shape[d] = call->tensor[0].shape[d];
  call->shape[call->axis.axis] += call->axis.given[1];
  return QUERN_OK;
}

static uint8_t result_dtype(const qn_builtin *builtin, uint8_t dtype, int32_t k) {
  return builtin->results[k] != QN_DTYPE_NONE ? builtin->results[k] : ((const qn_scan_op *)builtin->of_kind)->results[dtype];
}

static quern_status measure_scan(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *given) {
  scan_call call;
  int32_t room[QUERN_MAX_NDIM];
  quern_status status = read_input(op, in, given, 0, &call);
  if (status) return status;
  const int32_t *order = qn_tensor_order(call.tensor[0].ndim, call.tensor[0].shape, 1, call.tensor, room);
  for (int32_t k = 0; k < op->builtin->info.n_out; k++) {
    quern_shape *result = qn_shape_at(out, k);
    const qn_dtype_info *dtype = &qn_dtype_infos[result_dtype(op->builtin, call.tensor[0].dtype, k)];
    result->dtype = (DLDataType){.code = dtype->code, .bits = dtype->bits, .lanes = 1};
    result->device = call.tensor[0].device;
    result->ndim = call.tensor[0].ndim;
    memcpy(result->shape, call.shape, (size_t)result->ndim * sizeof result->shape[0]);
    qn_tensor_lay_out(result, order);
  }
  return QUERN_OK;
}

static quern_status infer_scan(const quern_op *op, DLTensor *const *in, quern_shape *out) { return measure_scan(op, in, out, NULL); }

static quern_status scan_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype) {
  (void)chosen;
  *dtype = result_dtype(builtin, in_dtypes[0], k);
  return QUERN_OK;
}

/* ---- Decided ---- */

/* Moves a tensor's first item along the axis, and, for reverse, walks it from the end. strides: room for the new ones */
static qn_tensor shifted(const qn_tensor *tensor, int32_t axis, int64_t first, int64_t extent, int is_reverse, int64_t *shape,
                         int64_t *strides) {
  qn_tensor moved = *tensor;
  qn_row_strides(tensor, strides);
  for (int32_t d = 0; d < tensor->ndim; d++) shape[d] = tensor->shape[d];
  shape[axis] = extent;
  if (extent) moved.ref = qn_ref_move(moved.ref, (is_reverse ? extent - 1 : first) * strides[axis] * tensor->size);
  if (is_reverse) strides[axis] = -strides[axis];
  moved.shape = shape;
  moved.strides = strides;
  moved.compact = 0; /* n_elements: of the whole tensor, by which strides are read */
  return moved;
}

typedef struct two_nests {
  qn_nest in, out;
} two_nests;

static quern_status check_apart(const quern_op_info *info, const scan_call *call, qn_decision *decision) {
  QN_IN_SCRATCH(two_nests, nests);
  qn_nest *const in = &nests->in, *const out = &nests->out;
  if (!is_shifted(call)) {
    const uint8_t n_reduced = decision->nest.n_reduced;
    decision->nest.n_reduced = 0; /* every element of the axis has a result of its own */
    quern_status status = qn_tensor_check_overlap(info->name, info->args, &decision->nest, info->n_out, decision->sizes);
    decision->nest.n_reduced = n_reduced;
    return status;
  }
  /* Each output beside what comes before it. */
  for (int32_t k = 1; k <= info->n_out; k++) {
    const qn_tensor *tensor = &call->tensor[k];
    qn_tensor_normalise(call->tensor[0].ndim, call->tensor[0].shape, 0, NULL, 1, &call->tensor[0], in);
    qn_tensor_normalise(tensor->ndim, tensor->shape, 0, NULL, 1, tensor, out);
    const uint8_t sizes[2] = {call->tensor[0].size, tensor->size};
    const quern_arg_info args[2] = {info->args[0], info->args[k]};
    quern_status status = qn_tensor_check_apart(info->name, args, in, out, sizes);
    if (status) return status;
  }
  for (int32_t k = 2; k <= info->n_out; k++) {
    for (int32_t j = 1; j < k; j++) {
      const qn_tensor both[2] = {call->tensor[j], call->tensor[k]};
      qn_tensor_normalise(both[0].ndim, both[0].shape, 0, NULL, 2, both, out);
      const qn_overlap met = qn_tensor_meet(out, 1, decision->sizes[k], out, 0, decision->sizes[j]);
      if (met != QN_OVERLAP_NO) return qn_tensor_refuse_overlap(info->name, info->args, j, k, 1, met, "");
    }
  }
  return QUERN_OK;
}

/* What a device stores before the results, or behind them. */
static void set_initial(const scan_call *call, const int64_t *offset, qn_decision *decision) {
  const int32_t n_out = decision->n_operands - 1;
  const int64_t turn = decision->shape_params[2];
  uint64_t first[QN_SCAN_MAX_OUTPUTS][QN_DTYPE_MAX_WORDS] = {{0}};
  for (int32_t k = 0; k < n_out; k++) {
    const quern_scalar scalar = {.kind = QUERN_F64, .v = {.f = {k ? call->op->others[k - 1] : call->op->initial, 0}}};
    qn_params_number(&scalar, call->tensor[1 + k].dtype, first[k]);
  }
  qn_scan_launch scan = {.is_first_stored = is_shifted(call), .first = first[0][0], .first_offset = offset[0], .state_bytes = n_out > 1 ? 16 : 8,
                         .n_more = n_out > 1 ? 2 : 0, .more = {(uint64_t)turn, (uint64_t)offset[1]}};
  if (call->op->has_states) {
    scan.state_bytes = QN_SCAN_STATE;
    scan.more[0] = (uint64_t)-1; /* no input is read one place earlier */
    scan.more[1] = turn < 0 ? 0 : (uint64_t)turn;
    scan.more[2] = turn < 0 ? 1 : (uint64_t)-1;
    scan.n_more = 3;
    for (int32_t k = 1; k < n_out; k++) {
      scan.more[scan.n_more++] = first[k][0];
      scan.more[scan.n_more++] = (uint64_t)offset[k];
    }
  }
  qn_scan_launch_set(decision, scan);
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status decide_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given, int needs_data,
                                scan_call *call, qn_decision *decision) {
  const quern_op_info *info = &op->builtin->info;
  quern_status status = read_input(op, in, given, needs_data, call);
  if (status) return status;
  const int32_t ndim = call->tensor[0].ndim;
  for (int32_t k = 0; k < info->n_out; k++) {
    qn_tensor *tensor = &call->tensor[1 + k];
    if ((status = qn_tensor_read(out[k], info->name, &info->args[1 + k], k, needs_data, tensor))) return status;
    if ((status = qn_resolve_stored(info, k, result_dtype(op->builtin, call->tensor[0].dtype, k), tensor->dtype))) return status;
    if ((status = qn_tensor_check_shape(info->name, &info->args[1 + k], k, tensor, ndim, call->shape))) return status;
  }
  if ((status = qn_tensor_check_devices(info->name, info->args, 1, call->tensor, info->n_out, call->tensor + 1, &decision->device)))
    return status;
  const int is_here = decision->device.device_type == kDLCPU;
  if ((status = qn_decide_choose_backend(info, decision->device, decision))) return status;
  if ((status = qn_decide_check_backend(info, decision))) return status;
  if (given && (status = qn_decide_check_flags(info, given->out_flags))) return status;
  typedef int64_t all_layouts[2][QN_SCAN_MAX_OPERANDS][QUERN_MAX_NDIM];
  QN_IN_SCRATCH(all_layouts, layouts);
  int64_t(*const shape)[QUERN_MAX_NDIM] = (*layouts)[0], (*const strides)[QUERN_MAX_NDIM] = (*layouts)[1];
  const int64_t n = call->tensor[0].shape[call->axis.axis], extent = call->axis.given[2] && n ? n - 1 : n;
  const int is_reverse = (int)call->axis.given[3];
  const int64_t skipped = is_shifted(call) ? 1 : 0;
  /* From the end, the element left out is the first one, and the initial result the last one. */
  qn_tensor walked[QN_SCAN_MAX_OPERANDS];
  walked[0] = shifted(&call->tensor[0], call->axis.axis, 0, is_reverse ? n : extent, is_reverse, shape[0], strides[0]);
  for (int32_t k = 1; k <= info->n_out; k++) {
    if (!is_reverse) {
      walked[k] = shifted(&call->tensor[k], call->axis.axis, skipped, extent, 0, shape[k], strides[k]);
      continue;
    }
    walked[k] = shifted(&call->tensor[k], call->axis.axis, 0, call->shape[call->axis.axis], 1, shape[k], strides[k]);
    if (extent) walked[k].ref = qn_ref_move(walked[k].ref, skipped * strides[k][call->axis.axis] * walked[k].size);
    shape[k][call->axis.axis] = extent;
  }
  shape[0][call->axis.axis] = extent;
  decision->called = decision->op = op;
  if (is_here) decision->backend = qn_scan_backend;
  decision->specialised = NULL;
  decision->signature = NULL;
  decision->param_dtype = 0;
  decision->n_slots = 0;
  decision->slots = NULL;
  decision->n_in = 1;
  decision->n_operands = 1 + info->n_out;
  decision->of_kind = call->scan;
  decision->shape_params[0] = call->axis.given[0];
  decision->shape_params[1] = call->axis.given[1] | call->axis.given[2] << 1 | call->axis.given[3] << 2;
  decision->shape_params[2] = is_reverse ? n - 1 : -1;
  for (int32_t k = 0; k < decision->n_operands; k++) {
    decision->dtypes[k] = call->tensor[k].dtype;
    decision->sizes[k] = call->tensor[k].size;
    decision->device_types[k] = (uint8_t)call->tensor[k].device.device_type;
    decision->byte_offset[k] = call->tensor[k].ref.offset;
  }
  /* On a device, a nest of rows without elements is not empty: each row's result of no elements is stored. */
  const uint32_t is_empty = !is_here && extent == 0 && call->tensor[1].n_elements;
  qn_row_normalise(ndim, shape[0], 1u << call->axis.axis, is_empty, 1, &walked[0], info->n_out, &walked[1], &decision->nest, &decision->count);
  decision->nest.has_handles = decision->backend->has_handles;
  int64_t offset[QN_SCAN_MAX_OUTPUTS] = {0};
  for (int32_t k = 0; k < info->n_out && extent; k++) offset[k] = -skipped * strides[1 + k][call->axis.axis] * walked[1 + k].size;
  set_initial(call, offset, decision);
  if (!is_here && decision->backend->stand_in && (status = decision->backend->stand_in(op, decision->dtypes, decision))) return status;
  for (int32_t k = 0; k < decision->n_operands; k++)
    if (!call->tensor[k].ref.base) return QUERN_OK;
  return check_apart(info, call, decision);
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status decide_scan(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                          const quern_call *given, int needs_data, qn_decision *decision) {
  scan_call call;
  quern_status status = decide_call(op, in, out, given, needs_data, &call, decision);
  if (status == QUERN_OK && decision->device.device_type == kDLCPU && is_shifted(&call) && call.tensor[1].n_elements)
    decision->nest.n_elements = 1; /* there is something to do */
  return status;
}

static quern_status check_scan_run(const qn_decision *decision, const quern_call *given) {
  const quern_op_info *info = &decision->called->builtin->info;
  int64_t params[4];
  quern_status status = qn_scan_axis_params(info, given, params);
  if (status) return status;
  if (params[0] == decision->shape_params[0] && (params[1] | params[2] << 1 | params[3] << 2) == decision->shape_params[1]) return QUERN_OK;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: other parameters than the plan was prepared for; prepare another plan", info->name);
}

/* ---- Calls ---- */

/* Writes the result of no elements to output k where it is: at the first place along the axis, from the end at the last. */
static void write_initial(const scan_call *call, int32_t k) {
  const qn_tensor *out = &call->tensor[1 + k];
  const int64_t at = call->axis.is_reverse ? out->shape[call->axis.axis] - 1 : 0;
  qn_scan_axis_fill(out, call->axis.axis, at, k ? call->op->others[k - 1] : call->op->initial);
}

static quern_status call_scan(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given) {
  QN_IN_SCRATCH(scan_call, call);
  QN_IN_SCRATCH(qn_decision, decision);
  quern_status status = decide_call(op, in, out, given, 1, call, decision);
  if (status || call->tensor[1].n_elements == 0) return status;
  if (decision->device.device_type != kDLCPU) return decision->backend->call(decision, given);
  const qn_float_env was = qn_float_env_enter();
  for (int32_t k = 0; k < op->builtin->info.n_out && is_shifted(call); k++) write_initial(call, k);
  if (decision->nest.n_elements) status = decision->backend->call(decision, given);
  qn_float_env_leave(was);
  return status;
}

static quern_status explain_scan(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given,
                                 qn_strbuf *buf) {
  QN_IN_SCRATCH(qn_decision, decision);
  quern_status status = decide_scan(op, in, out, given, 0, decision);
  return status ? status : decision->backend->explain(decision, given, buf);
}

const qn_kind qn_kind_scan = {.name = "scan", .has_own_entry = 1, .launched = QN_LAUNCHED_SCANS, .result = scan_result, .infer = infer_scan, .measure = measure_scan, .decide = decide_scan,
                              .check_run = check_scan_run, .call = call_scan, .explain = explain_scan};
