/* fused_ops.c: see fused_ops.h.
 *
 * An op has one entry for each choice of operands' dtypes it has met, and that one an entry for each layout that it has asked
 * code for. Entries are only ever added, at the head of a list, without a lock; they go with the op. */
#include "run/fused_ops.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/op/kind.h"
#include "core/base/status.h"
#include "core/base/strbuf.h"
#include "core/tensor/tensor.h"
#include "run/interpreter.h"
#include "lang/typing.h"

/* Code for operands that lie in one way, on the CPU or on CUDA devices of one capability. */
typedef struct layout {
  struct layout *next;
  qn_compiled compiled;
  qn_code *code;
  int32_t capability; /* 0: the CPU's */
  uint8_t is_wide;
  char name[32];
  uint8_t classes[QN_MAX_OPERANDS];
} layout;

/* Which of an entry's layouts: its key. */
typedef struct place {
  const uint8_t *classes;
  int32_t rank, capability;
  uint8_t is_wide;
} place;

/* The op for operands of certain dtypes. */
typedef struct entry {
  struct entry *next;
  qn_specialised specialised;
  qn_interpreted *interpreted; /* NULL: one built op computes it: */
  const qn_builtin *built;
  _Atomic(layout *) layouts;
  uint8_t dtypes[QN_MAX_OPERANDS];
  uint8_t results[QN_MAX_OPERANDS]; /* the dtypes that the outputs have of themselves */
} entry;

typedef struct fused_op {
  qn_fused face; /* first: what the core has of it */
  quern_op op;
  qn_generator *generator; /* these two are its context's */
  qn_jit *jit;
  _Atomic(qn_expression *) expression; /* of an op with a name: read at its first use; else never */
  qn_spec_op *spec;                    /* NULL: an expression of the host's */
  qn_digest digest;                    /* of the specs that a spec's op depends on */
  _Atomic(entry *) entries;
  quern_op_info info;
  char *strings;
} fused_op;

static fused_op *fused_of(const quern_op *op) { return (fused_op *)(uintptr_t)op->fused; }

