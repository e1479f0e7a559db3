/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_backend.c: the CPU as a backend: plans the job of a decision and has the engine run it. See cpu_backend.h. */
#include "core/cpu/cpu_backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/float_env.h"
#include "core/base/isa.h"
#include "core/base/status.h"
#include "core/cpu/engine.h"

/* What is kept for a plan. */
typedef struct cpu_run {
  const qn_compiled *compiled; /* an expression's code, which need not be there yet; NULL: none is wanted */
  qn_job job;
  qn_job later[]; /* of an expression: what runs once `compiled` has code that it had not when the plan was made */
} cpu_run;

quern_status qn_cpu_check(const quern_op_info *info) {
  static atomic_bool is_fine; /* neither the machine nor what is built changes */
  if (atomic_load_explicit(&is_fine, memory_order_relaxed)) return QUERN_OK;
  if (!qn_packs.stream)
    return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on the cpu, which no kernels are built for", info->name);
  if (!qn_job_kernel(qn_packs.stream, NULL))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: this machine is of level %s, and no kernels are built for that or below",
                          info->name, qn_isa_name(qn_isa_machine()));
  atomic_store_explicit(&is_fine, true, memory_order_relaxed);
  return QUERN_OK;
}

/* ---- Planning ---- */

/* Plans the job of a kernel that is compiled for this expression, these dtypes, and the operands as they lie along the inner
 * dimension: broadcast, or contiguous, which what lies otherwise is made in blocks. */
static void plan_compiled(const qn_decision *decision, qn_job *job, const qn_compiled **compiled) {
  const qn_specialised *specialised = decision->specialised;
  const qn_nest *nest = &decision->nest;
  uint8_t contiguous[QN_MAX_OPERANDS], broadcast[QN_MAX_OPERANDS];
  int32_t n_broadcast = 0;
  uint8_t rank = nest->rank >= 2 && nest->n[0] >= QN_ROW_WORTHWHILE && nest->n[0] < QN_CALL_WORTHWHILE ? 2 : 1;
  for (int32_t k = 0; k < nest->n_operands; k++) {
    int is_broadcast = k < decision->n_in && nest->rank && nest->stride[k][0] == 0;
    contiguous[k] = QN_CLASS_CONTIGUOUS;
    broadcast[k] = is_broadcast ? QN_CLASS_BROADCAST : QN_CLASS_CONTIGUOUS;
    n_broadcast += is_broadcast;
  }
  const qn_variant wanted[2] = {{.name = "", .dtypes = specialised->dtypes, .classes = contiguous, .rank = rank},
                                {.name = "", .dtypes = specialised->dtypes, .classes = broadcast, .rank = rank}};
  qn_signature signature = {.heavy = specialised->heavy, .n_variants = n_broadcast ? 2 : 1, .variants = wanted};
  for (int32_t k = 0; k < nest->n_operands; k++) signature.compute_dtypes[k] = specialised->dtypes[k];
  qn_job_plan(&signature, specialised->dtypes, nest, decision->n_operands - decision->n_in, job);
  *compiled = decision->op->fused->compiled(decision->op, specialised, job->variant->classes, rank);
  job->variant = NULL; /* it goes with this function */
  if (!*compiled) return;
  job->variant = &(*compiled)->variant;
  job->kernel = qn_compiled_kernel(*compiled);
  job->isa = (*compiled)->isa;
}

/* Of an expression the job is its compiled code's, or, until there is some, the interpreter's; `later` (may be NULL) is then the
 * job that the code will run, else not written. Returns the code; NULL: none is wanted. */
static const qn_compiled *plan(const qn_decision *decision, qn_job *job, qn_job *later) {
  const qn_specialised *specialised = decision->specialised;
  const qn_compiled *compiled = NULL;
  if (specialised && !specialised->is_built) {
    plan_compiled(decision, job, &compiled);
    if (job->kernel) return compiled;
    if (compiled && later) *later = *job;
  }
  qn_job_plan(decision->signature, decision->dtypes, &decision->nest, decision->n_operands - decision->n_in, job);
  return compiled;
}

