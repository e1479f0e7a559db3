/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_adjoint.c: derivatives of scans. Let a scan without include_initial and exclusive have places 0 to e - 1. Place k of the result
 * depends on the elements up to k, so the derivative by element k is made of the places from k on: a walk from the end to the beginning.
 * include_initial and exclusive have one result before these, of no element; exclusive has one element behind them, of which the
 * derivative is 0. reverse turns the scan. All these are views, walked along the axis. On a device a call is a launch of the
 * walk, as for scans. On the CPU, kind_adjoint_cpu.c walks. */
#include "core/kinds/kind_adjoint.h"

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/op/decide.h"
#include "core/op/kind.h"
#include "core/row/row_nest.h"
#include "core/row/scan_axis.h"
#include "core/row/scan_launch.h"
#include "core/tensor/apart.h"

extern const qn_kind qn_kind_adjoint;

/* A call, read. The last tensor is the result. */
typedef struct adjoint_call {
  const qn_adjoint_op *op;
  const qn_adjoint_walk *walk;
  qn_scan_axis axis;
  uint8_t promoted;
  DLDevice device;
  qn_tensor tensor[QN_ADJOINT_MOST_IN + 1];
  int64_t n;                     /* elements along the axis */
  int64_t shape[QUERN_MAX_NDIM]; /* of the result */
} adjoint_call;

static const qn_adjoint_op *adjoint_op(const quern_op *op) { return op->builtin->of_kind; }

static int is_along_results(const adjoint_call *call, int32_t k) { return !(call->op->elements >> k & 1); }

/* ---- Read ---- */

static quern_status read_inputs(const quern_op *op, DLTensor *const *in, const quern_call *given, int needs_data, adjoint_call *call) {
  const quern_op_info *info = &op->builtin->info;
  uint8_t dtypes[QN_ADJOINT_MOST_IN];
  int64_t results[QUERN_MAX_NDIM];
  qn_assert(info->n_in <= QN_ADJOINT_MOST_IN);
  call->op = adjoint_op(op);
  for (int32_t k = 0; k < info->n_in; k++) {
    quern_status status = qn_tensor_read(in[k], info->name, &info->args[k], k, needs_data, &call->tensor[k]);
    if (status) return status;
    dtypes[k] = call->tensor[k].dtype;
  }
  quern_status status = qn_resolve_promoted(op->builtin, dtypes, &call->promoted);
  const qn_tensor *grad = &call->tensor[0];
  if (status || (status = qn_scan_axis_read(info, given, grad->ndim, &call->axis))) return status;
  const int32_t axis = call->axis.axis;
  for (int32_t d = 0; d < grad->ndim; d++) call->shape[d] = results[d] = grad->shape[d];
  call->n = grad->shape[axis] - call->axis.given[1];
  if (call->n < 0)
    return qn_tensor_fail(QUERN_E_SHAPE, info->name, &info->args[0], 0, "no elements along axis %d; with include_initial it has at least 1", axis);
  call->shape[axis] = call->n;
  for (int32_t k = 1; k < info->n_in && status == QUERN_OK; k++)
    status = qn_tensor_check_shape(info->name, &info->args[k], k, &call->tensor[k], grad->ndim, is_along_results(call, k) ? results : call->shape);
  call->walk = &call->op->walks[call->promoted];
  return status;
}

static quern_status measure_adjoint(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *given) {
  adjoint_call call;
  quern_status status = read_inputs(op, in, given, 0, &call);
  if (status) return status;
  const qn_dtype_info *dtype = &qn_dtype_infos[call.promoted];
  quern_shape *result = qn_shape_at(out, 0);
  result->dtype = (DLDataType){.code = dtype->code, .bits = dtype->bits, .lanes = 1};
  result->device = call.tensor[0].device;
  result->ndim = call.tensor[0].ndim;
  for (int32_t d = 0; d < result->ndim; d++) result->shape[d] = call.shape[d];
  int32_t room[QUERN_MAX_NDIM];
  qn_tensor_lay_out(result, qn_tensor_order(result->ndim, call.tensor[0].shape, op->builtin->info.n_in, call.tensor, room));
  return QUERN_OK;
}

static quern_status infer_adjoint(const quern_op *op, DLTensor *const *in, quern_shape *out) { return measure_adjoint(op, in, out, NULL); }

static quern_status adjoint_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype) {
  (void)chosen, (void)k;
  return qn_resolve_promoted(builtin, in_dtypes, dtype);
}