static quern_status no_memory(const char *what) { return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", what); }

/* ---- What an expression is ---- */

/* Whether it is an op whose dtype the output's owner chooses, which no expression can say. */
static int is_free(const qn_builtin *builtin) { return builtin && builtin->kind->chooses_dtype; }

/* Operands of its kernels. */
static int32_t n_inputs(const fused_op *fused) { return fused->op.info->n_in + qn_kind_of(&fused->op)->n_positions; }
static int32_t n_operands(const fused_op *fused) { return n_inputs(fused) + fused->op.info->n_out; }

/* The text by which an op with a name is an expression: `param a; NAME(x, y, a)`, or, where it has several outputs,
 * `param a; u = NAME.u(x, y, a); v = NAME.v(x, y, a);`. */
static char *named_text(const quern_op_info *info) {
  size_t of_call = strlen(info->name) + 8, bytes = 1;
  for (int32_t k = 0; k < info->n_in; k++) of_call += strlen(info->args[k].name) + 2;
  for (int32_t k = 0; k < info->n_params; k++) {
    of_call += strlen(info->params[k].name) + 2;
    bytes += strlen(info->params[k].name) + 12;
  }
  for (int32_t k = 0; k < info->n_out; k++) bytes += of_call + 2 * strlen(info->args[info->n_in + k].name);
  char *text = malloc(bytes), *at = text;
  if (!text) return NULL;
  for (int32_t k = 0; k < info->n_params; k++) at = stpcpy(stpcpy(stpcpy(at, "param "), info->params[k].name), "; ");
  for (int32_t out = 0; out < info->n_out; out++) {
    const char *output = info->args[info->n_in + out].name;
    if (info->n_out > 1) at = stpcpy(stpcpy(at, output), " = ");
    at = stpcpy(at, info->name);
    if (info->n_out > 1) at = stpcpy(stpcpy(at, "."), output);
    at = stpcpy(at, "(");
    for (int32_t k = 0; k < info->n_in; k++) at = stpcpy(stpcpy(at, k ? ", " : ""), info->args[k].name);
    for (int32_t k = 0; k < info->n_params; k++) at = stpcpy(stpcpy(at, k || info->n_in ? ", " : ""), info->params[k].name);
    at = stpcpy(at, info->n_out > 1 ? "); " : ")");
  }
  return text;
}

static quern_status expression_of(fused_op *fused, const qn_expression **expression) {
  qn_expression *known = atomic_load_explicit(&fused->expression, memory_order_acquire), *made = NULL;
  *expression = known;
  if (known) return QUERN_OK;
  char *text = named_text(fused->op.info);
  if (!text) return no_memory(fused->op.info->name);
  quern_status status = qn_expression_parse(fused->op.ctx, text, &made);
  free(text);
  if (status) return status;
  if (!atomic_compare_exchange_strong(&fused->expression, &known, made)) { /* another thread was quicker */
    qn_expression_free(made);
    made = known;
  }
  *expression = made;
  return QUERN_OK;
}

/* Of the specs that an expression's ops come from; zero if all are built in. */
static qn_digest specs_of(const qn_expression *expression) {
  qn_digest digest = {0, 0};
  for (int32_t i = 0; i < expression->n_ops; i++) {
    if (!expression->ops[i]->fused) continue;
    const qn_digest *of_op = &fused_of(expression->ops[i])->digest;
    if (digest.high == 0 && digest.low == 0) digest = QN_DIGEST_START;
    digest = qn_digest_add(digest, of_op, sizeof *of_op);
  }
  return digest;
}

/* ---- Specialising ---- */

/* The op that moves values, if the text is nothing but a call of one on its inputs in order: then promotion is the op's, too, and
 * what is of the promoted dtype already keeps its bits, as in a call of the op itself. */
static const qn_builtin *moving_builtin(const qn_expression *expression, const uint8_t *dtypes) {
  const qn_instruction *code = expression->code;
  const int32_t n_in = expression->n_in;
  if (expression->n_code != n_in + 2 || code[n_in].kind != QN_CODE_OP) return NULL; /* behind it stands the assignment */
  const qn_builtin *builtin = code[n_in].v.op->builtin;
  if (!builtin->kind->keeps_bits || !builtin->n_variants) return NULL;
  for (int32_t k = 0; k < n_in; k++) {
    if (code[k].kind != QN_CODE_INPUT || code[k].v.index != k) return NULL;
    if (builtin->bool_in >> k & 1 && dtypes[k] != QN_BOOL) return NULL;
  }
  return builtin;
}

/* Whether all the expression does is to call one built op on its inputs as they are, and give what it gives. */
static const qn_builtin *single_builtin(const qn_expression *expression, const qn_typed *typed) {
  const qn_value *last = &typed->values[typed->n_values - 1];
  if (last->kind != QN_VALUE_OP || typed->n_values != expression->n_in + typed->n_out) return NULL;
  const qn_builtin *builtin = last->op->builtin;
  if (!builtin->n_variants || builtin->info.n_out != typed->n_out) return NULL;
  for (int32_t out = 0; out < typed->n_out; out++) {
    const qn_value *value = &typed->values[typed->out[out]];
    if (value->op != last->op || value->index != out || value->n_params || value->n_args != expression->n_in) return NULL;
    for (int32_t k = 0; k < value->n_args; k++) {
      const qn_value *arg = &typed->values[typed->args[value->first_arg + k]];
      if (arg->kind != QN_VALUE_INPUT || arg->index != k) return NULL;
    }
  }
  return builtin;
}

/* A result may be stored in any dtype of its own kind or a higher one. */
static quern_status check_outputs(const fused_op *fused, const entry *entry) {
  const quern_op_info *info = fused->op.info;
  for (int32_t k = 0; k < info->n_out; k++) {
    uint8_t given = entry->dtypes[info->n_in + k], result = entry->results[k];
    if (qn_dtype_infos[given].kind >= qn_dtype_infos[result].kind) continue;
    return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[info->n_in + k], k,
                          "dtype %s cannot take a result of dtype %s; give it dtype %s, or cast in the expression",
                          qn_dtype_infos[given].name, qn_dtype_infos[result].name, qn_dtype_infos[result].name);
  }
  return QUERN_OK;
}

