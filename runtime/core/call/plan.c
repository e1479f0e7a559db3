/* SPDX-License-Identifier: Apache-2.0
 *
 * plan.c: calls prepared once and run many times. See calls.h.
 *
 * A run checks only what depends on addresses: whether operands overlap. The plan keeps each operand's first and last byte,
 * relative to its data pointer; comparing these settles all but rare cases. */
#include "core/call/calls.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/float_env.h"
#include "core/op/decide.h"
#include "core/op/kind.h"
#include "core/tensor/tensor.h"

/* The arguments of a registered op at each run: its operands, with copies of their shapes and strides, and the parameters of
 * the preparation. */
typedef struct descriptors {
  int32_t n_params;
  quern_scalar params[QN_MAX_PARAMS];
  DLTensor tensor[QN_MAX_OPERANDS];
  int64_t layout[QN_MAX_OPERANDS][2 * QUERN_MAX_NDIM];
} descriptors;

/* The extent of an operand, in bytes from its data pointer. */
typedef struct byte_extent {
  int64_t first;     /* the nest's first item */
  int64_t low, high; /* [low, high) holds all of its bytes: none of a tensor without elements */
  uint32_t twins;    /* of an output: bit k: input k has the same strides and item size, so it may be the same tensor */
} byte_extent;

struct quern_plan {
  quern_op *op;
  descriptors *descriptors;    /* of a registered op, else NULL */
  quern_status own_status; /* 0: `decision` is valid; else the error of preparing the library's own op */
  byte_extent extent[QN_MAX_OPERANDS];
  qn_decision decision;
  qn_run *run; /* the backend's; NULL: there are no elements */
};

/* ---- Preparing ---- */

static int are_twins(const qn_decision *decision, int32_t a, int32_t b) {
  const qn_nest *nest = &decision->nest;
  if (decision->sizes[a] != decision->sizes[b]) return 0;
  for (int32_t d = 0; d < nest->rank; d++)
    if (nest->stride[a][d] != nest->stride[b][d]) return 0;
  return 1;
}

static void measure(qn_decision const *decision, DLTensor *const *in, DLTensor *const *out, byte_extent *extents) {
  const qn_nest *nest = &decision->nest;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    byte_extent *extent = &extents[k];
    extent->first = (int64_t)((uint64_t)nest->ref[k].offset - (uint64_t)decision->byte_offset[k]);
    extent->low = extent->high = extent->first;
    for (int32_t d = 0; d < nest->rank; d++) {
      int64_t reach = (nest->n[d] - 1) * nest->stride[k][d];
      extent->low += reach < 0 ? reach : 0;
      extent->high += reach < 0 ? 0 : reach;
    }
    extent->high += decision->sizes[k];
    const DLTensor *tensor = k < nest->n_positions ? NULL : k < decision->n_in ? in[k - nest->n_positions] : out[k - decision->n_in];
    for (int32_t d = 0; tensor && d < tensor->ndim; d++)
      if (tensor->shape[d] == 0) extent->high = extent->low;
    extent->twins = 0;
    const int is_judged = k >= decision->n_in && !(nest->apart >> (k - decision->n_in) & 1);
    for (int32_t j = nest->n_positions; is_judged && j < decision->n_in; j++)
      extent->twins |= (uint32_t)are_twins(decision, j, k) << j;
  }
}

static quern_status prepare_own(quern_plan *plan, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  const quern_op_info *info = qn_registry_own_info(plan->op);
  qn_decision *decision = &plan->decision;
  qn_float_env was = qn_float_env_enter(); /* for the rounding of parameters */
  quern_status status = qn_kind_of(plan->op)->decide(plan->op, in, out, call, 0, decision);
  qn_float_env_leave(was);
  if (status || decision->nest.n_elements == 0) return status;
  if ((status = qn_tensor_check_itself(info->name, info->args, &decision->nest, info->n_out, decision->sizes))) return status;
  measure(decision, in, out, plan->extent);
  return decision->backend->prepare(decision, call, &plan->run);
}

/* Copies the descriptors unchecked: a registered implementation checks dtypes, shapes and strides itself, at each run. */
static quern_status copy_descriptors(const quern_op *op, DLTensor *const *in, DLTensor *const *out, descriptors *copy) {
  const quern_op_info *info = op->info;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    int32_t index = k < info->n_in ? k : k - info->n_in;
    const DLTensor *tensor = k < info->n_in ? in[index] : out[index];
    quern_status status = qn_tensor_copy(tensor, info->name, &info->args[k], index, &copy->tensor[k], copy->layout[k]);
    if (status) return status;
    copy->tensor[k].byte_offset = 0; /* a run's pointers include it */
  }
  return QUERN_OK;
}

static quern_status prepare_registered(quern_plan *plan, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  const quern_op_info *info = plan->op->info;
  int32_t n_params = call && call->params ? call->n_params : 0;
  if (n_params < 0 || n_params > info->n_params)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d parameters given, it has %d", info->name, n_params, info->n_params);
  descriptors *copy = plan->descriptors = malloc(sizeof *plan->descriptors);
  if (!copy) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", info->name);
  copy->n_params = n_params;
  for (int32_t k = 0; k < n_params; k++) copy->params[k] = call->params[k];
  return copy_descriptors(plan->op, in, out, copy);
}

static void plan_free(quern_plan *plan) {
  free(plan->run);
  free(plan->descriptors);
  free(plan);
}

