/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_row.c: ops that reduce over axes. The first parameters of such an op give its shape: `axes`, and, where its outputs are reduced,
 * `keepdims`. Kernels do not have these; they have the op's own parameters, then the number of elements of a row. */
#include "core/base/status.h"
#include "core/op/kind.h"
#include "core/row/row_call.h"
#include "core/row/row_nest.h"

extern const qn_kind qn_kind_row;

static const qn_row_op *row_op(const qn_builtin *builtin) { return builtin->of_kind; }

const qn_row_op *qn_row_op_of(const qn_builtin *builtin) { return builtin->kind == &qn_kind_row ? builtin->of_kind : NULL; }

/* ---- Dtypes ---- */

/* The dtypes of the outputs before they are stored, for inputs that promote to a dtype. */
static void results_of(const qn_builtin *builtin, uint8_t promoted, uint8_t *results) {
  for (int32_t k = 0; k < builtin->info.n_out; k++)
    results[k] = builtin->results[k] != QN_DTYPE_NONE ? builtin->results[k] : row_op(builtin)->results[promoted];
}

static quern_status row_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen, uint8_t *dtype) {
  uint8_t promoted, results[QN_MAX_OUTPUTS];
  (void)chosen;
  quern_status status = qn_resolve_promoted(builtin, in_dtypes, &promoted);
  if (status) return status;
  results_of(builtin, promoted, results);
  *dtype = results[k];
  return QUERN_OK;
}

/* ---- Shapes ---- */

/* One of the parameters that give the shape, or its default, as an i64. */
static quern_status shape_param(const quern_op_info *info, int32_t k, const quern_call *call, int64_t *value) {
  const int32_t n_given = call && call->params ? call->n_params : 0;
  const qn_slot slot = {(uint8_t)k, QN_I64};
  qn_params params;
  quern_status status = qn_params_convert(info, QN_I64, 1, &slot, n_given, call ? call->params : NULL, &params);
  *value = status ? 0 : (int64_t)params.slot[0];
  return status;
}

/* Refuses an input that is declared `row` and has other extents than 1 along the axes. */
static quern_status check_row_inputs(const quern_op_info *info, const qn_row_op *row, const qn_row_operands *operands) {
  for (int32_t k = 0; k < info->n_in; k++) {
    const qn_tensor *in = &operands->tensor[k];
    for (int32_t d = 0; d < in->ndim && row->row_in >> k & 1; d++)
      if (operands->axes >> (operands->ndim - in->ndim + d) & 1 && in->shape[d] != 1)
        return qn_tensor_fail(QUERN_E_SHAPE, info->name, &info->args[k], k, "%lld elements along axis %d, which is reduced; expected 1",
                              (long long)in->shape[d], operands->ndim - in->ndim + d);
  }
  return QUERN_OK;
}

/* Reads axes and keepdims. given: these, for check_run. */
static quern_status read_axes(const quern_op_info *info, const qn_row_op *row, const quern_call *call, int64_t given[2],
                              qn_row_operands *operands) {
  const uint32_t all = (1u << info->n_out) - 1;
  quern_status status = shape_param(info, 0, call, &given[0]);
  given[1] = 0;
  if (status) return status;
  if ((status = qn_row_axes(info->name, given[0], operands->ndim, &operands->axes))) return status;
  if (row->is_reduced && (status = shape_param(info, 1, call, &given[1]))) return status;
  if (given[1] != 0 && given[1] != 1)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: keepdims is %lld, expected 0 or 1", info->name, (long long)given[1]);
  operands->reduced = row->is_reduced ? all : 0;
  operands->keepdims = given[1] ? all : 0;
  return row->is_reduced || call ? check_row_inputs(info, row, operands) : QUERN_OK; /* without a call, the shape is that of any axes */
}

static quern_status measure_row(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  const quern_op_info *info = &op->builtin->info;
  int64_t given[2];
  qn_row_operands operands;
  uint8_t promoted, results[QN_MAX_OUTPUTS];
  quern_status status = qn_row_read_inputs(info, in, 0, &operands);
  if (status || (status = qn_resolve_promoted(op->builtin, operands.dtype, &promoted))) return status;
  if ((status = read_axes(info, row_op(op->builtin), call, given, &operands))) return status;
  results_of(op->builtin, promoted, results);
  return qn_row_measure(info, &operands, results, out);
}

static quern_status infer_row(const quern_op *op, DLTensor *const *in, quern_shape *out) { return measure_row(op, in, out, NULL); }

