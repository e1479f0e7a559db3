/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_backend.c: the CPU as a backend: plans the job of a decision, which the engine runs. See cpu_backend.h. */
#include "core/cpu/cpu_backend.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/isa.h"
#include "core/base/status.h"
#include "core/cpu/engine.h"

quern_status qn_cpu_check(const quern_op_info *info) {
  static atomic_bool is_fine; /* cached: neither the machine nor the set of built kernels changes */
  if (atomic_load_explicit(&is_fine, memory_order_relaxed)) return QUERN_OK;
  if (!qn_packs.stream)
    return qn_status_fail(QUERN_E_DEVICE, "%s: its tensors are on the cpu, which no kernels are built for", info->name);
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

static void run_built(const qn_decision *decision, const qn_job *job, const qn_ref *ref, const qn_params *params) {
  qn_slices *slices = job->most_slices > 1 ? qn_registry_slices(decision->called) : NULL;
  qn_engine_run(job, job->kernel, ref, params, slices);
}

static quern_status cpu_call(const qn_decision *decision, const quern_call *call) {
  qn_job job;
  (void)call;
  plan_built(decision, &job);
  run_built(decision, &job, decision->nest.ref, &decision->params);
  return QUERN_OK;
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
  run_built(decision, (const qn_job *)prepared, ref, params);
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