quern_status qn_plan_create(quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                            quern_plan **out_plan) {
  const char *not_planned = qn_kind_of(op)->not_planned;
  if (not_planned) return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: %s", op->info->name, not_planned);
  quern_plan *plan = malloc(sizeof *plan);
  quern_status status = QUERN_OK;
  qn_sentence kept;
  if (!plan) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", op->info->name);
  qn_status_keep(&kept);
  plan->op = op;
  plan->descriptors = NULL;
  plan->run = NULL;
  plan->own_status = QUERN_OK;
  if (qn_kind_is_there(op)) status = plan->own_status = prepare_own(plan, in, out, call);
  if (op->registered && status != QUERN_E_MEMORY) {
    if (status) qn_status_restore(&kept);
    status = prepare_registered(plan, in, out, call);
  }
  if (status) return plan_free(plan), status;
  qn_registry_retain(op);
  *out_plan = plan;
  return QUERN_OK;
}

void qn_plan_destroy(quern_plan *plan) {
  qn_registry_release(plan->op);
  plan_free(plan);
}

const quern_op *qn_plan_op(const quern_plan *plan) { return plan->op; }

/* ---- Running ---- */

/* The exact check. Not inlined, so that what it takes is free when the op runs. */
__attribute__((noinline)) static quern_status check_overlap_exactly(const quern_plan *plan, const qn_ref *ref) {
  const quern_op_info *info = qn_registry_own_info(plan->op);
  QN_IN_SCRATCH(qn_nest, nest);
  *nest = plan->decision.nest;
  for (int32_t k = 0; k < nest->n_operands; k++) nest->ref[k] = ref[k];
  return qn_tensor_check_overlap(info->name, info->args, nest, info->n_out, plan->decision.sizes);
}

/* ref: each operand's first item. */
static quern_status check_overlap(const quern_plan *plan, const qn_ref *ref) {
  const qn_decision *decision = &plan->decision;
  if (decision->nest.has_handles) return check_overlap_exactly(plan, ref);
  for (int32_t o = decision->n_in; o < decision->n_operands; o++) {
    const byte_extent *mine = &plan->extent[o];
    const uintptr_t data = (uintptr_t)ref[o].base, low = data + (uintptr_t)mine->low, high = data + (uintptr_t)mine->high;
    for (int32_t k = decision->nest.n_positions; k < o; k++) {
      const byte_extent *other = &plan->extent[k];
      const uintptr_t other_data = (uintptr_t)ref[k].base;
      if (high <= other_data + (uintptr_t)other->low || other_data + (uintptr_t)other->high <= low) continue;
      if (k < decision->n_in && qn_ref_address(ref[k]) == qn_ref_address(ref[o]) && mine->twins >> k & 1) continue;
      return check_overlap_exactly(plan, ref);
    }
  }
  return QUERN_OK;
}

static quern_status run_own(const quern_plan *plan, void *const *in, void *const *out, const quern_call *call) {
  const quern_op_info *info = qn_registry_own_info(plan->op);
  const qn_decision *decision = &plan->decision;
  const qn_params *params = &decision->params;
  const int32_t first = decision->nest.n_positions;
  qn_params given;
  quern_status status = QUERN_OK;
  if (call) {
    if ((status = qn_decide_check_flags(info, call->out_flags))) return status;
    if (call->params) {
      if (qn_kind_of(plan->op)->check_run && (status = qn_kind_of(plan->op)->check_run(decision, call))) return status;
      if ((status = qn_decide_convert(info, decision, call, &given))) return status;
      params = &given;
    }
  }
  if (decision->nest.n_elements == 0) return QUERN_OK;
  qn_ref ref[QN_MAX_OPERANDS];
  for (int32_t k = 0; k < first; k++) ref[k] = decision->nest.ref[k];
  for (int32_t k = first; k < decision->n_operands; k++) {
    ref[k].base = k < decision->n_in ? in[k - first] : out[k - decision->n_in];
    if (!ref[k].base && plan->extent[k].low < plan->extent[k].high)
      return qn_tensor_fail(QUERN_E_ARGUMENT, info->name, &info->args[k - first], k < decision->n_in ? k - first : k - decision->n_in, "data is NULL");
    ref[k].offset = plan->extent[k].first;
  }
  if ((status = check_overlap(plan, ref))) return status;
  return decision->backend->launch(decision, plan->run, ref, params, call);
}

/* Asks the registered implementation. Returns 1 if it declines; else *status is the result. Not inlined, for its stack. */
__attribute__((noinline)) static int is_run_declined(const quern_plan *plan, void *const *in, void *const *out,
                                                     const quern_call *call, quern_status *status) {
  const quern_op_def *def = plan->op->registered;
  qn_sentence kept;
  DLTensor tensor[QN_MAX_OPERANDS];
  DLTensor *pointer[QN_MAX_OPERANDS];
  for (int32_t k = 0; k < def->n_in + def->n_out; k++) {
    tensor[k] = plan->descriptors->tensor[k];
    tensor[k].data = k < def->n_in ? in[k] : out[k - def->n_in];
    pointer[k] = &tensor[k];
  }
  quern_call with_params = {.size = sizeof with_params};
  if (plan->descriptors->n_params && !(call && call->params)) {
    if (call) with_params = *call;
    with_params.params = plan->descriptors->params;
    with_params.n_params = plan->descriptors->n_params;
    call = &with_params;
  }
  qn_status_keep(&kept);
  *status = def->call(def->self, def->n_in, pointer, def->n_out, pointer + def->n_in, call);
  if (plan->own_status && *status) return 0;
  return qn_dispatch_falls_back(plan->op, *status, &kept);
}

quern_status qn_plan_run(const quern_plan *plan, void *const *in, void *const *out, const quern_call *call) {
  quern_status status;
  if (plan->descriptors && !is_run_declined(plan, in, out, call, &status)) return status;
  qn_float_env was = qn_float_env_enter();
  status = run_own(plan, in, out, call);
  qn_float_env_leave(was);
  return status;
}