static void entry_free(entry *entry) {
  if (!entry) return;
  for (layout *at = atomic_load(&entry->layouts), *next; at; at = next) {
    next = at->next;
    qn_code_release(at->code);
    free(at);
  }
  qn_interpreter_free(entry->interpreted);
  free(entry);
}

/* `typed` for the inputs' dtypes, made into all that a call needs. */
static quern_status fill_entry(const fused_op *fused, const qn_expression *expression, const qn_typed *typed, entry *entry) {
  qn_specialised *specialised = &entry->specialised;
  memcpy(entry->results, typed->out_dtypes, (size_t)typed->n_out);
  quern_status status = check_outputs(fused, entry);
  if (status) return status;
  specialised->dtypes = entry->dtypes;
  specialised->n_nodes = typed->n_values;
  const qn_builtin *builtin = moving_builtin(expression, entry->dtypes);
  if (!builtin) builtin = single_builtin(expression, typed);
  if (builtin) {
    entry->built = builtin;
    specialised->is_built = 1;
    specialised->heavy = builtin->heavy;
    return qn_kind_resolve(builtin, entry->dtypes, &specialised->signature);
  }
  status = qn_interpreter_build(expression, typed, fused->generator, &entry->interpreted);
  if (status) return status;
  const qn_interpreted *interpreted = entry->interpreted;
  specialised->heavy = interpreted->heavy;
  specialised->n_slots = interpreted->n_slots;
  specialised->slots = interpreted->slots;
  specialised->signature = (qn_signature){.heavy = interpreted->heavy, .program = &interpreted->program};
  memcpy(specialised->signature.compute_dtypes, interpreted->value, sizeof interpreted->value);
  return QUERN_OK;
}

/* For an op that no expression can say. */
static quern_status fill_free(const fused_op *fused, entry *entry) {
  qn_specialised *specialised = &entry->specialised;
  entry->built = fused->op.builtin;
  specialised->dtypes = entry->dtypes;
  specialised->is_built = 1;
  specialised->n_nodes = 1;
  specialised->n_slots = fused->op.info->n_params + entry->built->kind->n_own_params;
  return qn_kind_resolve(entry->built, entry->dtypes, &specialised->signature);
}

static quern_status fill_expression(fused_op *fused, entry *entry) {
  const qn_expression *expression;
  qn_typed *typed = NULL;
  quern_status status = expression_of(fused, &expression);
  if (status == QUERN_OK) status = qn_typing_run(expression, entry->dtypes, &typed);
  if (status == QUERN_OK) status = fill_entry(fused, expression, typed, entry);
  qn_typing_free(typed);
  return status;
}

static const entry *find_entry(fused_op *fused, const uint8_t *dtypes, int32_t n) {
  const entry *at = atomic_load_explicit(&fused->entries, memory_order_acquire);
  while (at && memcmp(at->dtypes, dtypes, (size_t)n) != 0) at = at->next;
  return at;
}

static quern_status make_entry(fused_op *fused, const uint8_t *dtypes, int32_t n, const entry **out) {
  entry *made = calloc(1, sizeof *made);
  if (!made) return no_memory(fused->op.info->name);
  memcpy(made->dtypes, dtypes, (size_t)n);
  quern_status status = is_free(fused->op.builtin) ? fill_free(fused, made) : fill_expression(fused, made);
  if (status) {
    entry_free(made);
    return status;
  }
  made->next = atomic_load(&fused->entries);
  do {
    const entry *other = find_entry(fused, dtypes, n);
    if (other) { /* another thread was quicker */
      entry_free(made);
      *out = other;
      return QUERN_OK;
    }
  } while (!atomic_compare_exchange_weak_explicit(&fused->entries, &made->next, made, memory_order_release,
                                                  memory_order_relaxed));
  *out = made;
  return QUERN_OK;
}

static quern_status specialise(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised) {
  fused_op *fused = fused_of(op);
  int32_t n = n_operands(fused);
  const entry *entry = find_entry(fused, dtypes, n);
  if (!entry) {
    quern_status status = make_entry(fused, dtypes, n, &entry);
    if (status) return status;
  }
  *specialised = &entry->specialised;
  return QUERN_OK;
}

