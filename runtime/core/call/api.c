/* SPDX-License-Identifier: Apache-2.0
 *
 * api.c: the public functions of the header, up to quern_op_register. Each checks its arguments and calls one function. */
#include <string.h>

#include "core/call/calls.h"
#include "core/op/kind.h"

uint32_t quern_version(void) { return (uint32_t)QUERN_VERSION_MAJOR << 16 | QUERN_VERSION_MINOR << 8 | QUERN_VERSION_PATCH; }

/* ---- Structs of other versions ----
 * A struct's first field is its size in the caller's version of the header. Fields missing from a shorter struct are 0; fields
 * of a longer one beyond ours are not read. */

#define LARGEST_STRUCT 65536

static quern_status check_size(const char *what, const char *type, size_t size, size_t least) {
  if (size >= least && size <= LARGEST_STRUCT && size % sizeof(size_t) == 0) return QUERN_OK;
  return qn_status_fail(QUERN_E_VERSION, "%s: %s.size is %zu, which no version of it has; set it to sizeof(%s)", what, type, size, type);
}

/* Copies the given struct to `own`, a zeroed struct of own_size bytes. */
static quern_status take_struct(const char *what, const char *type, const void *given, size_t least, void *own, size_t own_size) {
  size_t size;
  memcpy(&size, given, sizeof size);
  quern_status status = check_size(what, type, size, least);
  if (status) return status;
  memcpy(own, given, size < own_size ? size : own_size);
  memcpy(own, &own_size, sizeof own_size);
  return QUERN_OK;
}

/* Sets *call: the caller's struct itself if it is of this version, else its copy in *own. */
static quern_status take_call(const quern_op *op, const quern_call **call, quern_call *own) {
  static atomic_int is_said;
  if (!*call || ((*call)->size == sizeof(quern_call) && ((*call)->params || !(*call)->n_params))) return QUERN_OK;
  memset(own, 0, sizeof *own);
  quern_status status = take_struct(op->info->name, QN_SPELLED(quern_call), *call, sizeof(size_t), own, sizeof *own);
  *call = own;
  if (status == QUERN_OK && !own->params && own->n_params && !atomic_exchange(&is_said, 1))
    qn_log_say(qn_slices_log(qn_registry_slices(op)), QN_LOG_WARNING, "%s: call.n_params is %d, but call.params is NULL: all have "
               "their defaults (said once)", op->info->name, own->n_params);
  return status;
}

static quern_status take_options(const quern_options **options, quern_options *own) {
  if (!*options) return QUERN_OK;
  memset(own, 0, sizeof *own);
  quern_status status = take_struct("ctx", QN_SPELLED(quern_options), *options, sizeof(size_t), own, sizeof *own);
  *options = own;
  if (status) return status;
  if (own->jit < QUERN_JIT_DEFAULT || own->jit > QUERN_JIT_ASYNC)
    return qn_status_fail(QUERN_E_ARGUMENT, "ctx: options.jit is %d, none of " QN_SPELLED(QUERN_JIT_) "*", own->jit);
  if (own->threads < 0) return qn_status_fail(QUERN_E_ARGUMENT, "ctx: options.threads is %d", own->threads);
  return QUERN_OK;
}

static quern_status refuse_null(const char *function, const char *argument) {
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is NULL", function, argument);
}

/* ---- Contexts ---- */

quern_status quern_ctx_create(const quern_options *options, quern_ctx **ctx) {
  quern_options own;
  if (!ctx) return refuse_null("ctx", "the place for the context");
  quern_status status = take_options(&options, &own);
  return status ? status : qn_registry_ctx_create(options, ctx);
}

void quern_ctx_release(quern_ctx *ctx) { if (ctx) qn_registry_ctx_release(ctx); }

quern_status quern_ctx_configure_default(const quern_options *options) {
  quern_options own;
  quern_status status = take_options(&options, &own);
  return status ? status : qn_registry_configure_default(options);
}

/* The context, or the default one for NULL. Returns NULL, with an error recorded, if that cannot be made. */
static quern_ctx *take_ctx(quern_ctx *ctx) {
  ctx = qn_registry_ctx(ctx);
  if (!ctx) qn_status_fail(QUERN_E_MEMORY, "ctx: out of memory");
  return ctx;
}

/* ---- Ops ---- */

int32_t quern_op_count(quern_ctx *ctx) {
  ctx = take_ctx(ctx);
  return ctx ? qn_registry_count(ctx) : 0;
}

/* Gives the caller a reference. */
static quern_status give_op(quern_op *found, quern_op **op) {
  qn_registry_retain(found);
  *op = found;
  return QUERN_OK;
}

