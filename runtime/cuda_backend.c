/* cuda_backend.c: calls on CUDA tensors, as the core asks for them (core/cuda.h), by kernels that are compiled at run time for
 * the call's very dtypes and layout. No interpreter runs there: a call whose kernel is not there yet waits for it. Keeps
 * nothing itself: code is its op's, loaded kernels are their image's. */
#include "core/cuda.h"

#include "core/fused.h"
#include "core/status.h"
#include "core/tensor.h"
#include "cuda_context.h"
#include "cuda_image.h"
#include "extension.h"
#include "fused_ops.h"

/* An error from below, with what was called before it. */
static quern_status named(const quern_op *op, quern_status status) {
  qn_sentence kept;
  if (status == QUERN_OK) return status;
  qn_status_keep(&kept);
  return qn_status_fail(status, "%s: %s", op->info->name, kept.text);
}

static void *stream_of(const quern_call *call) { return call ? call->stream : NULL; }

static qn_cuda_image *image_of(const qn_code *code) {
  return atomic_load_explicit((_Atomic(qn_cuda_image *) *)(uintptr_t)&code->image, memory_order_acquire);
}

static quern_status enter(const quern_op *op, const qn_decision *decision, void *stream, const qn_cuda_facts **facts,
                          qn_cuda_scope *scope) {
  quern_status status = qn_cuda_device_facts(decision->device.device_id, facts);
  if (status == QUERN_OK) status = qn_cuda_enter(decision->device.device_id, stream, scope);
  return named(op, status);
}

/* ---- Making ready ---- */

static quern_status refuse_capturing(const char *name, const char *what) {
  return qn_status_fail(QUERN_E_CAPTURING, "%s: its kernel is not %s yet, and its stream is being captured; prepare the call, or "
                        "make it once, before the capture", name, what);
}

/* The kernel's code, with its image. `scope`: the call's. */
static quern_status find_code(const quern_op *op, const qn_decision *decision, const qn_launch_form *form,
                              const qn_cuda_facts *facts, const qn_cuda_scope *scope, void *stream, qn_code **code) {
  const char *name = op->info->name;
  *code = qn_fused_ops_cuda_code(op, decision->specialised, form, facts->capability, 0);
  if (*code && image_of(*code)) return QUERN_OK;
  if (qn_cuda_is_capturing(scope->driver, stream)) return refuse_capturing(name, "compiled");
  *code = qn_fused_ops_cuda_code(op, decision->specialised, form, facts->capability, 1);
  if (!*code) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for its kernel", name);
  if (!image_of(*code)) qn_code_wait(*code);
  if (image_of(*code)) return QUERN_OK;
  qn_code_info info;
  qn_code_describe(*code, &info);
  return qn_status_fail(QUERN_E_COMPILER, "%s: there is no kernel for CUDA: %s", name, info.reason);
}

/* The kernel in the scope's context, loaded if that may be. */
static quern_status find_kernel(const quern_op *op, const qn_code *code, const qn_cuda_scope *scope, void *stream,
                                const qn_cuda_kernel_info **kernel) {
  if ((*kernel = qn_cuda_image_find(image_of(code), scope, QN_LAUNCH_THREADS))) return QUERN_OK;
  if (qn_cuda_is_capturing(scope->driver, stream)) return refuse_capturing(op->info->name, "loaded");
  return named(op, qn_cuda_image_load(image_of(code), scope, QN_LAUNCH_THREADS, kernel));
}

/* The launch without its code. */
static void plan_launch(const quern_op *op, const qn_decision *decision, qn_cuda_run *run) {
  const quern_op_info *info = op->info;
  qn_launch_form form;
  *run = (qn_cuda_run){.kernel = NULL};
  qn_launch_choose(&decision->job.nest, decision->sizes, info->n_out, decision->values, &form);
  qn_launch_pack(&decision->job.nest, decision->sizes, info->n_out, decision->values, &form, decision->specialised->n_slots,
                 &run->launch);
}