/* ---- Decided ---- */

/* Whether a call runs the op's twin: the last shape parameter is given, if it has no default; else it is 1. */
static quern_status wants_twin(const quern_op *op, const quern_call *call, int64_t *wanted) {
  const quern_op_info *info = &op->builtin->info;
  const qn_row_op *row = row_op(op->builtin);
  const int32_t k = qn_row_n_shape_params(row) - 1;
  *wanted = 0;
  if (!row->twin || !call || !call->params || call->n_params <= k) return QUERN_OK;
  if (info->params[k].value.kind == QUERN_NONE) {
    *wanted = call->params[k].kind != QUERN_NONE;
    return QUERN_OK;
  }
  quern_status status = shape_param(info, k, call, wanted);
  if (status || *wanted == 0 || *wanted == 1) return status;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is %lld, expected 0 or 1", info->name, info->params[k].name, (long long)*wanted);
}

/* The op that runs for a call of an op. */
static quern_status find_twin(const quern_op *op, const quern_call *call, const quern_op **runs) {
  int64_t wanted;
  quern_status status = wants_twin(op, call, &wanted);
  *runs = op;
  if (status || !wanted) return status;
  *runs = qn_registry_find(op->ctx, row_op(op->builtin)->twin);
  if (*runs && (*runs)->builtin && qn_row_op_of((*runs)->builtin)) return QUERN_OK;
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: with %s it is the op %s, which is not built here", op->builtin->info.name,
                        op->builtin->info.params[qn_row_n_shape_params(row_op(op->builtin)) - 1].name, row_op(op->builtin)->twin);
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status decide_row(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                         const quern_call *call, int needs_data, qn_decision *decision) {
  const quern_op_info *info = &op->builtin->info;
  const quern_op *runs;
  qn_row_operands operands;
  uint8_t promoted, results[QN_MAX_OUTPUTS];
  quern_status status = find_twin(op, call, &runs);
  if (status) return status;
  const qn_row_op *row = row_op(runs->builtin);
  status = qn_row_read_inputs(info, in, needs_data, &operands);
  if (status || (status = qn_resolve_promoted(op->builtin, operands.dtype, &promoted))) return status;
  if ((status = read_axes(info, row, call, decision->shape_params, &operands))) return status;
  decision->shape_params[1] |= (runs != op) << 1;
  results_of(op->builtin, promoted, results);
  if ((status = qn_row_read_outputs(info, out, needs_data, results, &operands))) return status;
  const qn_row_program *program = row->programs[promoted];
  if (row->is_reduced && (status = qn_row_check_empty(info, program, &operands))) return status;
  decision->called = op;
  decision->op = runs;
  decision->specialised = NULL;
  decision->signature = NULL;
  if (op->fused) { /* of a spec: its program runs on the CPU, in place of kernels that are not there */
    if ((status = op->fused->decide(op, operands.dtype, decision))) return status;
    program = decision->of_kind;
  }
  decision->param_dtype = 0;
  decision->n_slots = program->n_slots;
  decision->slots = program->slots;
  return qn_row_decide(info, program, &operands, call, decision);
}

/* A run of a plan may not have another shape than was prepared. */
static quern_status check_run(const qn_decision *decision, const quern_call *call) {
  const quern_op_info *info = &decision->called->builtin->info;
  int64_t wanted;
  quern_status met = wants_twin(decision->called, call, &wanted);
  if (met) return met;
  if (decision->shape_params[1] >> 1 != wanted)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: the parameter %s was %sgiven when the plan was prepared; prepare another plan",
                          info->name, info->params[info->n_params - 1].name, wanted ? "not " : "");
  for (int32_t k = 0; k < 1 + row_op(decision->called->builtin)->is_reduced; k++) {
    int64_t given;
    quern_status status = shape_param(info, k, call, &given);
    if (status) return status;
    if (given != (k == 1 ? decision->shape_params[k] & 1 : decision->shape_params[k]))
      return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is %lld, but the plan was prepared for %lld; prepare another plan", info->name,
                            info->params[k].name, (long long)given, (long long)decision->shape_params[k]);
  }
  return QUERN_OK;
}

const qn_kind qn_kind_row = {.name = "row", .has_own_entry = 1, .launched = QN_LAUNCHED_ROWS, .n_own_params = 1, .result = row_result, .infer = infer_row, .measure = measure_row,
                             .decide = decide_row, .bind = qn_row_bind, .check_run = check_run};