/* ---- Walks ---- */

typedef struct adjoint_view {
  qn_tensor tensor;
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
} adjoint_view;

/* A tensor along the walk: place e - 1 of the scan first. shift: the tensor's place at place 0 of the scan, both counted as the scan does. */
static void set_view(const qn_tensor *tensor, const qn_scan_axis *axis, int64_t e, int64_t shift, adjoint_view *view) {
  const int64_t in_scan = e - 1 + shift, at = axis->is_reverse ? tensor->shape[axis->axis] - 1 - in_scan : in_scan;
  view->tensor = *tensor;
  qn_row_strides(tensor, view->strides);
  for (int32_t d = 0; d < tensor->ndim; d++) view->shape[d] = tensor->shape[d];
  view->tensor.ref = qn_ref_move(tensor->ref, at * view->strides[axis->axis] * tensor->size);
  if (!axis->is_reverse) view->strides[axis->axis] = -view->strides[axis->axis];
  view->shape[axis->axis] = e;
  view->tensor.shape = view->shape;
  view->tensor.strides = view->strides;
  view->tensor.compact = 0; /* n_elements: as in scans */
}

/* Where the places of a walk of e elements are. */
static qn_state_place place_of(const adjoint_call *call, int64_t e) {
  return (qn_state_place){.last = call->axis.is_shifted ? -1 : e - 1, .first = call->axis.is_reverse ? call->n - e : e - 1,
                          .step = call->axis.is_reverse ? 1 : -1};
}

/* The nest of a walk. is_reduced: the result has rows even if the walk has no elements. Returns the result's bytes from place to place. */
static int64_t walk_nest(const quern_op *op, const adjoint_call *call, int64_t e, uint32_t is_reduced, qn_nest *nest, int64_t *count) {
  const int32_t n_in = op->builtin->info.n_in, axis = call->axis.axis;
  const int64_t skipped = call->axis.is_shifted;
  adjoint_view view[QN_ADJOINT_MOST_IN + 1];
  qn_tensor walked[QN_ADJOINT_MOST_IN + 1];
  int32_t operand = 0;
  do {
    const int is_of_result = operand < n_in && is_along_results(call, operand);
    set_view(&call->tensor[operand], &call->axis, e, is_of_result ? skipped - (operand == call->op->before) : 0, &view[operand]);
    walked[operand] = view[operand].tensor;
  } while (++operand <= n_in);
  qn_row_normalise(call->tensor[0].ndim, view[0].shape, 1u << axis, is_reduced, n_in, walked, 1, &walked[n_in], nest, count);
  return view[n_in].strides[axis] * call->tensor[n_in].size;
}

/* ---- Calls ---- */

/* An input may be the result itself if both have the same places; else the two are apart. */
typedef struct three_nests {
  qn_nest in, out, both;
} three_nests;

static quern_status adjoint_check_apart(const quern_op_info *info, const adjoint_call *call) {
  const qn_tensor *result = &call->tensor[info->n_in];
  QN_IN_SCRATCH(three_nests, nests);
  qn_tensor_normalise(result->ndim, result->shape, 0, NULL, 1, result, &nests->out);
  for (int32_t k = 0; k < info->n_in; k++) {
    const qn_tensor *tensor = &call->tensor[k];
    const uint8_t sizes[2] = {tensor->size, result->size};
    const quern_arg_info args[2] = {info->args[k], info->args[info->n_in]};
    quern_status status;
    if (call->axis.is_shifted || k == call->op->before) {
      qn_tensor_normalise(tensor->ndim, tensor->shape, 0, NULL, 1, tensor, &nests->in);
      status = qn_tensor_check_apart(info->name, args, &nests->in, &nests->out, sizes);
    } else {
      qn_tensor_normalise(result->ndim, result->shape, 1, tensor, 1, result, &nests->both);
      status = qn_tensor_check_overlap(info->name, args, &nests->both, 1, sizes);
    }
    if (status) return status;
  }
  return QUERN_OK;
}

