/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.c: contexts and their ops. See registry.h.
 *
 * A context's ops are in an immutable array sorted by name. A registration builds a new array and swaps one pointer by
 * compare-and-swap, without locks; a thread that loses the race tries again on the new array. Old arrays, a few hundred bytes
 * each, are kept until the context is destroyed. */
#include "core/op/registry.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/isa.h"

/* A registered op, with copies of all data that its definition points to, in one allocation. */
typedef struct registered_op {
  struct registered_op *next;
  quern_op op;
  quern_op_def def;
  quern_op_info info;
  /* then: quern_arg_info[], quern_param_info[], the texts */
} registered_op;

struct quern_ctx {
  atomic_int_fast64_t references; /* the caller's, one per op and plan held */
  qn_slices *slices;
  void *extension; /* of layers above the core */
  _Atomic(qn_op_table *) table;
  _Atomic(registered_op *) registered;
  quern_op builtin[]; /* [qn_n_builtins] */
};

/* ---- Contexts ---- */

static void ctx_destroy(quern_ctx *ctx) {
  for (registered_op *own = atomic_load(&ctx->registered), *next; own; own = next) {
    next = own->next;
    if (own->def.release) own->def.release(own->def.self);
    free(own);
  }
  for (qn_op_table *table = atomic_load(&ctx->table), *older; table; table = older) {
    older = table->older;
    free(table);
  }
  if (ctx->extension) qn_above.destroy(ctx->extension);
  qn_slices_destroy(ctx->slices);
  free(ctx);
}

