/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_backend.c: the backend (core/op/backend.h) of CUDA tensors. A call runs a kernel built ahead for its layout, if there is
 * one, else a kernel compiled at run time for its dtypes and layout. It waits for the compile, unless a kernel built ahead for
 * more general layouts can run meanwhile, or several of them in the caller's workspace (cuda_steps.h). Holds no state: code
 * belongs to its op, loaded kernels to their image. */
#include "core/simt/cuda.h"

#include <string.h>

#include "core/base/status.h"
#include "core/tensor/device.h"
#include "core/tensor/tensor.h"
#include "cuda/cuda_built.h"
#include "cuda/cuda_context.h"
#include "cuda/cuda_image.h"
#include "cuda/cuda_memory.h"
#include "cuda/cuda_target.h"
#include "cuda/cuda_steps.h"
#include "run/extension.h"
#include "run/fused/fused_ops.h"
#include "run/fused/specialised.h"

/* An error of a lower layer, with the op's name put before it. */
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

/* ---- The kernels that can run a decision ---- */

/* The form of the kernel to be compiled for a decision, and the best kernel built ahead for its dtypes. */
typedef struct kernel_choice {
  qn_launch_form form;
  const qn_cuda_variant *built; /* NULL: none, for the reason `why` */
  const char *why;
  qn_launch_form built_form;
  int is_exact; /* `built` has the form of the kernel to be compiled */
} kernel_choice;

static int is_same_form(const qn_launch_form *a, const qn_launch_form *b) {
  return a->rank == b->rank && a->is_wide == b->is_wide && memcmp(a->classes, b->classes, a->n_operands) == 0;
}

static void choose(const quern_op *op, const qn_decision *decision, const qn_cuda_facts *facts, kernel_choice *choice) {
  const int32_t n_operands = decision->n_operands;
  const qn_builtin *builtin = qn_fused_ops_builtin(op, decision->specialised);
  int32_t n;
  qn_launcher_of(decision)->choose(decision, &choice->form);
  choice->built = NULL;
  choice->is_exact = 0;
  choice->why = "no built op computes all of it";
  if (!builtin) return;
  const qn_cuda_variant *rows =
      qn_cuda_built_find(builtin, decision->dtypes, n_operands, facts->capability, &n, &choice->why);
  if (!n) return;
  choice->why = "none takes operands that lie so";
  choice->built = qn_launcher_of(decision)->pick(decision, rows, n, &choice->built_form);
  choice->is_exact = choice->built && is_same_form(&choice->form, &choice->built_form);
}

/* Packs the launch, without code. */
static void plan_launch(const qn_decision *decision, const qn_launch_form *form, qn_cuda_run *run) {
  run->kernel = run->detail = NULL;
  qn_launcher_of(decision)->pack(decision, form, &run->launch);
}

/* ---- Preparing ----
 * A run has the code of its compiled kernel (`kernel`) or a kernel built ahead (`detail`), and the launch of that one; or both,
 * and the launch of the compiled one: `detail` runs until the code is made. Without `detail` and made code, it runs by
 * steps. */

static quern_status refuse_capturing(const char *name, const char *what) {
  return qn_status_fail(QUERN_E_CAPTURING, "%s: its kernel is not %s yet, and its stream is being captured; prepare the call, or "
                        "make it once, before the capture", name, what);
}

/* The compile has failed. */
static quern_status refuse_made(const char *name, const qn_code *code) {
  qn_code_info info;
  qn_code_describe(code, &info);
  return qn_status_fail(QUERN_E_COMPILER, "%s: there is no kernel for CUDA: %s", name, info.reason);
}

