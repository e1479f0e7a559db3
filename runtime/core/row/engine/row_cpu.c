/* SPDX-License-Identifier: Apache-2.0
 *
 * row_cpu.c: calls that reduce, on the CPU, as a backend. See row_call.h. */
#include <stdlib.h>

#include "core/base/status.h"
#include "core/cpu/cpu_backend.h"
#include "core/row/row_call.h"
#include "core/row/engine/row_engine.h"
#include "core/row/scan_op.h"

/* Whether each row has one place that is picked from. In an expression, the places may vary along the axes. */
static int has_one_place(const qn_row_program *picking, const qn_nest *nest) {
  for (int32_t i = 0; i < picking->n_stages; i++)
    for (int32_t d = 0; d < nest->n_reduced && qn_row_picks(&picking->stages[i]); d++)
      if (nest->stride[picking->stages[i].values[1]][d]) return 0;
  return 1;
}

static const qn_row_program *program_of(const qn_decision *decision, const qn_params *params) {
  const qn_row_program *program = decision->of_kind;
  if (program->special && params->slot[0] == program->special_of) return program->special;
  for (int32_t i = 0; i < program->n_cases; i++)
    if (params->slot[0] == program->cases[i].value) return program->cases[i].program;
  return program->picking && has_one_place(program->picking, &decision->nest) ? program->picking : program;
}

static quern_status plan_rows(const qn_decision *decision, const qn_params *params, qn_row_job *job) {
  return qn_row_plan(program_of(decision, params), decision->op->info->name, decision->dtypes, &decision->nest, decision->n_in, decision->count, job);
}

static quern_status run_rows(const qn_decision *decision, const qn_row_job *job, const qn_ref *ref, const qn_params *params) {
  qn_slices *const slices = job->most_slices > 1 ? qn_registry_slices(decision->called) : NULL;
  const qn_params none = {.slot = {(uint64_t)decision->count}};
  return qn_row_run(job, ref, job->program == ((const qn_row_program *)decision->of_kind)->special ? &none : params, slices);
}

static quern_status row_call(const qn_decision *decision, const quern_call *call) {
  qn_row_job job;
  quern_status status = plan_rows(decision, &decision->params, &job);
  (void)call;
  return status ? status : run_rows(decision, &job, decision->nest.ref, &decision->params);
}

static quern_status row_prepare(const qn_decision *decision, const quern_call *call, qn_run **made) {
  qn_row_job *job = malloc(sizeof *job);
  (void)call;
  if (!job) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  quern_status status = plan_rows(decision, &decision->params, job);
  if (status) {
    free(job);
    return status;
  }
  *made = (qn_run *)job;
  return QUERN_OK;
}

static quern_status row_launch(const qn_decision *decision, const qn_run *prepared, const qn_ref *ref, const qn_params *params,
                               const quern_call *call) {
  const qn_row_job *job = (const qn_row_job *)prepared;
  qn_row_job again;
  (void)call;
  if (job->program != program_of(decision, params)) { /* parameters other than those prepared */
    quern_status status = plan_rows(decision, params, &again);
    if (status) return status;
    job = &again;
  }
  return run_rows(decision, job, ref, params);
}

static const char *const path_words[] = {"rows as a whole", "rows in blocks", "columns"};

/* Whether a stage runs: of the last two one is in place of the other. */
static int is_run(const qn_row_program *program, const qn_row_job *job, int32_t i) {
  if (program->stages[i].scan) return 0;
  if (!program->kept || i + 2 < program->n_stages) return 1;
  return program->stages[i].is_again ? !job->is_kept : job->is_kept != 0;
}