static quern_status read_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given, int needs_data,
                              adjoint_call *call) {
  const quern_op_info *info = &op->builtin->info;
  qn_tensor *result = &call->tensor[info->n_in];
  quern_status status = read_inputs(op, in, given, needs_data, call);
  if (status || (status = qn_tensor_read(out[0], info->name, &info->args[info->n_in], 0, needs_data, result))) return status;
  if ((status = qn_resolve_stored(info, 0, call->promoted, result->dtype))) return status;
  if ((status = qn_tensor_check_shape(info->name, &info->args[info->n_in], 0, result, call->tensor[0].ndim, call->shape))) return status;
  if ((status = qn_tensor_check_devices(info->name, info->args, info->n_in, call->tensor, 1, result, &call->device))) return status;
  if (given && (status = qn_decide_check_flags(info, given->out_flags))) return status;
  for (int32_t k = 0; k <= info->n_in; k++)
    if (!call->tensor[k].ref.base) return QUERN_OK;
  return result->n_elements ? adjoint_check_apart(info, call) : QUERN_OK;
}

/* The elements of the axis that some result depends on. */
static int64_t walk_of(const adjoint_call *call) { return call->axis.given[2] && call->n ? call->n - 1 : call->n; }

/* Not inlined, so that the stack of views is free when the op runs. */
__attribute__((noinline)) static quern_status decide_walk(const quern_op *op, const adjoint_call *call, qn_decision *decision) {
  const quern_op_info *info = &op->builtin->info;
  const int32_t n_in = info->n_in;
  const int64_t e = walk_of(call);
  const int is_here = call->device.device_type == kDLCPU;
  quern_status status = qn_decide_choose_backend(info, call->device, decision);
  if (status || (status = qn_decide_check_backend(info, decision))) return status;
  decision->called = decision->op = op;
  if (is_here) decision->backend = qn_adjoint_backend;
  decision->specialised = NULL;
  decision->signature = NULL;
  decision->param_dtype = 0;
  decision->n_slots = 0;
  decision->slots = NULL;
  decision->n_in = n_in;
  decision->n_operands = n_in + 1;
  decision->of_kind = call->walk;
  for (int32_t k = 0; k <= n_in; k++) {
    decision->dtypes[k] = call->tensor[k].dtype;
    decision->sizes[k] = call->tensor[k].size;
    decision->device_types[k] = (uint8_t)call->tensor[k].device.device_type;
    decision->byte_offset[k] = call->tensor[k].ref.offset;
  }
  const int64_t step = walk_nest(op, call, e, !is_here && e == 0 && call->tensor[n_in].n_elements, &decision->nest, &decision->count);
  const qn_state_place place = place_of(call, e);
  decision->nest.has_handles = decision->backend->has_handles;
  qn_scan_launch_set(decision, (qn_scan_launch){
      .is_first_stored = e < call->n, .first_offset = -step, .state_bytes = QN_SCAN_STATE, .n_more = 3,
      .more = {(uint64_t)place.last, (uint64_t)place.first, (uint64_t)place.step}});
  return decision->backend->stand_in ? decision->backend->stand_in(op, decision->dtypes, decision) : QUERN_OK;
}

static quern_status decide_adjoint(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given, int needs_data,
                                   qn_decision *decision) {
  adjoint_call call;
  quern_status status = read_call(op, in, out, given, needs_data, &call);
  return status ? status : decide_walk(op, &call, decision);
}

static quern_status call_adjoint(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given) {
  adjoint_call call;
  QN_IN_SCRATCH(qn_decision, decision);
  quern_status status = read_call(op, in, out, given, 1, &call);
  const qn_tensor *result = &call.tensor[op->builtin->info.n_in];
  if (status || result->n_elements == 0 || (status = decide_walk(op, &call, decision))) return status;
  const int has_work = decision->nest.n_elements != 0;
  if (decision->device.device_type != kDLCPU) return has_work ? decision->backend->call(decision, given) : QUERN_OK;
  const qn_float_env was = qn_float_env_enter();
  if (walk_of(&call) < call.n) qn_scan_axis_fill(result, call.axis.axis, call.axis.is_reverse ? 0 : call.n - 1, 0);
  if (has_work) status = decision->backend->call(decision, given);
  qn_float_env_leave(was);
  return status;
}

static quern_status explain_adjoint(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *given, qn_strbuf *buf) {
  QN_IN_SCRATCH(qn_decision, decision);
  quern_status status = decide_adjoint(op, in, out, given, 0, decision);
  return status ? status : decision->backend->explain(decision, given, buf);
}

const qn_kind qn_kind_adjoint = {
    .name = "adjoint", .has_own_entry = 1, .launched = QN_LAUNCHED_SCANS, .not_planned = "it cannot be prepared; call it with " QN_SPELLED(quern_op_call), .result = adjoint_result,
    .infer = infer_adjoint, .measure = measure_adjoint, .decide = decide_adjoint, .call = call_adjoint, .explain = explain_adjoint};
