/* plan.c: see plan.h.
 *
 * What depends on addresses is all that is left to a run: do the operands overlap? Where each of them begins and ends,
 * counted from its data pointer, is kept, and answers that for all but odd cases. */
#include "core/call/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/call/cuda.h"
#include "core/cpu/engine.h"
#include "core/base/float_env.h"
#include "core/kinds/index.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

/* What a registered op is given at each run: its operands with copies of their shapes and strides, and the parameters it
 * was prepared with. */
typedef struct descriptors {
  int32_t n_params;
  quern_scalar params[QN_MAX_PARAMS];
  DLTensor tensor[QN_MAX_OPERANDS];
  int64_t layout[QN_MAX_OPERANDS][2 * QUERN_MAX_NDIM];
} descriptors;

/* Where an operand lies, in bytes from its data pointer. */
typedef struct extent {
  int64_t first;     /* the item that the nest begins with */
  int64_t low, high; /* from the lowest byte to behind the highest */
  uint32_t twins;    /* of an output: bit k: input k has its strides and item size: they may be one tensor */
} extent;

struct quern_plan {
  quern_op *op;
  descriptors *descriptors;    /* of a registered op, else NULL */
  quern_status own_status; /* 0: `decision` is there; else why the library's own op, if there is one, cannot run */
  extent extent[QN_MAX_OPERANDS];
  qn_decision decision;
  qn_job *later; /* what runs once decision.compiled has code; NULL: there is no such thing */
  qn_cuda_run *cuda; /* NULL: the CPU computes */
};

/* ---- Preparing ---- */

/* No output may meet itself. Unlike other overlaps this does not depend on where tensors lie. */
static quern_status check_outputs(const quern_op_info *info, const qn_decision *decision) {
  const qn_nest *nest = &decision->job.nest;
  qn_nest alone = {.rank = nest->rank, .n_operands = 1, .n_elements = nest->n_elements};
  for (int32_t d = 0; d < nest->rank; d++) alone.n[d] = nest->n[d];
  for (int32_t k = info->n_in; k < nest->n_operands; k++) {
    for (int32_t d = 0; d < nest->rank; d++) alone.stride[0][d] = nest->stride[k][d];
    alone.ptr[0] = (char *)(uintptr_t)QN_TENSOR_MAX_SPAN; /* any address that its span cannot wrap around */
    quern_status status = qn_tensor_check_overlap(info->name, &info->args[k], &alone, 1, &decision->sizes[k]);
    if (status) return status;
  }
  return QUERN_OK;
}

static int are_twins(const qn_decision *decision, int32_t a, int32_t b) {
  const qn_nest *nest = &decision->job.nest;
  if (decision->sizes[a] != decision->sizes[b]) return 0;
  for (int32_t d = 0; d < nest->rank; d++)
    if (nest->stride[a][d] != nest->stride[b][d]) return 0;
  return 1;
}

static void measure(const quern_op_info *info, quern_plan *plan) {
  const qn_decision *decision = &plan->decision;
  const qn_nest *nest = &decision->job.nest;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    extent *extent = &plan->extent[k];
    extent->first = (int64_t)((uintptr_t)nest->ptr[k] - (uintptr_t)decision->data[k]);
    extent->low = extent->high = extent->first;
    for (int32_t d = 0; d < nest->rank; d++) {
      int64_t reach = (nest->n[d] - 1) * nest->stride[k][d];
      if (reach < 0)
        extent->low += reach;
      else
        extent->high += reach;
    }
    extent->high += decision->sizes[k];
    extent->twins = 0;
    for (int32_t j = 0; k >= info->n_in && j < info->n_in; j++)
      extent->twins |= (uint32_t)are_twins(decision, j, k) << j;
  }
}

static quern_status prepare_own(quern_plan *plan, DLTensor *const *in, DLTensor *const *out, const quern_call *call) {
  const quern_op_info *info = qn_registry_own_info(plan->op);
  if (plan->op->fused && !(plan->later = malloc(sizeof *plan->later)))
    return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", info->name);
  qn_float_env was = qn_float_env_enter(); /* parameters are rounded in it */
  quern_status status = qn_dispatch_decide(plan->op, in, out, call, 0, &plan->decision, plan->later);
  qn_float_env_leave(was);
  if (!plan->decision.compiled || plan->decision.job.kernel) { /* code is there already, or never wanted */
    free(plan->later);
    plan->later = NULL;
  }
  if (status || plan->decision.job.nest.n_elements == 0) return status;
  if (qn_registry_is_index(plan->op)) {
    plan->extent[1].first = (int64_t)((uintptr_t)plan->decision.job.nest.ptr[1] - (uintptr_t)plan->decision.data[1]);
  } else {
    if ((status = check_outputs(info, &plan->decision))) return status;
    measure(info, plan);
  }
  if (!qn_dispatch_is_cuda(&plan->decision)) return QUERN_OK;
  if (!(plan->cuda = malloc(sizeof *plan->cuda)))
    return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", info->name);
  return qn_cuda->prepare(plan->decision.op, &plan->decision, call, plan->cuda);
}

/* Dtypes, shapes and strides are the implementation's to judge, at each run. */
static quern_status copy_descriptors(const quern_op *op, DLTensor *const *in, DLTensor *const *out, descriptors *copy) {
  const quern_op_info *info = op->info;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    int32_t index = k < info->n_in ? k : k - info->n_in;
    const DLTensor *tensor = k < info->n_in ? in[index] : out[index];
    quern_status status =
        qn_tensor_copy(tensor, info->name, &info->args[k], index, &copy->tensor[k], copy->layout[k]);
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
  free(plan->cuda);
  free(plan->later);
  free(plan->descriptors);
  free(plan);
}