/* An image's kernel in the scope's context, loaded unless the stream is being captured. Only CAPTURING names the op. */
static quern_status find_kernel(const quern_op *op, qn_cuda_image *image, const qn_cuda_scope *scope, void *stream,
                                const qn_cuda_kernel_info **kernel) {
  if (!image) return qn_status_fail(QUERN_E_MEMORY, "out of memory for a kernel");
  if ((*kernel = qn_cuda_image_find(image, scope, QN_LAUNCH_THREADS))) return QUERN_OK;
  if (qn_cuda_is_capturing(scope->driver, stream)) return refuse_capturing(op->info->name, "loaded");
  return qn_cuda_image_load(image, scope, QN_LAUNCH_THREADS, kernel);
}

static quern_status named_but_capturing(const quern_op *op, quern_status status) {
  return status == QUERN_E_CAPTURING ? status : named(op, status);
}

/* Loads the kernel built ahead, and packs its launch in *run. 0: its file is unusable; choice->built is NULL then. */
static int prepare_built(const quern_op *op, const qn_decision *decision, const qn_cuda_scope *scope, void *stream,
                         kernel_choice *choice, qn_cuda_run *run, quern_status *status) {
  const qn_cuda_kernel_info *kernel;
  qn_sentence kept;
  if (!choice->built) return 0;
  qn_status_keep(&kept);
  plan_launch(decision, &choice->built_form, run);
  *status = find_kernel(op, qn_cuda_built_image(choice->built), scope, stream, &kernel);
  run->detail = choice->built;
  if (*status != QUERN_E_IO && *status != QUERN_E_COMPILER) {
    *status = named_but_capturing(op, *status);
    return 1;
  }
  qn_cuda_built_refuse(choice->built);
  qn_status_restore(&kept);
  choice->built = NULL;
  choice->is_exact = 0;
  choice->why = "their file is of no use";
  return 0;
}

/* Loads the kernel that was compiled for the decision. */
static quern_status prepare_made(const quern_op *op, const qn_decision *decision, const qn_cuda_scope *scope, void *stream,
                                 const kernel_choice *choice, const qn_code *code, qn_cuda_run *run) {
  const qn_cuda_kernel_info *kernel;
  plan_launch(decision, &choice->form, run);
  run->kernel = code;
  return named_but_capturing(op, find_kernel(op, image_of(code), scope, stream, &kernel));
}

/* Whether a call can run by steps in its workspace; if not, *why is the reason. */
static int goes_by_steps(const qn_decision *decision, const qn_cuda_facts *facts, const quern_call *call, qn_cuda_chunks *chunks,
                         const char **why) {
  *why = "no workspace is given";
  if (!call || !call->workspace) return 0;
  *why = qn_cuda_steps_refuse(decision, facts->capability, call->workspace_bytes, chunks);
  return !*why;
}

/* Loads the kernels of its steps. 0: it cannot run by steps. code: may be NULL. */
static int prepare_steps(const qn_decision *decision, const qn_cuda_facts *facts, const qn_cuda_scope *scope,
                         const quern_call *call, const kernel_choice *choice, const qn_code *code, qn_cuda_run *run,
                         quern_status *status) {
  qn_cuda_chunks chunks;
  qn_sentence kept;
  const char *why;
  if (!goes_by_steps(decision, facts, call, &chunks, &why)) return 0;
  qn_status_keep(&kept);
  *status = qn_cuda_steps_run(decision, facts, scope, call->stream, NULL, &decision->params, call->workspace,
                              call->workspace_bytes);
  plan_launch(decision, &choice->form, run);
  run->kernel = code;
  if (*status != QUERN_E_IO && *status != QUERN_E_COMPILER) return 1;
  qn_status_restore(&kept);
  return 0;
}

/* Adds the code being compiled to a run that has a kernel built ahead. */
static void stand_by(const qn_decision *decision, const kernel_choice *choice, const qn_code *code,
                     qn_cuda_run *run) {
  qn_code_info info;
  qn_code_describe(code, &info);
  if (info.failed) return; /* the kernel built ahead is used for good */
  plan_launch(decision, &choice->form, run);
  run->kernel = code;
  run->detail = choice->built;
}