static quern_status infer(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes) {
  fused_op *fused = fused_of(op);
  const quern_op_info *info = fused->op.info;
  const entry *at = atomic_load_explicit(&fused->entries, memory_order_acquire);
  while (at && memcmp(at->dtypes, in_dtypes, (size_t)info->n_in) != 0) at = at->next;
  if (at) {
    memcpy(out_dtypes, at->results, (size_t)info->n_out);
    return QUERN_OK;
  }
  const qn_expression *expression;
  qn_typed *typed;
  quern_status status = expression_of(fused, &expression);
  if (status == QUERN_OK) status = qn_typing_run(expression, in_dtypes, &typed);
  if (status) return status;
  memcpy(out_dtypes, typed->out_dtypes, (size_t)info->n_out);
  qn_typing_free(typed);
  return QUERN_OK;
}

/* ---- Compiled code ---- */

static entry *entry_of(const qn_specialised *specialised) {
  return (entry *)(uintptr_t)((const char *)specialised - offsetof(entry, specialised));
}

static const layout *find_layout(entry *entry, const place *place, int32_t n) {
  const layout *at = atomic_load_explicit(&entry->layouts, memory_order_acquire);
  while (at && (at->compiled.variant.rank != place->rank || at->capability != place->capability ||
                at->is_wide != place->is_wide || memcmp(at->classes, place->classes, (size_t)n) != 0))
    at = at->next;
  return at;
}

/* What an op that moves or casts is asked for by, whose expression, if there is one, would give every NaN one form, and an index
 * op: gen/targets/cuda/source.lua. */
static void write_itself(const quern_op_info *info, char *text, size_t size) {
  qn_strbuf buf = {text, size, 0};
  text[0] = 0;
  qn_strbuf_add(&buf, "%s(", info->name);
  for (int32_t k = 0; k < info->n_in; k++) qn_strbuf_add(&buf, "%s%s", k ? "," : "", info->args[k].name);
  qn_strbuf_add(&buf, ")");
}

/* The code of a kernel, asked for. NULL for lack of memory. */
static qn_code *acquire(fused_op *fused, const entry *entry, const place *place) {
  const quern_op_info *info = fused->op.info;
  const qn_expression *expression = atomic_load(&fused->expression);
  char itself[256];
  const qn_builtin *built = entry->built;
  const int is_said = built && (built->kind->keeps_bits || is_free(built));
  if (is_said) write_itself(&built->info, itself, sizeof itself);
  const qn_code_request request = {
      .canonical = is_said ? itself : expression->canonical, .specs = expression ? specs_of(expression) : (qn_digest){0, 0},
      .n_in = n_inputs(fused), .n_out = info->n_out, .dtypes = entry->dtypes, .classes = place->classes, .rank = place->rank,
      .capability = place->capability, .is_wide = place->is_wide};
  return qn_jit_acquire(fused->jit, &request);
}

static const layout *make_layout(fused_op *fused, entry *entry, const place *place, int32_t n) {
  layout *made = calloc(1, sizeof *made);
  if (!made || !(made->code = acquire(fused, entry, place))) {
    free(made);
    return NULL;
  }
  qn_code_info facts;
  qn_code_describe(made->code, &facts);
  strncpy(made->name, facts.name, sizeof made->name - 1);
  memcpy(made->classes, place->classes, (size_t)n);
  made->capability = place->capability;
  made->is_wide = place->is_wide;
  const qn_variant variant = {.name = made->name, .dtypes = entry->dtypes, .classes = made->classes,
                              .rank = (uint8_t)place->rank};
  made->compiled = (qn_compiled){.variant = variant, .isa = facts.isa, .kernel = &made->code->kernel};
  made->next = atomic_load(&entry->layouts);
  do {
    const layout *other = find_layout(entry, place, n);
    if (other) {
      qn_code_release(made->code);
      free(made);
      return other;
    }
  } while (!atomic_compare_exchange_weak_explicit(&entry->layouts, &made->next, made, memory_order_release,
                                                  memory_order_relaxed));
  return made;
}