/* What a pass computes: its kernel or steps, and what it reduces to values of a row. */
static void explain_pass(const qn_row_program *program, const qn_row_job *job, int32_t i, qn_strbuf *buf) {
  static const char *const kept[] = {"computed again", "in the output", "in a block"};
  const qn_row_stage *stage = &program->stages[i];
  qn_strbuf_add(buf, "over: %s\n", stage->is_row ? "values of rows" : "elements");
  for (int32_t s = 0; stage->feeders >> s; s++) {
    const qn_row_stage *before = &program->stages[s];
    if (!(stage->feeders >> s & 1)) continue;
    if (before->steps) before->steps->explain(before->steps, buf);
    qn_strbuf_add(buf, "scans: %s %s%s%s\n", before->scan->name, qn_dtype_infos[before->scan->scan->dtype].name,
                  before->scan->is_exclusive ? ", exclusive" : "", stage->is_reverse ? ", from the end" : "");
    if (before->scan->scan->by)
      before->scan->scan->by->steps->explain(before->scan->scan->by->steps, buf);
    else
      qn_strbuf_add(buf, "variant: %s\n", before->scan->scan->rows->name);
  }
  if (stage->steps)
    stage->steps->explain(stage->steps, buf);
  else if (stage->variant)
    qn_strbuf_add(buf, "variant: %s\n", (job->is_across && stage->across ? stage->across : stage->variant)->name);
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_reducer *by = stage->reduces[r].by;
    qn_strbuf_add(buf, "reduces: %s %s\n", by->name, qn_dtype_infos[by->dtype].name);
    if (by->steps)
      by->steps->explain(by->steps, buf);
    else
      qn_strbuf_add(buf, "variant: %s\n", by->inner->name);
  }
  for (int32_t k = stage->n_in; k < stage->n_in + stage->n_out && program->kept; k++)
    if (stage->values[k] == program->kept)
      qn_strbuf_add(buf, "kept: %s\n", kept[job->is_across && job->converted >> job->n_in & 1 ? 2 : job->is_kept]);
}

/* The tier is the interpreter's as long as one stage is interpreted. */
static void explain_tier(const qn_row_program *program, const char *path, qn_strbuf *buf) {
  const char *tier = "built";
  char reason[256] = "";
  for (int32_t i = 0; i < program->n_stages; i++) {
    const qn_row_stage *stage = &program->stages[i];
    for (int32_t r = -1; r < stage->n_reduces && tier[0]; r++) {
      const qn_row_steps *steps = r < 0 ? stage->steps : stage->reduces[r].by->steps;
      if (steps) tier = steps->tier(steps, reason);
    }
    if (!tier[0]) break;
  }
  if (reason[0])
    qn_strbuf_add(buf, "tier: %s\nreason: %s\n", tier[0] ? tier : "interpreter", reason);
  else
    qn_strbuf_add(buf, "tier: %s\nreason: built kernels reduce %s\n", tier, path);
}

static quern_status row_explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const qn_row_program *program = program_of(decision, &decision->params);
  qn_row_job job;
  (void)call;
  if (decision->nest.n_elements == 0) {
    qn_strbuf_add(buf, "tier: built\nreason: there are no elements\nthreads: 1\n");
    return QUERN_OK;
  }
  quern_status status = plan_rows(decision, &decision->params, &job);
  if (status) return status;
  if (job.may_widen) qn_row_widen(&job, 1);
  explain_tier(program, path_words[job.path], buf);
  int32_t n_passes = 0;
  for (int32_t i = 0; i < program->n_stages; i++) n_passes += is_run(program, &job, i);
  qn_strbuf_add(buf, "passes: %d\npath: %s\n", n_passes, path_words[job.path]);
  for (int32_t i = 0, pass = 1; i < program->n_stages; i++) {
    if (!is_run(program, &job, i)) continue;
    qn_strbuf_add(buf, "pass: %d\n", pass++);
    explain_pass(program, &job, i, buf);
  }
  qn_strbuf_add(buf, "threads: %d\n", qn_row_slices(&job, qn_registry_slices(decision->op)));
  return QUERN_OK;
}

extern const qn_backend qn_row_cpu; /* op_table.c's */
const qn_backend qn_row_cpu = {.device_name = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = row_call,
                               .prepare = row_prepare, .launch = row_launch, .explain = row_explain};
