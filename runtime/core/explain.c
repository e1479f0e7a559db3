/* explain.c: see explain.h. */
#include "explain.h"

#include <stdarg.h>
#include <stdio.h>

#include "dispatch.h"
#include "engine.h"
#include "float_env.h"
#include "isa.h"
#include "status.h"
#include "tensor.h"

/* A text under way; `length` goes on counting where it does not fit. */
typedef struct page {
  char *text;
  size_t size, length;
} page;

__attribute__((format(printf, 2, 3))) static void page_add(page *page, const char *format, ...) {
  va_list arguments;
  size_t at = page->length < page->size ? page->length : page->size - 1;
  va_start(arguments, format);
  int n = vsnprintf(page->text + at, page->size - at, format, arguments);
  va_end(arguments);
  if (n > 0) page->length += (size_t)n;
}

/* How an operand gets to the kernel, or from it. */
static void add_operand(page *page, const quern_op_info *info, const qn_job *job, int32_t k) {
  static const char *const words[] = {
      [QN_WAY_IN_PLACE] = "in place", [QN_WAY_CONVERT] = "", [QN_WAY_ONE] = "one value",
      [QN_WAY_FILL] = "one value spread", [QN_WAY_ROWS] = "rows copied", [QN_WAY_STRIDED] = "moved",
      [QN_WAY_AT] = "moved", [QN_WAY_STREAM] = "streamed"};
  const qn_operand *operand = &job->operand[k];
  char name[QN_TENSOR_ARG_CHARS];
  const char *word = words[operand->way];
  page_add(page, "%s: %s", qn_tensor_arg_text(&info->args[k], k < job->n_in ? k : k - job->n_in, name), word);
  if (operand->mover) page_add(page, " by %s", operand->mover->name);
  if (operand->convert) {
    uint8_t from = k < job->n_in ? operand->dtype : operand->value, to = k < job->n_in ? operand->value : operand->dtype;
    page_add(page, "%sconverted from %s to %s", *word ? ", " : "", qn_dtype_infos[from].name, qn_dtype_infos[to].name);
  }
  page_add(page, "\n");
}

static void add_job(page *page, const quern_op_info *info, const qn_job *job, const qn_slices *slices) {
  if (job->nest.n_elements == 0) {
    page_add(page, "variant: none\npath: none\nisa: %s\nthreads: 1\nstreamed: no\n", qn_isa_name(qn_isa_detect()));
    return;
  }
  const char *isa = qn_isa_name(job->isa);
  page_add(page, "variant: %s%s%s\npath: %s\nisa: %s\nthreads: %d\nstreamed: %s\n", job->variant->name,
           job->isa == QN_ISA_GENERIC ? "" : "_", job->isa == QN_ISA_GENERIC ? "" : isa,
           job->path == QN_PATH_DIRECT ? "direct" : "blocks", isa, qn_engine_slices(job, slices),
           job->streamed ? "yes" : "no");
  if (job->path == QN_PATH_DIRECT) return;
  page_add(page, "box:");
  for (int32_t j = job->box_rank - 1; j >= 0; j--)
    page_add(page, " %lld%s", (long long)job->chunk[job->box_dim[j]], j ? " x" : "");
  page_add(page, job->box_rank ? "\n" : " 1\n");
  for (int32_t k = 0; k < job->n_operands; k++) add_operand(page, info, job, k);
}

static const char *reason_of(const qn_job *job) {
  if (job->nest.n_elements == 0) return "there are no elements";
  if (job->path == QN_PATH_DIRECT) return "a built kernel takes the operands as they lie";
  if (job->streamed) return "a built kernel, its results written past the cache";
  return "a built kernel, over blocks of what does not lie as it needs it";
}

quern_status qn_explain(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, char *text,
                        size_t size) {
  page page = {text, size, 0};
  text[0] = 0;
  if (op->registered) page_add(&page, "tier: registered\nreason: an implementation of this op is registered and asked first\n");
  if (op->builtin) {
    qn_decision decision;
    qn_sentence kept;
    qn_status_keep(&kept);
    qn_float_env was = qn_float_env_enter();
    quern_status status = qn_dispatch_decide(op, in, out, call, 0, &decision);
    qn_float_env_leave(was);
    if (status && !op->registered) return status;
    if (op->registered) page_add(&page, "otherwise: %s\n", status ? quern_last_error() : "as follows");
    if (status) {
      qn_status_restore(&kept);
    } else {
      page_add(&page, "tier: built\nreason: %s\n", reason_of(&decision.job));
      add_job(&page, &op->builtin->info, &decision.job, qn_registry_slices(op));
    }
  }
  if (page.length < size) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: the explanation needs %zu bytes, %zu were given", op->info->name, page.length + 1,
                        size);
}