static quern_status no_memory(const char *what) { return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", what); }

static quern_status ctx_make(const quern_options *options, quern_ctx **out) {
  size_t n = (size_t)qn_n_builtins;
  quern_ctx *ctx = malloc(sizeof *ctx + n * sizeof ctx->builtin[0]);
  qn_op_table *table = malloc(sizeof *table + n * sizeof table->ops[0]);
  if (!ctx || !table) {
    free(ctx);
    free(table);
    return no_memory("ctx");
  }
  table->older = NULL;
  table->count = qn_n_builtins;
  for (int32_t i = 0; i < qn_n_builtins; i++) {
    ctx->builtin[i] =
        (quern_op){.ctx = ctx, .info = &qn_builtins[i].info, .own_kind = qn_builtins[i].kind, .builtin = &qn_builtins[i]};
    table->ops[i] = &ctx->builtin[i];
  }
  atomic_init(&ctx->references, 1);
  atomic_init(&ctx->table, table);
  atomic_init(&ctx->registered, NULL);
  ctx->slices = qn_slices_create(options);
  ctx->extension = qn_above.create ? qn_above.create(ctx, options) : NULL;
  if (!ctx->slices || (qn_above.create && !ctx->extension)) {
    ctx_destroy(ctx);
    return no_memory("ctx");
  }
  *out = ctx;
  return QUERN_OK;
}

quern_status qn_registry_ctx_create(const quern_options *options, quern_ctx **ctx) {
  quern_status status = ctx_make(options, ctx);
  if (status == QUERN_OK) qn_isa_say_unknown(qn_slices_log((*ctx)->slices));
  return status;
}

static void ctx_retain(quern_ctx *ctx) { atomic_fetch_add_explicit(&ctx->references, 1, memory_order_relaxed); }

void qn_registry_ctx_release(quern_ctx *ctx) {
  /* Release: this thread's use of the context happens before its destruction; acquire: so does every other thread's. */
  if (atomic_fetch_sub_explicit(&ctx->references, 1, memory_order_acq_rel) == 1) ctx_destroy(ctx);
}

/* The default context lives until the process ends: its first reference is never released. */
static _Atomic(quern_ctx *) default_ctx;

/* Creates the default context. EXISTS: there was one already. *made: the default context, NULL only for lack of memory. */
static quern_status default_create(const quern_options *options, quern_ctx **made) {
  quern_ctx *ctx = NULL;
  *made = NULL;
  quern_status status = atomic_load(&default_ctx) ? QUERN_E_EXISTS : ctx_make(options, &ctx);
  if (status == QUERN_OK && !atomic_compare_exchange_strong(&default_ctx, made, ctx)) {
    ctx_destroy(ctx); /* another thread was quicker */
    status = QUERN_E_EXISTS;
  }
  *made = atomic_load(&default_ctx);
  if (status == QUERN_OK) qn_isa_say_unknown(qn_slices_log(ctx->slices));
  return status;
}

quern_status qn_registry_configure_default(const quern_options *options) {
  quern_ctx *ctx;
  quern_status status = default_create(options, &ctx);
  if (status != QUERN_E_EXISTS) return status;
  return qn_status_fail(status, "ctx: the process-wide context is in use already; configure it before anything else");
}

quern_ctx *qn_registry_ctx(quern_ctx *ctx) {
  if (ctx) return ctx;
  ctx = atomic_load_explicit(&default_ctx, memory_order_acquire);
  if (!ctx) default_create(NULL, &ctx);
  return ctx;
}

qn_slices *qn_registry_slices(const quern_op *op) { return op->ctx->slices; }
void *qn_registry_extension(const quern_ctx *ctx) { return ctx->extension; }
_Atomic(qn_op_table *) *qn_registry_table(quern_ctx *ctx) { return &ctx->table; }

void qn_registry_retain(quern_op *op) {
  ctx_retain(op->ctx);
  if (op->destroy) atomic_fetch_add_explicit(&op->references, 1, memory_order_relaxed);
}

void qn_registry_release(quern_op *op) {
  quern_ctx *ctx = op->ctx;
  if (op->destroy && atomic_fetch_sub_explicit(&op->references, 1, memory_order_acq_rel) == 1) op->destroy(op);
  qn_registry_ctx_release(ctx);
}

/* ---- Lookup ---- */

static const qn_op_table *table_of(quern_ctx *ctx) { return atomic_load_explicit(&ctx->table, memory_order_acquire); }

int32_t qn_registry_index(const qn_op_table *table, const char *name, int *found) {
  int32_t low = 0, high = table->count;
  *found = 0;
  while (low < high) {
    int32_t middle = low + (high - low) / 2;
    int order = strcmp(table->ops[middle]->info->name, name);
    if (order == 0) {
      *found = 1;
      return middle;
    }
    if (order < 0)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

int32_t qn_registry_count(quern_ctx *ctx) { return table_of(ctx)->count; }

quern_op *qn_registry_at(quern_ctx *ctx, int32_t index) {
  const qn_op_table *table = table_of(ctx);
  return index >= 0 && index < table->count ? table->ops[index] : NULL;
}

quern_op *qn_registry_find(quern_ctx *ctx, const char *name) {
  const qn_op_table *table = table_of(ctx);
  int found;
  int32_t at = qn_registry_index(table, name, &found);
  return found ? table->ops[at] : NULL;
}

quern_op *qn_registry_builtin(int32_t index) {
  quern_ctx *ctx = qn_registry_ctx(NULL);
  if (!ctx) return NULL;
  const qn_op_table *table = table_of(ctx);
  /* Before the first registration the table has the order of the generated one. */
  return table->older ? qn_registry_find(ctx, qn_builtins[index].info.name) : table->ops[index];
}

void qn_registry_guess(quern_ctx *ctx, qn_guess *guess) {
  const qn_op_table *table = table_of(ctx);
  for (int32_t i = 0; i < table->count; i++) qn_guess_offer(guess, table->ops[i]->info->name);
}

/* ---- Registration ---- */

/* Bytes of a text with its terminator, or of "" for NULL. */
static size_t text_bytes(const char *text) { return (text ? strlen(text) : 0) + 1; }

/* Copies a text (NULL: "") to *at and moves *at behind it. */
static const char *text_copy(const char *text, char **at) {
  char *copy = memcpy(*at, text ? text : "", text_bytes(text));
  *at += text_bytes(text);
  return copy;
}

/* The name of an operand: the definition's, else the built-in op's, else NULL. */
static const char *arg_name(const quern_op_def *def, const qn_builtin *builtin, int32_t k) {
  return def->arg_names ? def->arg_names[k] : builtin ? builtin->info.args[k].name : NULL;
}

static registered_op *registered_create(quern_ctx *ctx, const quern_op_def *def, const qn_builtin *builtin) {
  size_t n_args = (size_t)def->n_in + (size_t)def->n_out, n_params = (size_t)def->n_params;
  const quern_param_info *given = def->params ? def->params : builtin ? builtin->info.params : NULL;
  const char *doc = def->doc ? def->doc : builtin ? builtin->info.doc : NULL;
  size_t bytes = sizeof(registered_op) + n_args * sizeof(quern_arg_info) + n_params * sizeof(quern_param_info) +
                 text_bytes(def->name) + text_bytes(doc);
  for (size_t k = 0; k < n_args; k++) bytes += text_bytes(arg_name(def, builtin, (int32_t)k));
  for (size_t k = 0; k < n_params; k++) bytes += text_bytes(given[k].name);

  registered_op *own = calloc(1, bytes);
  if (!own) return NULL;
  quern_arg_info *args = (quern_arg_info *)(own + 1);
  quern_param_info *params = (quern_param_info *)(args + n_args);
  char *text = (char *)(params + n_params);

  own->def = *def;
  own->def.name = text_copy(def->name, &text);
  own->def.doc = text_copy(doc, &text);
  own->def.arg_names = NULL; /* the names are in info.args */
  for (size_t k = 0; k < n_args; k++) {
    args[k] = builtin ? builtin->info.args[k] : (quern_arg_info){.dtypes = "", .is_output = k >= (size_t)def->n_in};
    args[k].name = text_copy(arg_name(def, builtin, (int32_t)k), &text);
  }
  for (size_t k = 0; k < n_params; k++)
    params[k] = (quern_param_info){.name = text_copy(given[k].name, &text), .value = given[k].value};
  own->def.params = params;
  own->info = builtin ? builtin->info
                      : (quern_op_info){.size = sizeof own->info, .formula = "", .n_in = def->n_in, .n_out = def->n_out,
                                        .n_params = def->n_params, .preferred_alignment = 1};
  own->info.name = own->def.name;
  own->info.doc = own->def.doc;
  if (!builtin || builtin->info.op_class != QUERN_CLASS_REDUCTION) own->info.op_class = def->op_class; /* else its shapes follow from axes */
  own->info.args = args;
  own->info.params = params;
  own->op =
      (quern_op){.ctx = ctx, .info = &own->info, .own_kind = &qn_kind_elementwise, .builtin = builtin, .registered = &own->def};
  return own;
}

/* Whether `def` can be registered. present: the op that has its name already, or NULL. */
static quern_status check_definition(const quern_op_def *def, const quern_op *present) {
  const int is_of_axes = present && present->info->op_class == QUERN_CLASS_REDUCTION; /* else there is no way to give it axes */
  if (def->op_class < QUERN_CLASS_BASIC || def->op_class > (is_of_axes ? QUERN_CLASS_REDUCTION : QUERN_CLASS_DYNAMIC))
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: op_class is %d, none of " QN_SPELLED(QUERN_CLASS_) "* that it may have", def->name, def->op_class);
  if (!present) {
    if (def->n_params == 0 || def->params) return QUERN_OK;
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d parameters, but params is NULL", def->name, def->n_params);
  }
  if (present->registered) return qn_status_fail(QUERN_E_EXISTS, "%s: an op of this name is registered already", def->name);
  const quern_op_info *info = present->info;
  if (def->n_in != info->n_in || def->n_out != info->n_out)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: the built-in op of this name has %d inputs and %d outputs, not %d and %d",
                          def->name, info->n_in, info->n_out, def->n_in, def->n_out);
  if (def->n_params != info->n_params)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: the built-in op of this name has %d parameters, not %d", def->name,
                          info->n_params, def->n_params);
  if ((def->op_class == QUERN_CLASS_DYNAMIC) != qn_registry_is_measured(info))
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: op_class is %d, but the built-in op of this name is of class %d", def->name,
                          def->op_class, info->op_class);
  return QUERN_OK;
}