/* may_ask 0: only what has been asked for before. */
static const layout *layout_of(const quern_op *op, const qn_specialised *specialised, const place *place, int may_ask) {
  fused_op *fused = fused_of(op);
  entry *entry = entry_of(specialised);
  int32_t n = n_operands(fused);
  const layout *layout = find_layout(entry, place, n);
  if (!layout && may_ask) layout = make_layout(fused, entry, place, n);
  if (layout) qn_code_ask(layout->code);
  return layout;
}

static const qn_compiled *compiled(const quern_op *op, const qn_specialised *specialised, const uint8_t *classes, int32_t rank) {
  const layout *layout = layout_of(op, specialised, &(place){.classes = classes, .rank = rank}, 1);
  return layout ? &layout->compiled : NULL;
}

qn_code *qn_fused_ops_cuda_code(const quern_op *op, const qn_specialised *specialised, const qn_launch_form *form,
                                int32_t capability, int may_ask) {
  const place place = {.classes = form->classes, .rank = form->rank, .is_wide = form->is_wide, .capability = capability};
  const layout *layout = layout_of(op, specialised, &place, may_ask);
  return layout ? layout->code : NULL;
}

const qn_builtin *qn_fused_ops_builtin(const quern_op *op, const qn_specialised *specialised) {
  const fused_op *fused = fused_of(op);
  const entry *entry = entry_of(specialised);
  const qn_builtin *builtin = fused->spec ? NULL : fused->op.builtin;
  qn_signature signature;
  qn_sentence kept;
  if (entry->built) return entry->built;
  if (!builtin || specialised->n_slots != builtin->info.n_params) return NULL;
  qn_status_keep(&kept);
  if (qn_kind_resolve(builtin, entry->dtypes, &signature)) {
    qn_status_restore(&kept);
    return NULL;
  }
  for (int32_t k = 0; k < specialised->n_slots; k++)
    if (specialised->slots[k].param != k || specialised->slots[k].dtype != signature.param) return NULL;
  return builtin;
}

static void facts(const quern_op *op, const qn_specialised *specialised, const qn_compiled *compiled, qn_fused_facts *facts) {
  (void)op;
  *facts = (qn_fused_facts){.tier = ""};
  if (specialised->is_built) {
    strcpy(facts->reason, "one built op computes all of it");
  } else if (!compiled) {
    strcpy(facts->reason, "there is no memory for compiled code");
  } else {
    const layout *layout = (const void *)((const char *)compiled - offsetof(struct layout, compiled));
    qn_code_info info;
    qn_code_describe(layout->code, &info);
    facts->tier = info.tier;
    memcpy(facts->reason, info.reason, sizeof facts->reason);
    facts->compile_us = (int64_t)(info.compile_ms * 1000 + 0.5);
    facts->compiles = info.compiles;
  }
}

/* ---- Ops ---- */

static void fused_free(fused_op *fused) {
  for (entry *at = atomic_load(&fused->entries), *next; at; at = next) {
    next = at->next;
    entry_free(at);
  }
  qn_expression_free(atomic_load(&fused->expression));
  free(fused->spec);
  free(fused->strings);
  free(fused);
}

static void destroy_op(quern_op *op) { fused_free(fused_of(op)); }

static fused_op *fused_make(quern_ctx *ctx, qn_generator *generator, qn_jit *jit) {
  fused_op *fused = calloc(1, sizeof *fused);
  if (!fused) return NULL;
  fused->face = (qn_fused){.specialise = specialise, .infer = infer, .compiled = compiled, .facts = facts};
  fused->generator = generator;
  fused->jit = jit;
  fused->op.ctx = ctx;
  fused->op.fused = &fused->face;
  return fused;
}

/* Writes, where text is not NULL, the names of the dtypes that tensors may have, separated by blanks. Returns their bytes, the
 * end counted. */
static size_t dtype_names(char *text) {
  size_t n = 0;
  for (int t = 0; t < QN_DTYPE_COUNT; t++) {
    const qn_dtype_info *info = &qn_dtype_infos[t];
    if (!info->built || info->kind == QN_KIND_BITS) continue;
    if (text) {
      if (n) text[n - 1] = ' ';
      strcpy(text + n, info->name);
    }
    n += strlen(info->name) + 1;
  }
  return n;
}

