/* SPDX-License-Identifier: Apache-2.0
 *
 * extension.c: see extension.h. */
#include "run/extension.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/op/registry.h"
#include "core/base/status.h"
#include "base/op_traits.h"
#include "base/threads/thread_shield.h"
#include "lang/foreign_names.h"
#include "run/fused/fused_ops.h"
#include "run/profile.h"
#include "run/stage/row_reducers.h"
#include "run/stage/row_stages.h"
#include "run/stage/spec_scans.h"
#include "run/fused/specialise.h"

/* The ops of one spec. */
typedef struct loaded_spec {
  struct loaded_spec *next;
  int32_t n;
  quern_op *ops[];
} loaded_spec;

/* What is made at first need. */
typedef struct run_extension {
  qn_generator *generator;
  qn_jit *jit;
  /* The rest is guarded by qn_generator_begin_load: one spec at a time. */
  loaded_spec *specs;
  qn_row_reducers reducers; /* of all of them */
  qn_spec_scans scans;
  qn_digest digest; /* of all specs loaded so far */
  _Atomic(quern_op *) stand_ins[]; /* by built-in op */
} run_extension;

/* What is made with the context: its extension. */
typedef struct context_part {
  quern_options options;
  qn_profile *profile; /* NULL: none is wanted */
  _Atomic(run_extension *) run;
  char strings[]; /* the copies of options.cache_dir and options.cc */
} context_part;