static quern_status prepare(const quern_op *op, const qn_decision *decision, const quern_call *call, qn_cuda_run *run) {
  void *stream = stream_of(call);
  const qn_cuda_facts *facts;
  const qn_cuda_kernel_info *kernel;
  qn_cuda_scope scope;
  qn_code *code;
  quern_status status = enter(op, decision, stream, &facts, &scope);
  if (status) return status;
  plan_launch(op, decision, run);
  status = find_code(op, decision, &run->launch.form, facts, &scope, stream, &code);
  if (status == QUERN_OK) status = find_kernel(op, code, &scope, stream, &kernel);
  qn_cuda_leave(&scope);
  run->kernel = code;
  return status;
}

/* ---- Launching ---- */

/* Where the device sees memory of the host's: CUDA may have mapped it to another address. */
static quern_status device_address(const quern_op_info *info, int32_t k, const qn_cuda_scope *scope, const char *ptr,
                                   uint64_t *address) {
  static const int attributes[] = {QN_CUDA_POINTER_DEVICE_POINTER};
  qn_cuda_address seen = 0;
  void *values[] = {&seen};
  const qn_cuda_result result = scope->driver->pointer_attributes(1, attributes, values, (qn_cuda_address)(uintptr_t)ptr);
  *address = seen;
  if (result == 0 && seen) return QUERN_OK;
  return qn_tensor_fail(QUERN_E_DEVICE, info->name, &info->args[k], k < info->n_in ? k : k - info->n_in,
                        "it is said to be pinned memory, but CUDA knows nothing of it");
}

static quern_status translate_pinned(const quern_op_info *info, const qn_decision *decision, const qn_cuda_scope *scope,
                                     char *const *ptr, uint64_t *args) {
  quern_status status = QUERN_OK;
  for (int32_t k = 0; k < decision->job.n_operands && !status; k++)
    if (decision->pinned >> k & 1) status = device_address(info, k, scope, ptr[k], &args[k]);
  return status;
}

static uint32_t grid_of(const qn_launch *launch, const qn_cuda_facts *facts, const qn_cuda_kernel_info *kernel) {
  const uint32_t resident = (uint32_t)(kernel->blocks_per_multiprocessor * facts->multiprocessors);
  return qn_launch_grid(launch, (uint32_t)kernel->turn, resident);
}

/* In the scope's context: once, or over the dimensions that one launch does not hold. */
static quern_status launch_all(const quern_op *op, const qn_decision *decision, const qn_launch *launch,
                               const qn_cuda_facts *facts, const qn_cuda_scope *scope, const qn_cuda_kernel_info *kernel,
                               void *stream, uint64_t *args) {
  const uint32_t grid = grid_of(launch, facts, kernel);
  int64_t at[QUERN_MAX_NDIM] = {0};
  void *arguments[] = {args};
  uint32_t x, y;
  qn_launch_block(launch, &x, &y);
  do {
    const qn_cuda_result result =
        scope->driver->launch(kernel->function, grid, 1, 1, x, y, 1, 0, (qn_cuda_stream)stream, arguments, NULL);
    if (result) return qn_cuda_fail(scope->driver, result, op->info->name);
  } while (qn_cuda_next(decision, launch, at, args));
  return QUERN_OK;
}

static quern_status launch(const quern_op *op, const qn_decision *decision, const qn_cuda_run *run, char *const *ptr,
                           const qn_params *params, const quern_call *call) {
  void *stream = stream_of(call);
  const qn_cuda_facts *facts;
  const qn_cuda_kernel_info *kernel;
  qn_cuda_scope scope;
  uint64_t args[QN_LAUNCH_ARGS];
  quern_status status = enter(op, decision, stream, &facts, &scope);
  if (status) return status;
  qn_cuda_arguments(decision, run, ptr, params, args);
  status = find_kernel(op, run->kernel, &scope, stream, &kernel);
  if (status == QUERN_OK) status = translate_pinned(op->info, decision, &scope, ptr, args);
  if (status == QUERN_OK) status = launch_all(op, decision, &run->launch, facts, &scope, kernel, stream, args);
  qn_cuda_leave(&scope);
  return status;
}