qn_op_table *qn_registry_table_with(qn_op_table *table, int32_t at, int replace, quern_op *op) {
  int32_t count = table->count + !replace;
  qn_op_table *made = malloc(sizeof *made + (size_t)count * sizeof made->ops[0]);
  if (!made) return NULL;
  made->older = table;
  made->count = count;
  for (int32_t i = 0; i < at; i++) made->ops[i] = table->ops[i];
  made->ops[at] = op;
  for (int32_t i = at + 1; i < count; i++) made->ops[i] = table->ops[i - !replace];
  return made;
}

quern_status qn_registry_register(quern_ctx *ctx, const quern_op_def *def) {
  for (;;) {
    qn_op_table *table = atomic_load(&ctx->table);
    int found;
    int32_t at = qn_registry_index(table, def->name, &found);
    const quern_op *present = found ? table->ops[at] : NULL;
    quern_status status = check_definition(def, present);
    if (status) return status;
    registered_op *own = registered_create(ctx, def, present ? present->builtin : NULL);
    if (own && present) own->op.fused = present->fused, own->op.own_kind = present->own_kind;
    qn_op_table *made = own ? qn_registry_table_with(table, at, found, &own->op) : NULL;
    if (made && atomic_compare_exchange_strong(&ctx->table, &table, made)) {
      own->next = atomic_load(&ctx->registered);
      while (!atomic_compare_exchange_weak(&ctx->registered, &own->next, own)) {}
      return QUERN_OK;
    }
    free(own);
    if (!made) return no_memory(def->name);
    free(made);
  }
}
