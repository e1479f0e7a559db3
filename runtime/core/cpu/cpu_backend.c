/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_backend.c: the CPU as a backend: plans the job of a decision, which the engine runs, and explains it. See cpu_backend.h. */
#include "core/cpu/cpu_backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/isa.h"
#include "core/cpu/engine.h"

quern_status qn_cpu_check(const quern_op_info *info) {
  static atomic_bool is_fine; /* cached: neither the machine nor the set of built kernels changes */
  if (atomic_load_explicit(&is_fine, memory_order_relaxed)) return QUERN_OK;
  if (!qn_job_kernel(qn_packs.stream, NULL))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: this machine is of level %s, and no kernels are built for that or below",
                          info->name, qn_isa_name(qn_isa_machine()));
  atomic_store_explicit(&is_fine, true, memory_order_relaxed);
  return QUERN_OK;
}

/* ---- Running ---- */

static void plan_built(const qn_decision *decision, qn_job *job) {
  qn_job_plan(decision->signature, decision->dtypes, &decision->nest, decision->n_operands - decision->n_in, job);
}

static quern_status run_built(const qn_decision *decision, const qn_job *job, const qn_ref *ref, const qn_params *params) {
  qn_slices *slices = job->most_slices > 1 ? qn_registry_slices(decision->called) : NULL;
  return qn_engine_run(job, job->kernel, ref, params, slices);
}

static quern_status cpu_call(const qn_decision *decision, const quern_call *call) {
  qn_job job;
  (void)call;
  plan_built(decision, &job);
  return run_built(decision, &job, decision->nest.ref, &decision->params);
}

static quern_status cpu_prepare(const qn_decision *decision, const quern_call *call, qn_run **made) {
  qn_job *job = malloc(sizeof *job);
  (void)call;
  if (!job) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  plan_built(decision, job);
  *made = (qn_run *)job;
  return QUERN_OK;
}

static quern_status cpu_launch(const qn_decision *decision, const qn_run *prepared, const qn_ref *ref, const qn_params *params,
                               const quern_call *call) {
  (void)call;
  return run_built(decision, (const qn_job *)prepared, ref, params);
}

/* ---- Explaining ---- */

/* The line of one operand: its packing and conversion. */
static void add_operand(qn_strbuf *buf, const quern_op_info *info, const qn_job *job, int32_t k) {
  static const char *const words[] = {
      [QN_PACKING_IN_PLACE] = "in place", [QN_PACKING_CONVERT] = "", [QN_PACKING_ONE] = "one value",
      [QN_PACKING_FILL] = "one value spread", [QN_PACKING_ROWS] = "rows copied", [QN_PACKING_STRIDED] = "moved",
      [QN_PACKING_AT] = "moved", [QN_PACKING_POSITION] = "counted", [QN_PACKING_STREAM] = "streamed"};
  const qn_operand *operand = &job->operand[k];
  char name[QN_TENSOR_ARG_CHARS];
  const char *word = words[operand->packing];
  const int32_t arg = k - job->nest->n_positions;
  if (arg < 0)
    qn_strbuf_add(buf, "the elements' indices: %s", word);
  else
    qn_strbuf_add(buf, "%s: %s", qn_tensor_arg_text(&info->args[arg], k < job->n_in ? arg : k - job->n_in, name), word);
  if (operand->mover) qn_strbuf_add(buf, " by %s", operand->mover->name);
  if (operand->convert) {
    const uint8_t own = operand->dtype, compute = operand->compute_dtype;
    const uint8_t from = k < job->n_in ? own : compute, to = k < job->n_in ? compute : own;
    qn_strbuf_add(buf, "%sconverted from %s to %s", *word ? ", " : "", qn_dtype_infos[from].name, qn_dtype_infos[to].name);
  }
  qn_strbuf_add(buf, "\n");
}

void qn_cpu_explain_job(qn_strbuf *buf, const quern_op_info *info, const qn_job *job, const qn_slices *slices) {
  if (!job) {
    qn_strbuf_add(buf, "variant: none\npath: none\nisa: %s\nthreads: 1\nstreamed: no\n", qn_isa_name(qn_isa_detect()));
    return;
  }
  const char *isa = qn_isa_name(job->isa);
  int has_level = job->variant && job->variant->fn[job->isa] && job->isa != QN_ISA_GENERIC; /* the variant's name lacks it */
  qn_strbuf_add(buf, "variant: %s%s%s\npath: %s\nisa: %s\nthreads: %d\nstreamed: %s\n",
           job->variant ? job->variant->name : "none", has_level ? "_" : "", has_level ? isa : "",
           job->path == QN_PATH_DIRECT ? "direct" : "blocks", isa, qn_engine_slices(job, slices), job->streamed ? "yes" : "no");
  if (job->path == QN_PATH_DIRECT) return;
  qn_strbuf_add(buf, "box:");
  for (int32_t j = job->tile_rank - 1; j >= 0; j--)
    qn_strbuf_add(buf, " %lld%s", (long long)job->chunk[job->tile_dim[j]], j ? " x" : "");
  qn_strbuf_add(buf, job->tile_rank ? "\n" : " 1\n");
  for (int32_t k = 0; k < job->n_operands; k++) add_operand(buf, info, job, k);
}

static const char *reason_of(const qn_job *job) {
  if (!job) return "there are no elements";
  if (job->path == QN_PATH_DIRECT)
    return job->streamed ? "a built kernel takes the inputs as they lie, its results are written past the cache"
                         : "a built kernel takes the operands as they lie";
  if (job->streamed) return "a built kernel, its results written past the cache";
  return "a built kernel, over blocks of what does not lie as it needs it";
}

static quern_status cpu_explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  qn_job planned, *job = NULL;
  (void)call;
  if (decision->nest.n_elements) {
    plan_built(decision, &planned);
    job = &planned;
  }
  qn_strbuf_add(buf, "tier: built\nreason: %s\n", reason_of(job));
  qn_cpu_explain_job(buf, &decision->op->builtin->info, job, qn_registry_slices(decision->op));
  return QUERN_OK;
}

const qn_backend qn_backend_cpu = {.device_name = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = cpu_call,
                                   .prepare = cpu_prepare, .launch = cpu_launch, .explain = cpu_explain};
