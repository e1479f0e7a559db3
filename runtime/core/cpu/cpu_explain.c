/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_explain.c: the lines of quern_op_explain about a job. See cpu_backend.h. */
#include "core/base/isa.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/engine.h"

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
           job->path == QN_PATH_DIRECT ? "direct" : "blocks", isa, qn_engine_slices(job, slices),
           job->streamed ? "yes" : "no");
  if (job->path == QN_PATH_DIRECT) return;
  qn_strbuf_add(buf, "box:");
  for (int32_t j = job->tile_rank - 1; j >= 0; j--)
    qn_strbuf_add(buf, " %lld%s", (long long)job->chunk[job->tile_dim[j]], j ? " x" : "");
  qn_strbuf_add(buf, job->tile_rank ? "\n" : " 1\n");
  for (int32_t k = 0; k < job->n_operands; k++) add_operand(buf, info, job, k);
}