static quern_status prepare_here(const quern_op *op, const qn_decision *decision, const qn_cuda_facts *facts,
                                 const qn_cuda_scope *scope, const quern_call *call, qn_cuda_run *run) {
  const char *name = op->info->name;
  void *stream = stream_of(call);
  kernel_choice choice;
  quern_status status;
  choose(op, decision, facts, &choice);
  if (choice.is_exact && prepare_built(op, decision, scope, stream, &choice, run, &status)) return status;
  qn_code *code = qn_cuda_code_of(op, decision->specialised, &choice.form, facts->capability, 0);
  const int is_there = code && image_of(code);
  if (!is_there && qn_cuda_is_capturing(scope->driver, stream)) {
    if (prepare_built(op, decision, scope, stream, &choice, run, &status)) return status;
    if (prepare_steps(decision, facts, scope, call, &choice, NULL, run, &status)) return status;
    return refuse_capturing(name, "compiled");
  }
  if (!is_there) code = qn_cuda_code_of(op, decision->specialised, &choice.form, facts->capability, 1);
  if (!code) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for its kernel", name);
  if (!image_of(code) && prepare_built(op, decision, scope, stream, &choice, run, &status)) {
    if (status == QUERN_OK) stand_by(decision, &choice, code, run);
    return status;
  }
  if (!image_of(code) && prepare_steps(decision, facts, scope, call, &choice, code, run, &status)) return status;
  if (!image_of(code)) qn_code_wait(code);
  if (image_of(code)) return prepare_made(op, decision, scope, stream, &choice, code, run);
  return refuse_made(name, code);
}

static quern_status prepare(const qn_decision *decision, const quern_call *call, qn_cuda_run *run) {
  const quern_op *op = decision->op;
  const qn_cuda_facts *facts;
  qn_cuda_scope scope;
  quern_status status = enter(op, decision, stream_of(call), &facts, &scope);
  if (status) return status;
  status = prepare_here(op, decision, facts, &scope, call, run);
  qn_cuda_leave(&scope);
  return status;
}

/* ---- Launching ---- */

/* The device's address of pinned memory: CUDA may have mapped it to another one. */
static quern_status device_address(const quern_op_info *info, int32_t k, const qn_cuda_scope *scope, qn_ref ref,
                                   uint64_t *address) {
  static const int attributes[] = {QN_CUDA_POINTER_DEVICE_POINTER};
  qn_cuda_address seen = 0;
  void *values[] = {&seen};
  const qn_cuda_address ptr = (qn_cuda_address)(uintptr_t)qn_ref_address(ref);
  const qn_cuda_result result = scope->driver->pointer_attributes(1, attributes, values, ptr);
  *address = seen;
  if (result == 0 && seen) return QUERN_OK;
  return qn_tensor_fail(QUERN_E_DEVICE, info->name, &info->args[k], k < info->n_in ? k : k - info->n_in,
                        "it is said to be pinned memory, but CUDA knows nothing of it");
}

static quern_status translate_pinned(const quern_op_info *info, const qn_decision *decision, const qn_cuda_scope *scope,
                                     const qn_ref *ref, uint64_t *args) {
  quern_status status = QUERN_OK;
  for (int32_t k = 0; k < decision->n_operands && !status; k++)
    if (qn_cuda_is_pinned(decision, k)) status = device_address(info, k, scope, ref[k], &args[k]);
  return status;
}

/* The blocks that a multiprocessor runs at once, if a launch asks for shared memory. */
static int32_t blocks_of(const qn_cuda_kernel_info *kernel, const qn_cuda_facts *facts, uint32_t shared_bytes) {
  enum { OF_BLOCK = 1024 }; /* what the system takes of it */
  const int32_t room = facts->shared_per_multiprocessor / (kernel->shared_bytes + (int32_t)shared_bytes + OF_BLOCK);
  if (shared_bytes == 0 || room >= kernel->blocks_per_multiprocessor) return kernel->blocks_per_multiprocessor;
  return room > 0 ? room : 1;
}