quern_status qn_plan_create(quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                            quern_plan **out_plan) {
  if (qn_registry_is_dynamic(op))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: its output's shape depends on values, which a plan does not know; call it "
                          "with " QN_SPELLED(quern_op_call), op->info->name);
  quern_plan *plan = malloc(sizeof *plan);
  quern_status status = QUERN_OK;
  qn_sentence kept;
  if (!plan) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", op->info->name);
  qn_status_keep(&kept);
  plan->op = op;
  plan->descriptors = NULL;
  plan->later = NULL;
  plan->cuda = NULL;
  plan->decision.compiled = NULL;
  plan->own_status = QUERN_OK;
  if (op->builtin || op->fused) status = plan->own_status = prepare_own(plan, in, out, call);
  if (op->registered) {
    if (status) qn_status_restore(&kept);
    status = prepare_registered(plan, in, out, call);
  }
  if (status) {
    plan_free(plan);
    return status;
  }
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

/* The exact answer. Not inlined: its stack is to be free again when the job runs. */
__attribute__((noinline)) static quern_status check_overlap_exactly(const quern_plan *plan, char *const *ptr) {
  const quern_op_info *info = qn_registry_own_info(plan->op);
  qn_nest nest = plan->decision.job.nest;
  for (int32_t k = 0; k < nest.n_operands; k++) nest.ptr[k] = ptr[k];
  return qn_tensor_check_overlap(info->name, info->args, &nest, info->n_out, plan->decision.sizes);
}

/* ptr: where each operand's nest begins. */
static quern_status check_overlap(const quern_plan *plan, char *const *ptr) {
  const qn_job *job = &plan->decision.job;
  for (int32_t o = job->n_in; o < job->n_operands; o++) {
    const extent *mine = &plan->extent[o];
    uintptr_t data = (uintptr_t)ptr[o] - (uintptr_t)mine->first;
    uintptr_t low = data + (uintptr_t)mine->low, high = data + (uintptr_t)mine->high;
    for (int32_t k = 0; k < o; k++) {
      const extent *other = &plan->extent[k];
      uintptr_t other_data = (uintptr_t)ptr[k] - (uintptr_t)other->first;
      if (high <= other_data + (uintptr_t)other->low || other_data + (uintptr_t)other->high <= low) continue;
      if (k < job->n_in && ptr[k] == ptr[o] && mine->twins >> k & 1) continue;
      return check_overlap_exactly(plan, ptr);
    }
  }
  return QUERN_OK;
}

static quern_status refuse_null_data(const quern_op_info *info, int32_t k) {
  return qn_tensor_fail(QUERN_E_ARGUMENT, info->name, &info->args[k], k < info->n_in ? k : k - info->n_in, "data is NULL");
}

/* Code that has been compiled since the plan was made runs from the next run on. */
static const qn_job *current_job(const quern_plan *plan, qn_kernel **kernel) {
  const qn_decision *decision = &plan->decision;
  if (plan->later && (*kernel = qn_compiled_kernel(decision->compiled))) return plan->later;
  *kernel = decision->job.kernel;
  return &decision->job;
}

/* Of an index op: where its one output lies changes nothing. */
static quern_status run_index(const quern_plan *plan, void *const *out, const qn_params *params, const quern_call *call) {
  const qn_decision *decision = &plan->decision;
  if (!out[0]) return refuse_null_data(&plan->op->builtin->info, 0);
  char *const ptr[2] = {decision->job.nest.ptr[0], (char *)out[0] + plan->extent[1].first};
  if (plan->cuda) return qn_cuda_launch(decision, plan->cuda, ptr, params, call);
  qn_engine_run(&decision->job, decision->job.kernel, ptr, params, qn_registry_slices(plan->op));
  return QUERN_OK;
}

static quern_status run_own(const quern_plan *plan, void *const *in, void *const *out, const quern_call *call) {
  const quern_op_info *info = qn_registry_own_info(plan->op);
  const qn_decision *decision = &plan->decision;
  qn_kernel *kernel;
  const qn_job *job = current_job(plan, &kernel);
  const qn_params *params = &decision->params;
  qn_params given;
  quern_status status = QUERN_OK;
  if (call) {
    if ((status = qn_dispatch_check_flags(info, call->out_flags))) return status;
    if (call->params) {
      status = qn_dispatch_convert(info, decision, call, &given);
      if (status) return status;
      if (qn_registry_is_index(plan->op)) qn_index_count(decision, &given);
      params = &given;
    }
  }
  if (decision->job.nest.n_elements == 0) return QUERN_OK;
  if (info->n_in == 0 && qn_registry_is_index(plan->op)) return run_index(plan, out, params, call);
  char *ptr[QN_MAX_OPERANDS];
  for (int32_t k = 0; k < job->n_operands; k++) {
    char *data = k < job->n_in ? in[k] : out[k - job->n_in];
    if (!data) return refuse_null_data(info, k);
    ptr[k] = data + plan->extent[k].first;
  }
  if ((status = check_overlap(plan, ptr))) return status;
  if (plan->cuda) return qn_cuda_launch(decision, plan->cuda, ptr, params, call);
  qn_engine_run(job, kernel, ptr, params, qn_registry_slices(plan->op));
  return QUERN_OK;
}

/* Whether the built-in op is to run instead; else *status is the run's. Not inlined, for its stack. */
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
  return qn_dispatch_falls_back((plan->op->builtin || plan->op->fused) && !plan->own_status, *status, &kept);
}

quern_status qn_plan_run(const quern_plan *plan, void *const *in, void *const *out, const quern_call *call) {
  quern_status status;
  if (plan->descriptors && !is_run_declined(plan, in, out, call, &status)) return status;
  qn_float_env was = qn_float_env_enter();
  status = run_own(plan, in, out, call);
  qn_float_env_leave(was);
  return status;
}
