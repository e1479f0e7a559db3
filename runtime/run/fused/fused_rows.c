/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_rows.c: see fused_rows.h. The axes are the expression's: they count in the shape of each reduction's own argument, and must be
 * the same dimensions for all of them. */
#include "run/fused/fused_rows.h"

#include "core/base/status.h"
#include "core/row/row_call.h"
#include "lang/parse/callee.h"
#include "run/stage/row_stages.h"
#include "run/fused/specialise.h"

/* ---- Axes ---- */

static quern_status refuse_axis(const quern_op_info *info, int32_t axis, int32_t ndim) {
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: axis %d of an argument of %d dimension%s", info->name, axis, ndim, ndim == 1 ? "" : "s");
}

/* The dimensions of the whole shape that a reduction's axes are, as bits. */
static quern_status resolve_axes(const quern_op_info *info, const qn_axes *axes, const qn_row_reduction *reduction,
                                 const qn_row_operands *operands, uint32_t *bits) {
  int32_t ndim = 0;
  for (int32_t k = 0; k < info->n_in; k++)
    if (reduction->inputs >> k & 1 && operands->tensor[k].ndim > ndim) ndim = operands->tensor[k].ndim;
  const int32_t missing = operands->ndim - ndim;
  *bits = 0;
  for (int32_t d = 0; d < ndim && axes->is_all; d++) *bits |= 1u << (missing + d);
  for (int32_t i = 0; i < axes->n; i++) {
    const int32_t axis = axes->axis[i], d = axis < 0 ? axis + ndim : axis;
    if (d < 0 || d >= ndim) return refuse_axis(info, axis, ndim);
    if (*bits >> (missing + d) & 1)
      return qn_status_fail(QUERN_E_ARGUMENT, "%s: axis %d is given twice", info->name, axis);
    *bits |= 1u << (missing + d);
  }
  /* Along the axes an argument must have the extents of the call. Only inputs that it reads count, and only outside of other
   * reductions: it does not vary along the axes by what these have reduced. */
  for (int32_t d = 0; d < operands->ndim; d++) {
    int is_whole = operands->shape[d] == 1;
    for (int32_t k = 0; k < info->n_in; k++) {
      const qn_tensor *tensor = &operands->tensor[k];
      const int32_t own = d - (operands->ndim - tensor->ndim);
      if (reduction->elements >> k & 1 && own >= 0 && tensor->shape[own] == operands->shape[d]) is_whole = 1;
    }
    if (*bits >> d & 1 && !is_whole)
      return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: a reduction's argument has extent 1 along axis %d, where other inputs have %lld: "
                            "compute it by a call of its own", info->name, d, (long long)operands->shape[d]);
  }
  return QUERN_OK;
}

/* Axes as an expression has them: "axis=0", "axis=(0, 2)". */
static const char *axes_text(uint32_t bits, char text[160]) {
  qn_strbuf buf = {text, 160, 0};
  const int is_one = __builtin_popcount(bits) == 1;
  qn_strbuf_add(&buf, is_one ? "axis=" : "axis=(");
  for (int32_t d = 0, n = 0; d < QUERN_MAX_NDIM; d++)
    if (bits >> d & 1) qn_strbuf_add(&buf, n++ ? ", %d" : "%d", d);
  if (!is_one) qn_strbuf_add(&buf, ")");
  return text;
}

/* The op of the first call with axes of that number. */
static const quern_op *call_with(const qn_expression *expression, int32_t axes) {
  const qn_instruction *at = expression->code;
  while (!qn_callee_has_axes(at) || at->axes != axes) at++;
  return at->v.op;
}

/* first: one that needs no other. */
static quern_status refuse_two_axes(const quern_op_info *info, const quern_op *first, uint32_t first_bits, const quern_op *other, uint32_t bits) {
  char a[160], b[160];
  const qn_row_op *row = qn_row_op_of(first->builtin);
  const char *name = first->info->name, *keeps = row && row->is_reduced ? ", keepdims=1" : "";
  axes_text(first_bits, a);
  axes_text(bits, b);
  return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: different axes, %s over %s and %s over %s: write two expressions, first r = %s(..., %s%s), then "
                        "this one with r in that place", info->name, name, a, other->info->name, b, name, a, keeps);
}