/* Launches in the scope's context: once, or once for each index of the dimensions beyond a launch's rank; rows that are cut into pieces
 * by several launches. */
static quern_status launch_all(const quern_op *op, const qn_decision *decision, const qn_launch *launch,
                               const qn_cuda_facts *facts, const qn_cuda_scope *scope, const qn_cuda_kernel_info *kernel,
                               const quern_call *call, uint64_t *args) {
  qn_cuda_pieces pieces;
  int64_t at[QUERN_MAX_NDIM] = {0};
  void *arguments[] = {args};
  uint32_t x, y;
  qn_launch_block(launch, &x, &y);
  qn_cuda_cut(decision, launch, kernel->items_per_thread, (uint32_t)kernel->dynamic_bytes, call, &pieces);
  const uint32_t resident = (uint32_t)(blocks_of(kernel, facts, pieces.shared_bytes) * facts->multiprocessors);
  do {
    for (int32_t i = 0; i < pieces.n_launches; i++) {
      const uint64_t n_items = qn_cuda_piece(&pieces, i, call, launch, args);
      const uint32_t grid = qn_launch_grid_of(launch, n_items, (uint32_t)qn_cuda_items(kernel), resident);
      const qn_cuda_result result =
          scope->driver->launch(kernel->function, grid, 1, 1, x, y, 1, pieces.shared_bytes, (qn_cuda_stream)stream_of(call), arguments,
                                NULL);
      if (result) return qn_cuda_fail(scope->driver, result, op->info->name);
    }
  } while (qn_cuda_next(decision, launch, at, args));
  return QUERN_OK;
}

/* The arguments of a launch. */
typedef struct attempt {
  const quern_op *op;
  const qn_decision *decision;
  const qn_cuda_facts *facts;
  const qn_cuda_scope *scope;
  const qn_ref *ref;
  const qn_params *params;
  const quern_call *call; /* may be NULL */
  void *stream;
} attempt;

/* Launches the image's kernel with the launch of *run. */
static quern_status launch_image(const attempt *at, const qn_cuda_run *run, qn_cuda_image *image) {
  const qn_cuda_kernel_info *kernel;
  uint64_t args[QN_LAUNCH_ARGS];
  quern_status status = find_kernel(at->op, image, at->scope, at->stream, &kernel);
  if (status) return named_but_capturing(at->op, status);
  qn_cuda_arguments(at->decision, run, at->ref, at->params, args);
  status = translate_pinned(at->op->info, at->decision, at->scope, at->ref, args);
  if (status) return status;
  return launch_all(at->op, at->decision, &run->launch, at->facts, at->scope, kernel, at->call, args);
}

/* Launches the kernel built ahead in place of the compiled one; packs its launch each time, since this is temporary. Not
 * inlined, for its stack. */
__attribute__((noinline)) static quern_status launch_built(const attempt *at, const qn_cuda_variant *built) {
  qn_launch_form form;
  QN_IN_SCRATCH(qn_cuda_run, run);
  if (!qn_launcher_of(at->decision)->pick(at->decision, built, 1, &form))
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: bug: its kernel does not take it", at->op->info->name);
  plan_launch(at->decision, &form, run);
  return launch_image(at, run, qn_cuda_built_image(built));
}

/* Runs by steps in the call's workspace. 0: it cannot. */
static int launch_steps(const attempt *at, const qn_cuda_run *run, quern_status *status) {
  uint64_t args[QN_LAUNCH_ARGS];
  qn_cuda_chunks chunks;
  qn_sentence kept;
  const char *why;
  if (!goes_by_steps(at->decision, at->facts, at->call, &chunks, &why)) return 0;
  qn_status_keep(&kept);
  qn_cuda_arguments(at->decision, run, at->ref, at->params, args);
  *status = translate_pinned(at->op->info, at->decision, at->scope, at->ref, args);
  if (*status == QUERN_OK)
    *status = qn_cuda_steps_run(at->decision, at->facts, at->scope, at->stream, args, at->params, at->call->workspace,
                                at->call->workspace_bytes);
  if (*status != QUERN_E_IO && *status != QUERN_E_COMPILER) return 1;
  qn_status_restore(&kept);
  return 0;
}

