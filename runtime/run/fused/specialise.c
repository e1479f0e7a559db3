/* SPDX-License-Identifier: Apache-2.0
 *
 * specialise.c: see specialise.h. Specialisations are added at the head of a list, without a lock, and freed with the
 * op. */
#include "run/fused/specialise.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/op/kind.h"
#include "core/tensor/tensor.h"
#include "lang/typing/typing.h"
#include "run/fused/op_text.h"
#include "run/stage/row_stages.h"

static quern_status no_memory(const char *what) { return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", what); }

/* ---- The expression of an op ---- */

int qn_specialise_is_free(const qn_builtin *builtin) {
  return builtin && builtin->kind->has_own_entry && !builtin->kind->keeps_bits; /* expressions have copies */
}

quern_status qn_specialise_expression(qn_fused_op *fused, const qn_expression **expression) {
  qn_expression *known = atomic_load_explicit(&fused->expression, memory_order_acquire), *made = NULL;
  *expression = known;
  if (known) return QUERN_OK;
  const qn_row_op *row = fused->op.builtin ? qn_row_op_of(fused->op.builtin) : NULL;
  char *text = qn_op_text_call(fused->op.info, row ? qn_row_n_shape_params(row) : 0);
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

/* ---- Specialising ---- */

qn_digest qn_specs_of_ops(int32_t n, const quern_op *const *ops) {
  qn_digest digest = {0, 0};
  for (int32_t i = 0; i < n; i++) {
    if (!ops[i]->fused) continue;
    const qn_digest *of_op = &qn_fused_op_of(ops[i])->digest;
    if (digest.high == 0 && digest.low == 0) digest = QN_DIGEST_START;
    digest = qn_digest_add(digest, of_op, sizeof *of_op);
  }
  return digest;
}

qn_digest qn_specs_of(const qn_expression *expression) { return qn_specs_of_ops(expression->n_ops, expression->ops); }

/* The copy op of an expression that only calls one on its inputs in order. Then the op's promotion holds, and elements that
 * have the promoted dtype keep their bits, as in a call of the op itself. */
static const qn_builtin *moving_builtin(const qn_expression *expression, const uint8_t *dtypes) {
  const qn_instruction *code = expression->code;
  const int32_t n_in = expression->n_in;
  if (expression->n_code != n_in + 2 || code[n_in].kind != QN_CODE_OP) return NULL; /* the assignment follows it */
  const qn_builtin *builtin = code[n_in].v.op->builtin;
  if (!builtin->kind->keeps_bits || !builtin->n_variants) return NULL;
  for (int32_t k = 0; k < n_in; k++) {
    if (code[k].kind != QN_CODE_INPUT || code[k].v.index != k) return NULL;
    if (builtin->bool_in >> k & 1 && dtypes[k] != QN_BOOL) return NULL;
  }
  return builtin;
}

/* The built op of an expression that only calls one on its unchanged inputs in order and returns its outputs; NULL. */
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
static quern_status check_outputs(const qn_fused_op *fused, const qn_specialisation *own) {
  const quern_op_info *info = fused->op.info;
  for (int32_t k = 0; k < info->n_out; k++) {
    uint8_t given = own->dtypes[info->n_in + k], result = own->results[k];
    if (qn_dtype_infos[given].kind >= qn_dtype_infos[result].kind) continue;
    return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[info->n_in + k], k,
                          "dtype %s cannot take a result of dtype %s; give it dtype %s, or cast in the expression",
                          qn_dtype_infos[given].name, qn_dtype_infos[result].name, qn_dtype_infos[result].name);
  }
  return QUERN_OK;
}

void qn_specialisation_free(qn_specialisation *specialisation) {
  if (!specialisation) return;
  qn_interpreter_free(specialisation->interpreted);
  qn_row_stages_free(specialisation->rows);
  free(specialisation);
}

/* An op's values before they are rounded to its results' dtypes: they are rounded once, where they are stored. */
static void leave_unrounded(qn_typed *typed) {
  for (int32_t k = 0; k < typed->n_out; k++) {
    const qn_value *value = &typed->values[typed->out[k]];
    if (value->kind == QN_VALUE_PRIMITIVE && value->primitive->role == QN_PRIMITIVE_CONVERT) typed->out[k] = typed->args[value->first_arg];
  }
}

static quern_status fill_rows(const qn_fused_op *fused, const qn_expression *expression, qn_typed *typed, qn_specialisation *own) {
  const qn_stage_maker by = {fused->generator, fused->jit, qn_specs_of_ops};
  if (fused->spec) leave_unrounded(typed);
  quern_status status = qn_row_stages_build(expression, typed, &by, &own->rows);
  if (status || !fused->spec) return status;
  for (int32_t k = 0; k < fused->spec->n_programs; k++) /* alike in all of them */
    if (fused->spec->programs[k].program.has_empty) qn_row_stages_set_empty(own->rows, fused->spec->programs[k].program.empty);
  return QUERN_OK;
}

/* Fills the specialisation from the typed expression. */
static quern_status fill_typed(const qn_fused_op *fused, const qn_expression *expression, qn_typed *typed,
                               qn_specialisation *own) {
  qn_specialised *specialised = &own->specialised;
  memcpy(own->results, typed->out_dtypes, (size_t)typed->n_out);
  quern_status status = check_outputs(fused, own);
  if (status) return status;
  specialised->dtypes = own->dtypes;
  specialised->n_nodes = typed->n_values;
  if (expression->n_axes) return fill_rows(fused, expression, typed, own);
  const qn_builtin *builtin = moving_builtin(expression, own->dtypes);
  if (!builtin) builtin = single_builtin(expression, typed);
  if (builtin) {
    own->built = builtin;
    specialised->is_built = 1;
    specialised->heavy = specialised->n_heavy = builtin->heavy;
    return builtin->kind->resolve(builtin, own->dtypes, &specialised->signature);
  }
  status = qn_interpreter_build(expression, typed, fused->generator, &own->interpreted);
  if (status) return status;
  const qn_interpreted *interpreted = own->interpreted;
  specialised->heavy = interpreted->heavy;
  specialised->n_heavy = interpreted->n_heavy;
  specialised->n_slots = interpreted->n_slots;
  specialised->slots = interpreted->slots;
  const qn_program *program = &interpreted->program;
  specialised->signature = (qn_signature){.program = &program->head, .temp_bytes = program->temp_before[program->n_temps],
                                          .fixed_bytes = qn_program_ones_bytes(program)};
  memcpy(specialised->signature.compute_dtypes, interpreted->value, sizeof interpreted->value);
  return QUERN_OK;
}

/* For an op that expressions cannot have (qn_specialise_is_free). */
static quern_status fill_free(const qn_fused_op *fused, qn_specialisation *own) {
  qn_specialised *specialised = &own->specialised;
  own->built = fused->op.builtin;
  specialised->dtypes = own->dtypes;
  specialised->is_built = 1;
  specialised->n_nodes = 1;
  specialised->n_slots = fused->op.info->n_params + own->built->kind->n_own_params;
  return own->built->kind->resolve ? own->built->kind->resolve(own->built, own->dtypes, &specialised->signature) : QUERN_OK;
}

/* The host's limit of values; the reader has one of its own. */
static quern_status check_nodes(const qn_fused_op *fused, const qn_typed *typed) {
  const int64_t limit = qn_generator_node_limit(fused->generator);
  if (limit <= 0 || typed->n_values <= limit) return QUERN_OK;
  return qn_status_fail(QUERN_E_LIMIT, "%s: %d values, more than %d (node_limit)", fused->op.info->name, (int)typed->n_values, (int)limit);
}

static quern_status fill_expression(qn_fused_op *fused, qn_specialisation *own) {
  const qn_expression *expression;
  qn_typed *typed = NULL;
  quern_status status = qn_specialise_expression(fused, &expression);
  if (status == QUERN_OK) status = qn_typing_run(expression, own->dtypes, &typed);
  if (status == QUERN_OK) status = check_nodes(fused, typed);
  if (status == QUERN_OK) status = fill_typed(fused, expression, typed, own);
  qn_typing_free(typed);
  return status;
}

static const qn_specialisation *find_made(qn_fused_op *fused, const uint8_t *dtypes, int32_t n) {
  const qn_specialisation *at = atomic_load_explicit(&fused->specialisations, memory_order_acquire);
  while (at && memcmp(at->dtypes, dtypes, (size_t)n) != 0) at = at->next;
  return at;
}

static quern_status make(qn_fused_op *fused, const uint8_t *dtypes, int32_t n, const qn_specialisation **out) {
  qn_specialisation *made = calloc(1, sizeof *made);
  if (!made) return no_memory(fused->op.info->name);
  memcpy(made->dtypes, dtypes, (size_t)n);
  const qn_builtin *builtin = fused->op.builtin;
  /* an op of a spec has kernels, made when the spec was loaded, if its kind runs calls itself; else its expression runs */
  const int is_free = qn_specialise_is_free(builtin) && (!fused->spec || builtin->kind->call);
  quern_status status = is_free ? fill_free(fused, made) : fill_expression(fused, made);
  if (status) {
    qn_specialisation_free(made);
    return status;
  }
  made->next = atomic_load(&fused->specialisations);
  do {
    const qn_specialisation *other = find_made(fused, dtypes, n);
    if (other) { /* another thread was quicker */
      qn_specialisation_free(made);
      *out = other;
      return QUERN_OK;
    }
  } while (!atomic_compare_exchange_weak_explicit(&fused->specialisations, &made->next, made, memory_order_release,
                                                  memory_order_relaxed));
  *out = made;
  return QUERN_OK;
}

quern_status qn_specialise(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised) {
  qn_fused_op *fused = qn_fused_op_of(op);
  int32_t n = qn_fused_op_n_operands(fused);
  const qn_specialisation *own = find_made(fused, dtypes, n);
  if (!own) {
    quern_status status = make(fused, dtypes, n, &own);
    if (status) return status;
  }
  *specialised = &own->specialised;
  return QUERN_OK;
}

quern_status qn_specialise_infer(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes) {
  qn_fused_op *fused = qn_fused_op_of(op);
  const quern_op_info *info = fused->op.info;
  const qn_specialisation *at = atomic_load_explicit(&fused->specialisations, memory_order_acquire);
  while (at && memcmp(at->dtypes, in_dtypes, (size_t)info->n_in) != 0) at = at->next;
  if (at) {
    memcpy(out_dtypes, at->results, (size_t)info->n_out);
    return QUERN_OK;
  }
  const qn_expression *expression;
  qn_typed *typed;
  quern_status status = qn_specialise_expression(fused, &expression);
  if (status == QUERN_OK) status = qn_typing_run(expression, in_dtypes, &typed);
  if (status) return status;
  memcpy(out_dtypes, typed->out_dtypes, (size_t)info->n_out);
  qn_typing_free(typed);
  return QUERN_OK;
}

quern_status qn_specialise_infer_rows(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes,
                                      const qn_row_stages **stages) {
  const quern_op_info *info = op->info;
  uint8_t dtypes[QN_MAX_OPERANDS];
  const qn_specialised *specialised;
  quern_status status = qn_specialise_infer(op, in_dtypes, out_dtypes);
  if (status) return status;
  memcpy(dtypes, in_dtypes, (size_t)info->n_in);
  memcpy(dtypes + info->n_in, out_dtypes, (size_t)info->n_out);
  if ((status = qn_specialise(op, dtypes, &specialised))) return status;
  *stages = qn_specialisation_of(specialised)->rows;
  return QUERN_OK;
}