/* What quern_op_describe says of an expression. 0 for lack of memory. */
static int describe(fused_op *fused, const qn_expression *expression) {
  size_t n_args = (size_t)(expression->n_in + expression->n_out), n_params = (size_t)expression->n_params;
  size_t args_bytes = n_args * sizeof(quern_arg_info), params_bytes = n_params * sizeof(quern_param_info);
  fused->strings = malloc(args_bytes + params_bytes + dtype_names(NULL));
  if (!fused->strings) return 0;
  quern_arg_info *args = (quern_arg_info *)(void *)fused->strings;
  quern_param_info *params = (quern_param_info *)(void *)(fused->strings + args_bytes);
  char *dtypes = fused->strings + args_bytes + params_bytes;
  dtype_names(dtypes);
  uint32_t inputs = (uint32_t)((UINT64_C(1) << expression->n_in) - 1);
  for (int32_t k = 0; k < expression->n_in; k++)
    args[k] = (quern_arg_info){.name = expression->in_names[k], .dtypes = dtypes};
  for (int32_t k = 0; k < expression->n_out; k++)
    args[expression->n_in + k] =
        (quern_arg_info){.name = expression->out_names[k], .dtypes = dtypes, .is_output = 1, .may_alias = inputs};
  for (int32_t k = 0; k < expression->n_params; k++)
    params[k] = (quern_param_info){.name = expression->param_names[k], .value = {.kind = QUERN_NONE}};
  fused->info = (quern_op_info){.size = sizeof(quern_op_info), .name = expression->name, .doc = "", .formula = expression->text,
                                .op_class = QUERN_CLASS_BASIC, .n_in = expression->n_in, .n_out = expression->n_out,
                                .n_params = expression->n_params, .args = args, .params = params, .preferred_alignment = 64};
  fused->op.info = &fused->info;
  return 1;
}

quern_status qn_fused_ops_of_text(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, const char *text, quern_op **op) {
  qn_expression *expression;
  quern_status status = qn_expression_parse(ctx, text, &expression);
  if (status) return status;
  fused_op *fused = fused_make(ctx, generator, jit);
  if (!fused || !describe(fused, expression)) {
    qn_expression_free(expression);
    free(fused);
    return no_memory("op_compile");
  }
  atomic_store(&fused->expression, expression);
  fused->op.destroy = destroy_op;
  qn_registry_retain(&fused->op);
  *op = &fused->op;
  return QUERN_OK;
}

quern_op *qn_fused_ops_of_spec(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, qn_spec_op *spec, qn_digest digest) {
  fused_op *fused = fused_make(ctx, generator, jit);
  if (!fused) {
    free(spec);
    return NULL;
  }
  fused->spec = spec;
  fused->digest = digest;
  fused->op.builtin = &spec->rule;
  fused->op.info = &spec->rule.info;
  return &fused->op;
}

quern_op *qn_fused_ops_of_builtin(const quern_op *op, qn_generator *generator, qn_jit *jit) {
  fused_op *fused = fused_make(op->ctx, generator, jit);
  if (!fused) return NULL;
  fused->op.builtin = op->builtin;
  fused->op.info = &op->builtin->info;
  return &fused->op;
}

void qn_fused_ops_free(quern_op *op) { fused_free(fused_of(op)); }

quern_status qn_fused_ops_source(const quern_op *op, const uint8_t *dtypes, qn_bytes *source) {
  fused_op *fused = fused_of(op);
  const quern_op_info *info = fused->op.info;
  const qn_expression *expression;
  const char *names[QN_MAX_OPERANDS];
  char classes[QN_MAX_OPERANDS + 1] = {0};
  quern_status status = expression_of(fused, &expression);
  if (status) return status;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    names[k] = qn_dtype_infos[dtypes[k]].name;
    classes[k] = 'c';
  }
  const qn_source_request request = {.symbol = "qj_kernel", .canonical = expression->canonical, .dtypes = names,
                                     .n_in = info->n_in, .n_out = info->n_out, .classes = classes, .rank = 1};
  return qn_generator_source(fused->generator, &request, source, NULL);
}