/* The compile has not ended, and no kernel built ahead fits: runs by steps, or waits. Not inlined, for its stack. */
__attribute__((noinline)) static quern_status launch_waiting(const attempt *at, const qn_cuda_run *run) {
  const char *name = at->op->info->name;
  qn_code *code = (qn_code *)(uintptr_t)run->kernel;
  quern_status status;
  if (launch_steps(at, run, &status)) return status;
  if (qn_cuda_is_capturing(at->scope->driver, at->stream)) return refuse_capturing(name, "compiled");
  if (!code) code = qn_cuda_code_of(at->op, at->decision->specialised, &run->launch.form, at->facts->capability, 1);
  if (!code) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for its kernel", name);
  if (!image_of(code)) qn_code_wait(code);
  return image_of(code) ? launch_image(at, run, image_of(code)) : refuse_made(name, code);
}

static quern_status launch_any(const attempt *at, const qn_cuda_run *run) {
  const qn_cuda_variant *built = run->detail;
  const qn_code *code = run->kernel;
  if (!code && built) return launch_image(at, run, qn_cuda_built_image(built));
  if (!code) code = qn_cuda_code_of(at->op, at->decision->specialised, &run->launch.form, at->facts->capability, 0);
  qn_cuda_image *image = code ? image_of(code) : NULL;
  if (!image) return built ? launch_built(at, built) : launch_waiting(at, run);
  quern_status status = launch_image(at, run, image), by_steps;
  if (status != QUERN_E_CAPTURING) return status;
  /* The kernel was compiled after the call was prepared, and cannot be loaded during the capture. */
  if (built) return launch_built(at, built);
  return launch_steps(at, run, &by_steps) ? by_steps : status;
}

static quern_status launch(const qn_decision *decision, const qn_cuda_run *run, const qn_ref *ref, const qn_params *params,
                           const quern_call *call) {
  const quern_op *op = decision->op;
  void *stream = stream_of(call);
  const qn_cuda_facts *facts;
  qn_cuda_scope scope;
  quern_status status = qn_cuda_check_addresses(decision, ref);
  if (status || (status = enter(op, decision, stream, &facts, &scope))) return status;
  status = launch_any(&(attempt){op, decision, facts, &scope, ref, params, call, stream}, run);
  qn_cuda_leave(&scope);
  return status;
}

static quern_status call_once(const qn_decision *decision, const quern_call *call) {
  QN_IN_SCRATCH(qn_cuda_run, run);
  quern_status status = prepare(decision, call, run);
  return status ? status : launch(decision, run, decision->nest.ref, &decision->params, call);
}

static quern_status keep(const qn_decision *decision, const quern_call *call, qn_run **run) {
  return qn_cuda_keep(prepare, decision, call, run);
}

static quern_status launch_kept(const qn_decision *decision, const qn_run *run, const qn_ref *ref, const qn_params *params,
                                const quern_call *call) {
  return launch(decision, (const qn_cuda_run *)run, ref, params, call);
}

static quern_status workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                              size_t *bytes) {
  const qn_cuda_facts *facts;
  QN_IN_SCRATCH(qn_decision, decision);
  qn_sentence kept;
  kernel_choice choice;
  quern_status status = qn_cuda_decide(op, in, out, call, decision);
  if (status || decision->nest.n_elements == 0) return status;
  qn_status_keep(&kept);
  if (qn_cuda_device_facts(decision->device.device_id, &facts)) {
    qn_status_restore(&kept); /* the call reports it */
    return QUERN_OK;
  }
  choose(decision->op, decision, facts, &choice);
  const qn_code *code = qn_cuda_code_of(decision->op, decision->specialised, &choice.form, facts->capability, 0);
  *bytes = qn_cuda_workspace(decision, &choice.form);
  if (!*bytes && !choice.built && !(code && image_of(code))) *bytes = qn_cuda_steps_workspace(decision, facts->capability);
  return QUERN_OK;
}