quern_status quern_op_at(quern_ctx *ctx, int32_t index, quern_op **op) {
  if (!op) return refuse_null("op_at", "the place for the op");
  if (!(ctx = take_ctx(ctx))) return QUERN_E_MEMORY;
  quern_op *found = qn_registry_at(ctx, index);
  if (!found) return qn_status_fail(QUERN_E_ARGUMENT, "op_at: index %d, there are %d ops", index, qn_registry_count(ctx));
  return give_op(found, op);
}

quern_status quern_op_find(quern_ctx *ctx, const char *name, quern_op **op) {
  if (!op) return refuse_null("op_find", "the place for the op");
  if (!name) return refuse_null("op_find", "the name");
  if (!(ctx = take_ctx(ctx))) return QUERN_E_MEMORY;
  quern_op *found = qn_registry_find(ctx, name);
  const quern_status status = !found && qn_above.find ? qn_above.find(ctx, name, &found) : QUERN_OK;
  if (found) return give_op(found, op);
  if (status) return status;
  qn_guess guess = qn_guess_begin(name);
  qn_registry_guess(ctx, &guess);
  const char *nearest = guess.nearest ? guess.nearest : "";
  return qn_status_fail(QUERN_E_NOTFOUND, "there is no op %.64s%s%s", name, *nearest ? "; the nearest name is " : "", nearest);
}

void quern_op_release(quern_op *op) { if (op) qn_registry_release(op); }

const quern_op_info *quern_op_describe(const quern_op *op) { return op ? op->info : NULL; }

/* ---- Calling ---- */

/* Checks op, counts and arrays. */
static inline quern_status check_operands(const quern_op *op, int32_t n_in, const void *in, int32_t n_out, const void *out) {
  if (!op) return refuse_null("op", "the op");
  const quern_op_info *info = op->info;
  if (n_in != info->n_in) return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d input%s given, it has %d", info->name, n_in, n_in == 1 ? "" : "s", info->n_in);
  if (n_out != info->n_out)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d output%s given, it has %d", info->name, n_out, n_out == 1 ? "" : "s", info->n_out);
  if (n_in && !in) return refuse_null(info->name, "the array of inputs");
  if (n_out && !out) return refuse_null(info->name, "the array of outputs");
  return QUERN_OK;
}

/* The same, and takes the call. */
static inline quern_status check_call(const quern_op *op, int32_t n_in, const void *in, int32_t n_out, const void *out,
                                      const quern_call **call, quern_call *own) {
  quern_status status = check_operands(op, n_in, in, n_out, out);
  return status ? status : take_call(op, call, own);
}

/* Elements are shapes[0].size bytes apart; each must have room for the fields before the strides. */
static quern_status check_shape_sizes(const quern_op_info *info, const char *name, quern_shape *shapes) {
  quern_status status = QUERN_OK;
  for (int32_t k = 0; k < info->n_out && status == QUERN_OK; k++) {
    const quern_shape *element = qn_shape_at(shapes, k);
    status = check_size(info->name, QN_SPELLED(quern_shape), element->size, QN_SHAPE_LEAST);
    if (status == QUERN_OK && element->size != shapes->size)
      status = qn_status_fail(QUERN_E_VERSION, "%s: %s[%d].size differs from %s[0].size", info->name, name, k, name);
  }
  return status;
}

quern_status quern_op_infer(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out) {
  quern_status status = check_operands(op, n_in, in, n_out, out);
  if (status == QUERN_OK) status = check_shape_sizes(op->info, "out", out);
  return status ? status : qn_infer(op, in, out);
}

quern_status quern_op_measure(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *out,
                              const quern_call *call) {
  quern_call own;
  quern_status status = check_call(op, n_in, in, n_out, out, &call, &own);
  if (status == QUERN_OK) status = check_shape_sizes(op->info, "out", out);
  return status ? status : qn_measure(op, in, out, call);
}

quern_status quern_op_call_alloc(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, quern_shape *shapes,
                                 struct DLManagedTensorVersioned **out, quern_allocator allocate, const quern_call *call) {
  quern_call own;
  quern_status status = check_call(op, n_in, in, n_out, out, &call, &own);
  if (status == QUERN_OK && shapes) status = check_shape_sizes(op->info, "shapes", shapes);
  if (status) return status;
  if (!allocate && !(allocate = qn_above.allocator)) return refuse_null(op->info->name, "the allocator");
  return qn_outputs_call(op, in, shapes, out, allocate, call);
}