static quern_status no_memory(const char *what) { return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", what); }

static void spec_free(loaded_spec *spec) {
  if (!spec) return;
  for (int32_t k = 0; k < spec->n; k++) qn_fused_ops_free(spec->ops[k]);
  free(spec);
}

/* ---- A context's ---- */

static void run_destroy(run_extension *extension) {
  for (loaded_spec *at = extension->specs, *next; at; at = next) {
    next = at->next;
    spec_free(at);
  }
  for (int32_t k = 0; k < qn_n_builtins; k++) {
    quern_op *op = atomic_load(&extension->stand_ins[k]);
    if (op) qn_fused_ops_free(op);
  }
  qn_spec_scans_cut(&extension->scans, (qn_spec_scans){NULL});
  qn_row_reducers_cut(&extension->reducers, (qn_row_reducers){NULL});
  qn_jit_destroy(extension->jit);
  qn_generator_destroy(extension->generator);
  free(extension);
}

static run_extension *run_make(const quern_options *options) {
  run_extension *extension = calloc(1, sizeof *extension + (size_t)qn_n_builtins * sizeof extension->stand_ins[0]);
  if (!extension) return NULL;
  extension->digest = QN_DIGEST_START;
  extension->generator = qn_generator_create();
  if (extension->generator && options) qn_generator_limit(extension->generator, options->node_limit, options->compile_cost_limit, options->spec_step_limit);
  extension->jit = extension->generator ? qn_jit_create(options, extension->generator) : NULL;
  if (!extension->jit) {
    qn_generator_destroy(extension->generator);
    free(extension);
    return NULL;
  }
  return extension;
}

void *qn_extension_create(quern_ctx *ctx, const quern_options *options) {
  const size_t dir = options && options->cache_dir ? strlen(options->cache_dir) + 1 : 0;
  const size_t cc = options && options->cc ? strlen(options->cc) + 1 : 0;
  context_part *part = malloc(sizeof *part + dir + cc);
  if (!part) return NULL;
  part->options = options ? *options : (quern_options){.size = sizeof *options};
  part->profile = qn_profile_open(part->options.profile, &(const qn_log){part->options.log, part->options.host});
  part->options.profile = NULL; /* not copied */
  if (dir) part->options.cache_dir = memcpy(part->strings, options->cache_dir, dir);
  if (cc) part->options.cc = memcpy(part->strings + dir, options->cc, cc);
  atomic_init(&part->run, NULL);
  for (int32_t k = 0; k < qn_n_builtins && part->profile; k++) {
    quern_op *op = qn_registry_at(ctx, k);
    op->own_kind = qn_profile_kind(part->profile, op->own_kind);
  }
  return part;
}

void qn_extension_destroy(void *extension) {
  context_part *part = extension;
  run_extension *run = atomic_load(&part->run);
  if (run) run_destroy(run);
  free(part);
}

const quern_options *qn_extension_options(const quern_ctx *ctx) {
  const context_part *part = qn_registry_extension(ctx);
  return &part->options;
}

/* Made at first need; NULL for lack of memory. Without a lock: what is made may log, and a log may call the library. */
static run_extension *extension_of(quern_ctx *ctx) {
  context_part *part = qn_registry_extension(ctx);
  run_extension *known = atomic_load_explicit(&part->run, memory_order_acquire);
  if (known) return known;
  run_extension *made = run_make(&part->options);
  if (!made || atomic_compare_exchange_strong(&part->run, &known, made)) return made;
  run_destroy(made); /* another thread was quicker */
  return known;
}

qn_jit *qn_extension_jit(quern_ctx *ctx) {
  run_extension *extension = extension_of(ctx);
  return extension ? extension->jit : NULL;
}

/* ---- Ops ---- */

static const quern_op *stand_in_of(const quern_op *op) {
  run_extension *extension = extension_of(op->ctx);
  if (!extension) return NULL;
  _Atomic(quern_op *) *field = &extension->stand_ins[op->builtin - qn_builtins];
  quern_op *known = atomic_load_explicit(field, memory_order_acquire);
  if (known) return known;
  quern_op *made = qn_fused_ops_of_builtin(op, extension->generator, extension->jit);
  if (!made || atomic_compare_exchange_strong(field, &known, made)) return made;
  qn_fused_ops_free(made); /* another thread was quicker */
  return known;
}

/* An op of a spec. Where it reduces, its kernel is that of the expression that calls it: the parameters must be the same ones. */
static quern_status stand_for_itself(const quern_op *op, const uint8_t *dtypes, qn_decision *decision) {
  const qn_slot *slots = decision->slots;
  const int32_t n = decision->n_slots;
  decision->op = op;
  quern_status status = qn_fused_ops_specialise(op, dtypes, decision);
  if (status || !qn_specialisation_of(decision->specialised)->rows) return status;
  const qn_row_program *program = qn_row_stages_program(qn_specialisation_of(decision->specialised)->rows);
  int is_same = program->n_slots == n;
  for (int32_t k = 0; k < n && is_same; k++) is_same = program->slots[k].dtype == slots[k].dtype;
  decision->slots = slots;
  decision->n_slots = n;
  if (is_same) return QUERN_OK;
  return qn_status_fail(QUERN_E_DEVICE, "%s: on a device it takes parameters only in an expression; call it in one", op->info->name);
}

quern_status qn_extension_stand_in(const quern_op *op, const uint8_t *dtypes, qn_decision *decision) {
  if (op->fused) return stand_for_itself(op, dtypes, decision);
  decision->op = stand_in_of(op);
  if (!decision->op) return no_memory(op->info->name);
  return qn_fused_ops_specialise(decision->op, dtypes, decision);
}

static qn_profile *profile_of(const quern_ctx *ctx) {
  const context_part *part = qn_registry_extension(ctx);
  return part->profile;
}

/* The limit of the host's options for a text; both readers have limits of their own. */
static quern_status check_text(const quern_ctx *ctx, const char *what, size_t size) {
  const size_t limit = qn_extension_options(ctx)->text_limit;
  if (!limit || size <= limit) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: the text has %zu bytes, more than %zu (text_limit)", what, size, limit);
}

void qn_extension_cancel(quern_ctx *ctx) {
  const context_part *part = qn_registry_extension(ctx);
  run_extension *run = atomic_load_explicit(&part->run, memory_order_acquire);
  if (run) qn_jit_cancel(run->jit);
}

quern_status qn_extension_compile(quern_ctx *ctx, const char *text, quern_op **op) {
  const quern_status refused = check_text(ctx, "op_compile", strlen(text));
  if (refused) return refused;
  run_extension *extension = extension_of(ctx);
  if (!extension) return no_memory("op_compile");
  const quern_status status = qn_fused_ops_of_text(ctx, extension->generator, extension->jit, text, op);
  if (status == QUERN_OK) (*op)->own_kind = qn_profile_kind(profile_of(ctx), (*op)->own_kind);
  return status;
}

static void free_newer(qn_op_table *table, const qn_op_table *before) {
  for (qn_op_table *older; table != before; table = older) {
    older = table->older;
    free(table);
  }
}

/* Adds ops of new names to the context's table: all of them, or none. Errors: EXISTS, MEMORY. */
static quern_status add_ops(quern_ctx *ctx, int32_t n, quern_op *const *ops) {
  _Atomic(qn_op_table *) *field = qn_registry_table(ctx);
  for (;;) {
    qn_op_table *before = atomic_load(field), *table = before;
    quern_status status = QUERN_OK;
    for (int32_t i = 0; i < n && status == QUERN_OK; i++) {
      int found;
      int32_t at = qn_registry_index(table, ops[i]->info->name, &found);
      qn_op_table *made = found ? NULL : qn_registry_table_with(table, at, 0, ops[i]);
      if (made)
        table = made;
      else
        status = found ? qn_status_fail(QUERN_E_EXISTS, "%s: an op of this name is there already", ops[i]->info->name)
                       : no_memory(ops[i]->info->name);
    }
    qn_op_table *const was = before;
    if (status == QUERN_OK && atomic_compare_exchange_strong(field, &before, table)) return QUERN_OK;
    free_newer(table, was);
    if (status) return status;
  }
}

static const quern_op *find_made(quern_op *const *ops, int32_t n, const char *name) {
  for (int32_t i = 0; i < n; i++)
    if (strcmp(ops[i]->info->name, name) == 0) return ops[i];
  return NULL;
}

/* Finds the reducers of an op's programs. The reductions are in the context, or among the `n` ops made so far. */
static quern_status set_reducers(quern_ctx *ctx, run_extension *extension, qn_spec_op *spec, quern_op *const *ops, int32_t n) {
  const qn_stage_maker by = {extension->generator, extension->jit, qn_specs_of_ops};
  for (int32_t k = 0; k < spec->n_programs; k++) {
    qn_spec_program *program = &spec->programs[k];
    for (int32_t r = 0; r < program->n_reduces; r++) {
      const char *name = program->reducers[r].op;
      const quern_op *made = find_made(ops, n, name), *op = made ? made : qn_registry_find(ctx, name);
      if (!op) /* the generator knows all ops */
        return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: it calls %s, which this library was built without", spec->rule.info.name, name);
      quern_status status = qn_row_reducers_find(&extension->reducers, &program->reducers[r], op, &by, &program->reduces[r].by);
      if (status) return status;
    }
  }
  return QUERN_OK;
}

/* Whether a name is taken of a derivative that is to be made at need. */
static quern_status check_derivative(quern_ctx *ctx, quern_op *const *ops, int32_t n, const char *name) {
  if (!name || find_made(ops, n, name) || !qn_registry_find(ctx, name)) return QUERN_OK;
  return qn_status_fail(QUERN_E_EXISTS, "%s: an op of this name is there already", name);
}

/* Adds a spec's ops to the context. Takes ownership of the ops, on failure too. digest: of all specs up to this one. */
static quern_status add_spec(quern_ctx *ctx, run_extension *extension, qn_digest digest, qn_spec_op **ops, int32_t n) {
  loaded_spec *made = malloc(sizeof *made + (size_t)n * sizeof made->ops[0]);
  quern_status status = made ? QUERN_OK : no_memory("spec_load");
  const qn_stage_maker by = {extension->generator, extension->jit, qn_specs_of_ops};
  const qn_row_reducers before = extension->reducers;
  const qn_spec_scans scans_before = extension->scans;
  if (made) *made = (loaded_spec){.next = extension->specs};
  for (int32_t k = 0; k < n; k++) {
    if (status) {
      free(ops[k]);
      continue;
    }
    quern_op *op = made->ops[made->n] = qn_fused_ops_of_spec(ctx, extension->generator, extension->jit, ops[k], digest);
    if (!op) {
      status = no_memory("spec_load");
      continue;
    }
    op->own_kind = qn_profile_kind(profile_of(ctx), op->own_kind);
    made->n++;
  }
  for (int32_t k = 0; k < n && status == QUERN_OK; k++) status = set_reducers(ctx, extension, ops[k], made->ops, made->n);
  for (int32_t k = 0; k < n && status == QUERN_OK; k++)
    status = qn_spec_scans_make(&extension->scans, &extension->reducers, ops[k], made->ops[k], &by);
  for (int32_t k = 0; k < n && status == QUERN_OK; k++) status = check_derivative(ctx, made->ops, n, ops[k]->rule.info.backward);
  if (status == QUERN_OK) status = add_ops(ctx, n, made->ops);
  if (status) {
    qn_spec_scans_cut(&extension->scans, scans_before);
    qn_row_reducers_cut(&extension->reducers, before);
    spec_free(made);
  } else {
    extension->specs = made;
  }
  return status;
}

/* The digest of the specs so far and one more. It includes the size of the text: constants are per file, so two files differ
 * from their concatenation. gen/products/frozen.lua computes the same. */
static qn_digest add_text(qn_digest digest, const char *text, size_t size) {
  unsigned char bytes[8];
  for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)size >> 8 * i);
  return qn_digest_add(qn_digest_add(digest, bytes, sizeof bytes), text, size);
}

