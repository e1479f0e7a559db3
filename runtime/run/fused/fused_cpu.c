/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_cpu.c: see fused_cpu.h. Built ops, and expressions that are one built op, are planned as in core/cpu/cpu_backend.c. */
#include "run/fused/fused_cpu.h"

#include <stdlib.h>

#include "core/base/float_env.h"
#include "core/base/status.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/engine.h"
#include "run/fused/layouts.h"
#include "run/interpret/program.h"

/* The data of a plan. */
typedef struct fused_run {
  const qn_compiled *compiled; /* the code, maybe not made yet; NULL: none is requested */
  qn_job job;
  qn_job later[]; /* the job for code that is made after the plan */
} fused_run;

/* ---- Planning ---- */

/* Plans the job of a kernel compiled for this expression, these dtypes, and the operands' classes along the inner dimension:
 * broadcast or contiguous; others are packed into contiguous blocks. */
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
  qn_signature signature = {.heavy = specialised->heavy, .n_heavy = specialised->n_heavy, .n_variants = n_broadcast ? 2 : 1, .variants = wanted};
  for (int32_t k = 0; k < nest->n_operands; k++) signature.compute_dtypes[k] = specialised->dtypes[k];
  qn_job_plan(&signature, specialised->dtypes, nest, decision->n_operands - decision->n_in, job);
  *compiled = qn_layouts_compiled(decision->op, specialised, job->variant->classes, rank);
  job->variant = NULL; /* it goes with this function */
  if (!*compiled) return;
  job->variant = &(*compiled)->variant;
  job->kernel = qn_compiled_kernel(*compiled);
  job->isa = (*compiled)->isa;
}

/* Plans the job of the compiled code, or, until that is made, the interpreter's; then `later` (may be NULL) is the job for the
 * code, else it is not written. Returns the code; NULL: none is requested. */
static const qn_compiled *plan(const qn_decision *decision, qn_job *job, qn_job *later) {
  const qn_compiled *compiled = NULL;
  if (!decision->specialised->is_built) {
    plan_compiled(decision, job, &compiled);
    if (job->kernel) return compiled;
    if (compiled && later) *later = *job;
  }
  qn_job_plan(decision->signature, decision->dtypes, &decision->nest, decision->n_operands - decision->n_in, job);
  return compiled;
}

/* ---- Running ---- */

static quern_status fused_call(const qn_decision *decision, const quern_call *call) {
  qn_job job;
  (void)call;
  plan(decision, &job, NULL);
  return qn_engine_run(&job, job.kernel, decision->nest.ref, &decision->params, qn_registry_slices(decision->called));
}

static quern_status fused_prepare(const qn_decision *decision, const quern_call *call, qn_run **run) {
  const int has_later = !decision->specialised->is_built;
  fused_run *made = malloc(sizeof *made + (has_later ? sizeof made->later[0] : 0));
  (void)call;
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  made->compiled = plan(decision, &made->job, has_later ? made->later : NULL);
  if (made->job.kernel) made->compiled = NULL; /* its code is made already */
  *run = (qn_run *)made;
  return QUERN_OK;
}

/* Code compiled after the plan was made is used from the next run on. */
static quern_status fused_launch(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                               const quern_call *call) {
  const fused_run *prepared = (const fused_run *)run;
  qn_kernel *kernel = prepared->compiled ? qn_compiled_kernel(prepared->compiled) : NULL;
  if (prepared->compiled && !kernel) qn_layouts_ask(prepared->compiled);
  const qn_job *job = kernel ? prepared->later : &prepared->job;
  (void)call;
  return qn_engine_run(job, kernel ? kernel : job->kernel, ref, params, qn_registry_slices(decision->called));
}

/* ---- Explaining ---- */

/* The lines of explain on an expression and its kernel. */
static void explain_fused(const qn_decision *decision, const qn_compiled *compiled, const qn_job *job, qn_strbuf *buf) {
  const qn_specialised *specialised = decision->specialised;
  const quern_op *op = decision->op;
  qn_fused_facts facts;
  qn_layouts_facts(op, specialised, compiled, &facts);
  int is_compiled = job && compiled && job->kernel;
  qn_strbuf_add(buf, "tier: %s\nreason: %s\n", is_compiled ? facts.tier : specialised->is_built ? "built" : "interpreter",
                job ? facts.reason : "there are no elements");
  qn_cpu_explain_job(buf, qn_registry_own_info(op), job, qn_registry_slices(op));
  qn_strbuf_add(buf, "nodes: %d\ncompile_ms: %lld.%03lld\ncompiles: %lld\n", specialised->n_nodes,
                (long long)(facts.compile_us / 1000), (long long)(facts.compile_us % 1000), (long long)facts.compiles);
  if (!job || !job->program) return;
  const qn_program *program = (const qn_program *)job->program;
  qn_strbuf_add(buf, "steps: %d\n", program->n_steps);
  for (int32_t i = 0; i < program->n_steps; i++) qn_strbuf_add(buf, "step: %s\n", program->steps[i].variant->name);
}

static quern_status fused_explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const qn_compiled *compiled = NULL;
  qn_job planned, *job = NULL;
  (void)call;
  if (decision->nest.n_elements) {
    const qn_float_env was = qn_float_env_enter();
    compiled = plan(decision, &planned, NULL);
    qn_float_env_leave(was);
    job = &planned;
  }
  explain_fused(decision, compiled, job, buf);
  return QUERN_OK;
}

const qn_backend qn_fused_cpu = {.device_name = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = fused_call,
                                 .prepare = fused_prepare, .launch = fused_launch, .explain = fused_explain};