/* The axes of all reductions. */
static quern_status common_axes(const quern_op_info *info, const qn_expression *expression, const qn_row_stages *stages,
                                qn_row_operands *operands) {
  const qn_row_reduction *reductions;
  const int32_t n = qn_row_stages_reductions(stages, &reductions);
  operands->axes = 0; /* where no output needs a reduction */
  for (int32_t i = 0; i < n; i++) {
    uint32_t bits;
    quern_status status = resolve_axes(info, &expression->axes[reductions[i].axes], &reductions[i], operands, &bits);
    if (status) return status;
    if (reductions[i].scan && __builtin_popcount(bits) != 1)
      return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s runs along one axis of an argument that has %d: write axis=-1 or another", info->name,
                            reductions[i].scan->info->name, __builtin_popcount(bits));
    if (i > 0 && bits != operands->axes)
      return refuse_two_axes(info, call_with(expression, reductions[0].axes), operands->axes, call_with(expression, reductions[i].axes), bits);
    operands->axes = bits;
  }
  operands->reduced = expression->reduced;
  operands->keepdims = expression->keepdims;
  return QUERN_OK;
}

/* ---- The kind ---- */

static quern_status measure_rows(const quern_op *op, DLTensor *const *in, quern_shape *out, const quern_call *call) {
  const quern_op_info *info = op->info;
  const qn_expression *expression;
  const qn_row_stages *stages;
  qn_row_operands operands;
  uint8_t results[QN_MAX_OPERANDS];
  (void)call;
  quern_status status = qn_row_read_inputs(info, in, 0, &operands);
  if (status || (status = qn_specialise_expression(qn_fused_op_of(op), &expression))) return status;
  if ((status = qn_specialise_infer_rows(op, operands.dtype, results, &stages))) return status;
  if ((status = common_axes(info, expression, stages, &operands))) return status;
  return qn_row_measure(info, &operands, results, out);
}

static quern_status infer_rows(const quern_op *op, DLTensor *const *in, quern_shape *out) { return measure_rows(op, in, out, NULL); }

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) static quern_status decide_rows(const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                                          const quern_call *call, int needs_data, qn_decision *decision) {
  const quern_op_info *info = op->info;
  const qn_expression *expression;
  qn_row_operands operands;
  quern_status status = qn_row_read_inputs(info, in, needs_data, &operands);
  if (status || (status = qn_specialise_expression(qn_fused_op_of(op), &expression))) return status;
  for (int32_t k = 0; k < info->n_out; k++) {
    const quern_arg_info *arg = &info->args[info->n_in + k];
    if (!out[k]) return qn_tensor_fail(QUERN_E_ARGUMENT, info->name, arg, k, "the tensor is NULL");
    if ((status = qn_tensor_read_dtype(out[k]->dtype, info->name, arg, k, &operands.dtype[info->n_in + k]))) return status;
  }
  if ((status = qn_specialise(op, operands.dtype, &decision->specialised))) return status;
  const qn_specialisation *own = qn_specialisation_of(decision->specialised);
  if ((status = common_axes(info, expression, own->rows, &operands))) return status;
  if ((status = qn_row_read_outputs(info, out, needs_data, own->results, &operands))) return status;
  const qn_row_program *program = qn_row_stages_program(own->rows);
  if (expression->reduced && (status = qn_row_check_empty(info, program, &operands))) return status;
  decision->called = decision->op = op;
  decision->signature = &decision->specialised->signature;
  decision->param_dtype = 0;
  decision->n_slots = program->n_slots;
  decision->slots = program->slots;
  decision->shape_params[0] = decision->shape_params[1] = 0;
  return qn_row_decide(info, program, &operands, call, decision);
}

static const qn_kind row_expression = {.name = "row", .launched = QN_LAUNCHED_ROWS, .n_own_params = 1, .infer = infer_rows, .measure = measure_rows, .decide = decide_rows,
                                    .bind = qn_row_bind};

const qn_kind *qn_fused_rows_kind(const qn_expression *expression) { return expression->n_axes ? &row_expression : &qn_kind_elementwise; }