static quern_status workspace(const quern_op *op, const qn_decision *decision, const quern_call *call, size_t *bytes) {
  (void)op, (void)decision, (void)call;
  *bytes = 0;
  return QUERN_OK;
}

/* ---- Explaining ---- */

static void add_form(qn_strbuf *buf, const char *name, const qn_launch_form *form) {
  char classes[QN_MAX_OPERANDS + 1] = {0};
  for (int32_t k = 0; k < form->n_operands; k++) classes[k] = "cbst"[form->classes[k]]; /* ORDER qn_class */
  char rank[2] = {form->rank ? (char)('0' + form->rank) : 'n', 0};
  qn_strbuf_add(buf, "variant: %s %sd %s%s\n", name, rank, classes, form->is_wide ? " i64" : "");
}

/* What is known of a kernel once it is loaded. */
static quern_status add_kernel(qn_strbuf *buf, const quern_op *op, const qn_decision *decision, const qn_launch *launch,
                               const qn_code *code, const quern_call *call) {
  const qn_cuda_facts *facts;
  qn_cuda_scope scope;
  const qn_cuda_kernel_info *kernel;
  uint32_t x, y;
  quern_status status = enter(op, decision, stream_of(call), &facts, &scope);
  if (status) return status;
  status = find_kernel(op, code, &scope, stream_of(call), &kernel);
  qn_cuda_leave(&scope);
  if (status) return status;
  qn_launch_block(launch, &x, &y);
  const int32_t resident = QN_LAUNCH_THREADS * kernel->blocks_per_multiprocessor, most = facts->threads_per_multiprocessor;
  qn_strbuf_add(buf, "grid: %u\nblock: %u x %u\nslot: %u\nturn: %d\n", grid_of(launch, facts, kernel), x, y, launch->slot,
                kernel->turn);
  qn_strbuf_add(buf, "registers: %d\nspills: %d\nshared: %d\noccupancy: %d%%\n", kernel->registers, kernel->local_bytes,
                kernel->shared_bytes, most > 0 ? resident * 100 / most : 0);
  return QUERN_OK;
}

static quern_status explain(const quern_op *op, const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const qn_cuda_facts *facts;
  qn_cuda_run run;
  qn_code_info info;
  char device[QN_TENSOR_DEVICE_CHARS];
  quern_status status = named(op, qn_cuda_device_facts(decision->device.device_id, &facts));
  if (status) return status;
  plan_launch(op, decision, &run);
  qn_code *code = qn_fused_ops_cuda_code(op, decision->specialised, &run.launch.form, facts->capability, 1);
  if (!code) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for its kernel", op->info->name);
  const int is_there = image_of(code) != NULL;
  qn_code_describe(code, &info);
  qn_strbuf_add(buf, "tier: %s\nreason: %s%s\n", is_there ? info.tier : "none", info.reason,
                is_there || info.tier[0] ? "" : "; a call waits for it");
  add_form(buf, info.name, &run.launch.form);
  qn_strbuf_add(buf, "path: cuda\ndevice: %s, %s, sm_%d\nstreamed: %s\n", qn_tensor_device_text(decision->device, device),
                facts->name, facts->capability, qn_launch_is_streamed(&run.launch) ? "yes" : "no");
  if (is_there) status = add_kernel(buf, op, decision, &run.launch, code, call);
  const int64_t us = (int64_t)(info.compile_ms * 1000 + 0.5);
  qn_strbuf_add(buf, "nodes: %d\ncompile_ms: %lld.%03lld\ncompiles: %lld\n", decision->specialised->n_nodes,
                (long long)(us / 1000), (long long)(us % 1000), (long long)info.compiles);
  return status;
}

const qn_cuda_backend qn_cuda_driver_backend = {
    .stand_in = qn_extension_stand_in, .prepare = prepare, .launch = launch, .workspace = workspace, .explain = explain};