quern_status qn_extension_load_spec(quern_ctx *ctx, const char *name, const char *text, size_t size) {
  const quern_status refused = check_text(ctx, "spec_load", size);
  if (refused) return refused;
  run_extension *extension = extension_of(ctx);
  if (!extension) return no_memory("spec_load");
  qn_spec_op **ops = NULL;
  int32_t n = 0;
  qn_generator_begin_load(extension->generator);
  quern_status status = qn_generator_load_spec(extension->generator, name, text, size, &ops, &n);
  if (status == QUERN_OK) {
    const qn_digest digest = add_text(extension->digest, text, size);
    status = add_spec(ctx, extension, digest, ops, n);
    if (status == QUERN_OK)
      extension->digest = digest;
    else
      qn_generator_forget_spec(extension->generator); /* e.g. the host has registered such a name */
    free(ops);
  }
  qn_generator_end_load(extension->generator);
  return status;
}

/* ---- Derivatives ---- */

/* The op of a spec that `name` is the derivative of; NULL: there is none. */
static const quern_op *derived_from(quern_ctx *ctx, const char *name) {
  char of[160]; /* names are shorter, with their namespace */
  const size_t n = qn_length_without_backward(name);
  if (n == 0 || n >= sizeof of) return NULL;
  memcpy(of, name, n);
  of[n] = 0;
  const quern_op *op = qn_registry_find(ctx, of);
  if (!op || !op->fused || !op->builtin || !op->builtin->info.backward) return NULL;
  return strcmp(op->builtin->info.backward, name) == 0 ? op : NULL;
}