/* ---- Explaining ---- */

static void add_form(qn_strbuf *buf, const char *name, const qn_launch_form *form) {
  char classes[QN_MAX_OPERANDS + 1] = {0};
  for (int32_t k = 0; k < form->n_operands; k++) classes[k] = "cbst"[form->classes[k]]; /* ORDER qn_class */
  char rank[2] = {form->rank ? (char)('0' + form->rank) : 'n', 0};
  qn_strbuf_add(buf, "variant: %s %sd %s%s\n", name, rank, classes, form->is_wide ? " i64" : "");
}

/* The properties of a loaded kernel. */
static void add_kernel(qn_strbuf *buf, const qn_decision *decision, const qn_launch *launch, const quern_call *call,
                       const qn_cuda_facts *facts, const qn_cuda_kernel_info *kernel) {
  qn_cuda_pieces pieces;
  uint32_t x, y;
  qn_launch_block(launch, &x, &y);
  qn_cuda_cut(decision, launch, kernel->items_per_thread, (uint32_t)kernel->dynamic_bytes, call, &pieces);
  const int32_t blocks = blocks_of(kernel, facts, pieces.shared_bytes);
  const int32_t threads = facts->threads_per_multiprocessor;
  qn_strbuf_add(buf, "grid: %u\nblock: %u x %u\nslot: %u\nturn: %d\n",
                qn_launch_grid(launch, (uint32_t)qn_cuda_items(kernel), (uint32_t)(blocks * facts->multiprocessors)), x, y,
                launch->item_elements, qn_cuda_items(kernel));
  qn_strbuf_add(buf, "registers: %d\nspills: %d\nshared: %d\noccupancy: %d%%\n", kernel->registers, kernel->local_bytes,
                kernel->shared_bytes + (int32_t)pieces.shared_bytes, threads > 0 ? (int32_t)(x * y) * blocks * 100 / threads : 0);
  if (pieces.bytes) qn_strbuf_add(buf, "launches: %d\npieces: %lld\n", pieces.n_launches, (long long)pieces.n_pieces);
}

/* The kernel that a call would run: *run is prepared, or has neither code nor a kernel built ahead. *code: the code of the
 * compiled kernel, if it was requested. */
static quern_status find_code(const quern_op *op, const qn_decision *decision, const qn_cuda_facts *facts, const qn_cuda_scope *scope,
                         void *stream, kernel_choice *choice, qn_code **code, qn_cuda_run *run) {
  quern_status status;
  *code = NULL;
  choose(op, decision, facts, choice);
  if (choice->is_exact && prepare_built(op, decision, scope, stream, choice, run, &status)) return status;
  *code = qn_cuda_code_of(op, decision->specialised, &choice->form, facts->capability, 1);
  if (!*code) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for its kernel", op->info->name);
  if (image_of(*code)) return prepare_made(op, decision, scope, stream, choice, *code, run);
  if (prepare_built(op, decision, scope, stream, choice, run, &status)) return status;
  plan_launch(decision, &choice->form, run);
  return QUERN_OK;
}