quern_status quern_op_workspace(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                                const quern_call *call, size_t *bytes) {
  quern_call own;
  quern_status status = check_call(op, n_in, in, n_out, out, &call, &own);
  if (status == QUERN_OK && !bytes) status = refuse_null(op->info->name, "the place for the size");
  return status ? status : qn_dispatch_workspace(op, in, out, call, bytes);
}

quern_status quern_op_call(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                           const quern_call *call) {
  quern_call own;
  quern_status status = check_call(op, n_in, in, n_out, out, &call, &own);
  return status ? status : qn_dispatch_call(op, in, out, call);
}

quern_status quern_op_prepare(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call, quern_plan **plan) {
  quern_call own;
  quern_status status = check_call(op, n_in, in, n_out, out, &call, &own);
  if (status == QUERN_OK && !plan) status = refuse_null(op->info->name, "the place for the plan");
  return status ? status : qn_plan_create(op, in, out, call, plan);
}

quern_status quern_plan_run(quern_plan *plan, void *const *in, void *const *out, const quern_call *call) {
  quern_call own;
  if (!plan) return refuse_null("plan", "the plan");
  const quern_op_info *info = qn_plan_op(plan)->info;
  if (info->n_in && !in) return refuse_null(info->name, "the array of inputs");
  if (info->n_out && !out) return refuse_null(info->name, "the array of outputs");
  quern_status status = take_call(qn_plan_op(plan), &call, &own);
  return status ? status : qn_plan_run(plan, in, out, call);
}

void quern_plan_release(quern_plan *plan) { if (plan) qn_plan_destroy(plan); }

quern_status quern_op_explain(quern_op *op, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                              const quern_call *call, char *text, size_t size) {
  quern_call own;
  quern_status status = check_call(op, n_in, in, n_out, out, &call, &own);
  if (status == QUERN_OK && (!text || size == 0)) status = refuse_null(op->info->name, "the place for the text");
  return status ? status : qn_explain(op, in, out, call, text, size);
}

/* ---- Ops of the host's own ---- */

/* The end of the word [a-z][a-z0-9_]* at c; NULL if there is none. */
static const char *skip_word(const char *c) {
  if (!(*c >= 'a' && *c <= 'z')) return NULL;
  while ((*c >= 'a' && *c <= 'z') || (*c >= '0' && *c <= '9') || *c == '_') c++;
  return c;
}

/* A word, or a namespace, a dot and a word; the same rule as for ops of a spec. */
static int is_op_name(const char *name) {
  const char *end = skip_word(name);
  if (end && *end == '.') end = skip_word(end + 1);
  return end && !*end && end - name <= 128;
}

static quern_status check_def(const quern_op_def *def) {
  if (!def->name) return refuse_null("op_register", "the name");
  if (!is_op_name(def->name))
    return qn_status_fail(QUERN_E_ARGUMENT, "op_register: name \"%.64s\": expected [a-z][a-z0-9_]*, with a namespace "
                          "and a dot before it or not, 128 at most", def->name);
  if (!def->call) return refuse_null(def->name, "its function call");
  if (def->n_in < 0 || def->n_out < 1 || def->n_in > QN_MAX_OPERANDS - def->n_out || def->n_out > QN_MAX_OPERANDS)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d inputs and %d outputs; one output at least, %d operands in all at most",
                          def->name, def->n_in, def->n_out, QN_MAX_OPERANDS);
  if (def->n_params < 0 || def->n_params > QN_MAX_PARAMS)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d parameters; at most %d", def->name, def->n_params, QN_MAX_PARAMS);
  for (int32_t k = 0; def->arg_names && k < def->n_in + def->n_out; k++)
    if (!def->arg_names[k]) return refuse_null(def->name, "the name of an operand");
  for (int32_t k = 0; def->params && k < def->n_params; k++)
    if (!def->params[k].name) return refuse_null(def->name, "the name of a parameter");
  return QUERN_OK;
}

quern_status quern_op_register(quern_ctx *ctx, const quern_op_def *def) {
  quern_op_def own = {0};
  if (!def) return refuse_null("op_register", "the definition");
  /* The fields up to `call` are required; later ones may be missing. */
  quern_status status = take_struct("op_register", QN_SPELLED(quern_op_def), def, offsetof(quern_op_def, infer), &own, sizeof own);
  own.size = def->size; /* tells what its functions know */
  if (status == QUERN_OK) status = check_def(&own);
  if (status) return status;
  if (!(ctx = take_ctx(ctx))) return QUERN_E_MEMORY;
  return (qn_above.define ? qn_above.define : qn_registry_register)(ctx, &own);
}