/* ---- Running ---- */

static quern_status cpu_call(const qn_decision *decision, const quern_call *call) {
  qn_job job;
  (void)call;
  plan(decision, &job, NULL);
  qn_engine_run(&job, job.kernel, decision->nest.ref, &decision->params, qn_registry_slices(decision->called));
  return QUERN_OK;
}

static quern_status cpu_prepare(const qn_decision *decision, const quern_call *call, qn_run **run) {
  const int has_later = decision->specialised && !decision->specialised->is_built;
  cpu_run *made = malloc(sizeof *made + (has_later ? sizeof made->later[0] : 0));
  (void)call;
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  made->compiled = plan(decision, &made->job, has_later ? made->later : NULL);
  if (made->job.kernel) made->compiled = NULL; /* its code is there already */
  *run = (qn_run *)made;
  return QUERN_OK;
}

/* Code that has been compiled since the plan was made runs from the next run on. */
static quern_status cpu_launch(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                               const quern_call *call) {
  const cpu_run *prepared = (const cpu_run *)run;
  qn_kernel *kernel = prepared->compiled ? qn_compiled_kernel(prepared->compiled) : NULL;
  const qn_job *job = kernel ? prepared->later : &prepared->job;
  (void)call;
  qn_engine_run(job, kernel ? kernel : job->kernel, ref, params, qn_registry_slices(decision->called));
  return QUERN_OK;
}

/* ---- Explaining ---- */

static const char *reason_of(const qn_job *job) {
  if (!job) return "there are no elements";
  if (job->path == QN_PATH_DIRECT)
    return job->streamed ? "a built kernel takes the inputs as they lie, its results are written past the cache"
                         : "a built kernel takes the operands as they lie";
  if (job->streamed) return "a built kernel, its results written past the cache";
  return "a built kernel, over blocks of what does not lie as it needs it";
}

/* What an expression is, and how it has come to its kernel. */
static void explain_fused(const qn_decision *decision, const qn_compiled *compiled, const qn_job *job, qn_strbuf *buf) {
  const qn_specialised *specialised = decision->specialised;
  const quern_op *op = decision->op;
  qn_fused_facts facts;
  op->fused->facts(op, specialised, compiled, &facts);
  int is_compiled = job && compiled && job->kernel;
  qn_strbuf_add(buf, "tier: %s\nreason: %s\n", is_compiled ? facts.tier : specialised->is_built ? "built" : "interpreter",
                job ? facts.reason : "there are no elements");
  qn_cpu_explain_job(buf, qn_registry_own_info(op), job, qn_registry_slices(op));
  qn_strbuf_add(buf, "nodes: %d\ncompile_ms: %lld.%03lld\ncompiles: %lld\n", specialised->n_nodes,
                (long long)(facts.compile_us / 1000), (long long)(facts.compile_us % 1000), (long long)facts.compiles);
  if (!job || !job->program) return;
  qn_strbuf_add(buf, "steps: %d\n", job->program->n_steps);
  for (int32_t i = 0; i < job->program->n_steps; i++) qn_strbuf_add(buf, "step: %s\n", job->program->steps[i].variant->name);
}

static quern_status cpu_explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const qn_compiled *compiled = NULL;
  qn_job planned, *job = NULL;
  (void)call;
  if (decision->nest.n_elements) {
    const qn_float_env was = qn_float_env_enter();
    compiled = plan(decision, &planned, NULL);
    qn_float_env_leave(was);
    job = &planned;
  }
  if (decision->specialised) {
    explain_fused(decision, compiled, job, buf);
    return QUERN_OK;
  }
  qn_strbuf_add(buf, "tier: built\nreason: %s\n", reason_of(job));
  qn_cpu_explain_job(buf, &decision->op->builtin->info, job, qn_registry_slices(decision->op));
  return QUERN_OK;
}

const qn_backend qn_backend_cpu = {.place = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = cpu_call,
                                   .prepare = cpu_prepare, .launch = cpu_launch, .explain = cpu_explain};
