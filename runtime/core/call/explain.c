/* explain.c: see explain.h. */
#include "core/call/explain.h"

#include "core/call/cuda.h"
#include "core/kinds/dynamic.h"
#include "core/cpu/engine.h"
#include "core/base/float_env.h"
#include "core/base/isa.h"
#include "core/base/strbuf.h"
#include "core/base/status.h"
#include "core/tensor/tensor.h"

/* How an operand gets to the kernel, or from it. */
static void add_operand(qn_strbuf *buf, const quern_op_info *info, const qn_job *job, int32_t k) {
  static const char *const words[] = {
      [QN_WAY_IN_PLACE] = "in place", [QN_WAY_CONVERT] = "", [QN_WAY_ONE] = "one value",
      [QN_WAY_FILL] = "one value spread", [QN_WAY_ROWS] = "rows copied", [QN_WAY_STRIDED] = "moved",
      [QN_WAY_AT] = "moved", [QN_WAY_INDEX] = "counted", [QN_WAY_STREAM] = "streamed"};
  const qn_operand *operand = &job->operand[k];
  char name[QN_TENSOR_ARG_CHARS];
  const char *word = words[operand->way];
  if (operand->way == QN_WAY_INDEX)
    qn_strbuf_add(buf, "the elements' indices: %s", word);
  else
    qn_strbuf_add(buf, "%s: %s", qn_tensor_arg_text(k < job->n_in ? &info->args[k] : &info->args[info->n_in + k - job->n_in],
                                                    k < job->n_in ? k : k - job->n_in, name), word);
  if (operand->mover) qn_strbuf_add(buf, " by %s", operand->mover->name);
  if (operand->convert) {
    uint8_t from = k < job->n_in ? operand->dtype : operand->value, to = k < job->n_in ? operand->value : operand->dtype;
    qn_strbuf_add(buf, "%sconverted from %s to %s", *word ? ", " : "", qn_dtype_infos[from].name, qn_dtype_infos[to].name);
  }
  qn_strbuf_add(buf, "\n");
}

/* A number of thousandths, whatever the locale. */
static void add_thousandths(qn_strbuf *buf, const char *key, int64_t n) {
  qn_strbuf_add(buf, "%s: %lld.%03lld\n", key, (long long)(n / 1000), (long long)(n % 1000));
}

static void add_job(qn_strbuf *buf, const quern_op_info *info, const qn_job *job, const qn_slices *slices) {
  if (job->nest.n_elements == 0) {
    qn_strbuf_add(buf, "variant: none\npath: none\nisa: %s\nthreads: 1\nstreamed: no\n", qn_isa_name(qn_isa_detect()));
    return;
  }
  const char *isa = qn_isa_name(job->isa);
  int has_level = job->variant && job->variant->fn[job->isa] && job->isa != QN_ISA_GENERIC; /* the name has not */
  qn_strbuf_add(buf, "variant: %s%s%s\npath: %s\nisa: %s\nthreads: %d\nstreamed: %s\n",
           job->variant ? job->variant->name : "none", has_level ? "_" : "", has_level ? isa : "",
           job->path == QN_PATH_DIRECT ? "direct" : "blocks", isa, qn_engine_slices(job, slices),
           job->streamed ? "yes" : "no");
  if (job->path == QN_PATH_DIRECT) return;
  qn_strbuf_add(buf, "box:");
  for (int32_t j = job->box_rank - 1; j >= 0; j--)
    qn_strbuf_add(buf, " %lld%s", (long long)job->chunk[job->box_dim[j]], j ? " x" : "");
  qn_strbuf_add(buf, job->box_rank ? "\n" : " 1\n");
  for (int32_t k = 0; k < job->n_operands; k++) add_operand(buf, info, job, k);
}