static void add_tier(qn_strbuf *buf, const kernel_choice *choice, const qn_cuda_run *run, const qn_code_info *info,
                     const qn_cuda_chunks *steps, const char *why_not_steps) {
  if (run->detail && choice->is_exact)
    qn_strbuf_add(buf, "tier: built\nreason: a kernel built ahead takes the operands as they lie\n");
  else if (run->detail)
    qn_strbuf_add(buf, "tier: built\nreason: a more general kernel built ahead, %s: %s\n",
                  info->failed ? "and there is none for the operands as they lie"
                               : "until there is one for the operands as they lie",
                  info->reason);
  else if (!run->kernel && steps->n)
    qn_strbuf_add(buf, "tier: steps\nreason: kernels built ahead do it step by step, %s: %s\nsteps: %d\nchunks: %lld\n"
                  "chunk: %lld\n", info->failed ? "and there is none of its own" : "until its own is compiled", info->reason,
                  steps->n_steps, (long long)steps->n, (long long)steps->n_elements);
  else
    qn_strbuf_add(buf, "tier: %s\nreason: %s%s\n", run->kernel ? info->tier : "none", info->reason,
                  run->kernel || info->failed ? "" : "; a call waits for it");
  if (run->detail)
    add_form(buf, choice->built->name, &choice->built_form);
  else
    add_form(buf, info->name, &choice->form);
  qn_strbuf_add(buf, "built: %s%s\n", choice->built ? choice->built->name : "none: ", choice->built ? "" : choice->why);
  if (!run->detail && !run->kernel && !steps->n) qn_strbuf_add(buf, "steps: none: %s\n", why_not_steps);
}

static quern_status explain_here(const quern_op *op, const qn_decision *decision, const qn_cuda_facts *facts,
                                 const qn_cuda_scope *scope, const quern_call *call, qn_strbuf *buf) {
  void *stream = stream_of(call);
  qn_cuda_chunks steps = {0, 0, 0};
  const char *why = "";
  const qn_cuda_kernel_info *kernel = NULL;
  qn_code_info info = {.tier = ""};
  char device[QN_DEVICE_CHARS];
  kernel_choice choice;
  QN_IN_SCRATCH(qn_cuda_run, run);
  qn_code *code;
  quern_status status = find_code(op, decision, facts, scope, stream, &choice, &code, run);
  if (status) return status;
  if (code) qn_code_describe(code, &info);
  qn_cuda_image *image = run->detail ? qn_cuda_built_image(run->detail) : run->kernel ? image_of(run->kernel) : NULL;
  if (image) status = named_but_capturing(op, find_kernel(op, image, scope, stream, &kernel));
  if (status) return status;
  if (!run->detail && !run->kernel && !goes_by_steps(decision, facts, call, &steps, &why)) steps.n = 0;
  add_tier(buf, &choice, run, &info, &steps, why);
  qn_strbuf_add(buf, "path: cuda\ndevice: %s, %s, sm_%d\nstreamed: %s\n", qn_device_text(decision->device, device),
                facts->name, facts->capability, qn_launch_is_streamed(&run->launch) ? "yes" : "no");
  if (kernel) add_kernel(buf, decision, &run->launch, call, facts, kernel);
  const int64_t us = (int64_t)(info.compile_ms * 1000 + 0.5);
  qn_strbuf_add(buf, "nodes: %d\ncompile_ms: %lld.%03lld\ncompiles: %lld\n", decision->specialised->n_nodes,
                (long long)(us / 1000), (long long)(us % 1000), (long long)info.compiles);
  return QUERN_OK;
}

static quern_status explain(const qn_decision *decision, const quern_call *call, qn_strbuf *buf) {
  const quern_op *op = decision->op;
  const qn_cuda_facts *facts;
  qn_cuda_scope scope;
  if (decision->nest.n_elements == 0) {
    qn_cuda_explain_empty(decision, buf);
    return QUERN_OK;
  }
  quern_status status = enter(op, decision, stream_of(call), &facts, &scope);
  if (status) return status;
  status = explain_here(op, decision, facts, &scope, call, buf);
  qn_cuda_leave(&scope);
  return status;
}

extern const qn_backend qn_cuda_driver_backend; /* op_table.c's */
const qn_backend qn_cuda_driver_backend = {
    .device_name = "a CUDA device", .device_type = kDLCUDA, .stand_in = qn_extension_stand_in, .call = call_once, .prepare = keep,
    .launch = launch_kept, .workspace = workspace, .memory = &qn_cuda_memory, .explain = explain};