/* Makes the derivative of a spec's op, unless another thread was quicker. */
static quern_status make_derivative(quern_ctx *ctx, run_extension *extension, const quern_op *of) {
  qn_spec_op **ops = NULL;
  int32_t n = 0;
  quern_status status = QUERN_OK;
  qn_generator_begin_load(extension->generator);
  if (!qn_registry_find(ctx, of->builtin->info.backward)) {
    status = qn_generator_derivative(extension->generator, of->builtin->info.name, &ops, &n);
    if (status == QUERN_OK) {
      status = add_spec(ctx, extension, qn_fused_op_of(of)->digest, ops, n);
      free(ops);
    }
  }
  qn_generator_end_load(extension->generator);
  return status;
}

static quern_status find_derivative(quern_ctx *ctx, const char *name, quern_op **op) {
  const quern_op *of = derived_from(ctx, name);
  if (!of) return QUERN_OK;
  run_extension *extension = extension_of(ctx);
  const int shield = qn_thread_shield();
  const quern_status status = extension ? make_derivative(ctx, extension, of) : no_memory(name);
  qn_thread_unshield(shield);
  *op = qn_registry_find(ctx, name);
  return *op ? QUERN_OK : status;
}

quern_status qn_extension_find(quern_ctx *ctx, const char *name, quern_op **op) {
  const quern_status status = find_derivative(ctx, name, op);
  return status || *op ? status : qn_foreign_refuse(ctx, name);
}

/* A derivative that is taken over by a host is made before. */
quern_status qn_extension_define(quern_ctx *ctx, const quern_op_def *def) {
  quern_op *derivative = NULL;
  qn_profile *profile = profile_of(ctx);
  const quern_status status = qn_registry_find(ctx, def->name) ? QUERN_OK : find_derivative(ctx, def->name, &derivative);
  if (status) return status;
  return profile ? qn_profile_define(profile, ctx, def) : qn_registry_register(ctx, def);
}