/* What an expression is, and how it has come to its kernel. */
static void add_fused(qn_strbuf *buf, const quern_op *op, const qn_decision *decision) {
  const qn_specialised *specialised = decision->specialised;
  const qn_job *job = &decision->job;
  qn_fused_facts facts;
  op->fused->facts(op, specialised, decision->compiled, &facts);
  int is_compiled = decision->compiled && job->kernel;
  qn_strbuf_add(buf, "tier: %s\nreason: %s\n", is_compiled ? facts.tier : specialised->is_built ? "built" : "interpreter",
           job->nest.n_elements ? facts.reason : "there are no elements");
  add_job(buf, qn_registry_own_info(op), job, qn_registry_slices(op));
  qn_strbuf_add(buf, "nodes: %d\n", specialised->n_nodes);
  add_thousandths(buf, "compile_ms", facts.compile_us);
  qn_strbuf_add(buf, "compiles: %lld\n", (long long)facts.compiles);
  if (!job->program || !job->nest.n_elements) return;
  qn_strbuf_add(buf, "steps: %d\n", job->program->n_steps);
  for (int32_t i = 0; i < job->program->n_steps; i++) qn_strbuf_add(buf, "step: %s\n", job->program->steps[i].variant->name);
}

static const char *reason_of(const qn_job *job) {
  if (job->nest.n_elements == 0) return "there are no elements";
  if (job->path == QN_PATH_DIRECT)
    return job->streamed ? "a built kernel takes the inputs as they lie, its results are written past the cache"
                         : "a built kernel takes the operands as they lie";
  if (job->streamed) return "a built kernel, its results written past the cache";
  return "a built kernel, over blocks of what does not lie as it needs it";
}

static quern_status add_cuda(qn_strbuf *buf, const qn_decision *decision, const quern_call *call) {
  char device[QN_TENSOR_DEVICE_CHARS];
  if (decision->job.nest.n_elements) return qn_cuda->explain(decision->op, decision, call, buf);
  qn_strbuf_add(buf, "tier: none\nreason: there are no elements\ndevice: %s\n", qn_tensor_device_text(decision->device, device));
  return QUERN_OK;
}

/* Before what the library's own op would do, where a registered one is asked first. */
static void add_otherwise(qn_strbuf *buf, const quern_op *op) {
  if (op->registered) qn_strbuf_add(buf, "otherwise: as follows\n");
}

/* An op of class dynamic. */
static quern_status add_dynamic(qn_strbuf *buf, const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                                const quern_call *call) {
  qn_dynamic dynamic;
  quern_status status = qn_dynamic_decide(op, in, out, call, 0, &dynamic);
  if (status || (status = qn_dynamic_check_machine(&dynamic))) return status;
  const int has_elements = dynamic.job.nest.n_elements != 0;
  add_otherwise(buf, op);
  qn_strbuf_add(buf, "tier: built\nreason: %s\n",
                has_elements ? "built kernels count what there is in blocks of the inputs, then write it"
                             : "there are no elements");
  add_job(buf, &op->builtin->info, &dynamic.job, qn_registry_slices(op));
  return QUERN_OK;
}

/* The library's own op, of any other class. */
static quern_status add_basic(qn_strbuf *buf, const quern_op *op, DLTensor *const *in, DLTensor *const *out,
                              const quern_call *call) {
  qn_decision decision;
  qn_float_env was = qn_float_env_enter();
  quern_status status = qn_dispatch_decide(op, in, out, call, 0, &decision, NULL);
  qn_float_env_leave(was);
  if (status) return status;
  add_otherwise(buf, op);
  if (qn_dispatch_is_cuda(&decision)) return add_cuda(buf, &decision, call);
  if (op->fused) {
    add_fused(buf, op, &decision);
    return QUERN_OK;
  }
  qn_strbuf_add(buf, "tier: built\nreason: %s\n", reason_of(&decision.job));
  add_job(buf, &op->builtin->info, &decision.job, qn_registry_slices(op));
  return QUERN_OK;
}

quern_status qn_explain(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call, char *text,
                        size_t size) {
  qn_strbuf buf = {text, size, 0};
  text[0] = 0;
  if (op->registered)
    qn_strbuf_add(&buf, "tier: registered\nreason: an implementation of this op is registered and asked first\n");
  if (op->builtin || op->fused) {
    const size_t length = buf.length;
    qn_sentence kept;
    qn_status_keep(&kept);
    quern_status status =
        qn_registry_is_dynamic(op) ? add_dynamic(&buf, op, in, out, call) : add_basic(&buf, op, in, out, call);
    if (status && !op->registered) return status;
    if (status) {
      buf.length = length; /* a driver may have failed in the midst of it */
      qn_strbuf_add(&buf, "otherwise: %s\n", quern_last_error());
      qn_status_restore(&kept);
    }
  }
  if (buf.length < size) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: the explanation needs %zu bytes, %zu were given", op->info->name, buf.length + 1,
                        size);
}
