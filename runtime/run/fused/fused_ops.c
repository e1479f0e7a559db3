/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_ops.c: see fused_ops.h. */
#include "run/fused/fused_ops.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/op/kind.h"
#include "run/fused/fused_cpu.h"
#include "run/fused/fused_rows.h"
#include "run/fused/layouts.h"
#include "run/stage/row_stages.h"
#include "run/fused/specialise.h"

static quern_status no_memory(const char *what) { return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", what); }

static void fused_free(qn_fused_op *fused) {
  for (qn_specialisation *at = atomic_load(&fused->specialisations), *next; at; at = next) {
    next = at->next;
    qn_layouts_free(at);
    qn_specialisation_free(at);
  }
  qn_expression_free(atomic_load(&fused->expression));
  free(fused->spec);
  free(fused->strings);
  free(fused);
}

static void destroy_op(quern_op *op) { fused_free(qn_fused_op_of(op)); }

quern_status qn_fused_ops_specialise(const quern_op *op, const uint8_t *dtypes, qn_decision *decision) {
  quern_status status = qn_specialise(op, dtypes, &decision->specialised);
  if (status) return status;
  const qn_specialised *specialised = decision->specialised;
  if (!specialised->slots && specialised->n_slots) return QUERN_OK;
  decision->slots = specialised->slots;
  decision->n_slots = specialised->n_slots;
  return QUERN_OK;
}

static quern_status decide_fused(const quern_op *op, const uint8_t *dtypes, qn_decision *decision) {
  quern_status status = qn_fused_ops_specialise(op, dtypes, decision);
  if (status) return status;
  decision->signature = &decision->specialised->signature;
  const qn_row_stages *rows = qn_specialisation_of(decision->specialised)->rows;
  if (rows) {
    decision->of_kind = qn_row_stages_program(rows);
    return QUERN_OK;
  }
  if (decision->backend && decision->backend->device_type == kDLCPU) decision->backend = &qn_fused_cpu;
  return QUERN_OK;
}

static qn_fused_op *fused_make(quern_ctx *ctx, qn_generator *generator, qn_jit *jit) {
  qn_fused_op *fused = calloc(1, sizeof *fused);
  if (!fused) return NULL;
  fused->base = (qn_fused){.decide = decide_fused, .infer = qn_specialise_infer};
  fused->generator = generator;
  fused->jit = jit;
  fused->op.ctx = ctx;
  fused->op.fused = &fused->base;
  return fused;
}

/* Writes the names of the tensor dtypes, separated by blanks, to text (NULL: counts only). Returns their bytes with the
 * terminating 0. */
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

/* Fills in the quern_op_info of an expression. 0 for lack of memory. */
static int describe(qn_fused_op *fused, const qn_expression *expression) {
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
                                .op_class = expression->reduced ? QUERN_CLASS_REDUCTION : QUERN_CLASS_BASIC, .n_in = expression->n_in, .n_out = expression->n_out,
                                .n_params = expression->n_params, .args = args, .params = params, .preferred_alignment = 64};
  fused->op.info = &fused->info;
  fused->op.own_kind = qn_fused_rows_kind(expression);
  return 1;
}

quern_status qn_fused_ops_of_text(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, const char *text, quern_op **op) {
  qn_expression *expression;
  quern_status status = qn_expression_parse(ctx, text, &expression);
  if (status) return status;
  qn_fused_op *fused = fused_make(ctx, generator, jit);
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
  qn_fused_op *fused = fused_make(ctx, generator, jit);
  if (!fused) {
    free(spec);
    return NULL;
  }
  fused->spec = spec;
  fused->digest = digest;
  fused->op.own_kind = spec->rule.kind;
  fused->op.builtin = &spec->rule;
  fused->op.info = &spec->rule.info;
  return &fused->op;
}

quern_op *qn_fused_ops_of_builtin(const quern_op *op, qn_generator *generator, qn_jit *jit) {
  qn_fused_op *fused = fused_make(op->ctx, generator, jit);
  if (!fused) return NULL;
  fused->op.own_kind = op->builtin->kind;
  fused->op.builtin = op->builtin;
  fused->op.info = &op->builtin->info;
  return &fused->op;
}

void qn_fused_ops_free(quern_op *op) { fused_free(qn_fused_op_of(op)); }

const qn_builtin *qn_fused_ops_builtin(const quern_op *op, const qn_specialised *specialised) {
  const qn_fused_op *fused = qn_fused_op_of(op);
  const qn_specialisation *own = qn_specialisation_of(specialised);
  const qn_builtin *builtin = fused->spec ? NULL : fused->op.builtin;
  qn_signature signature;
  qn_sentence kept;
  if (own->built) return own->built;
  if (!builtin || specialised->n_slots != builtin->info.n_params) return NULL;
  qn_status_keep(&kept);
  if (builtin->kind->resolve(builtin, own->dtypes, &signature)) {
    qn_status_restore(&kept);
    return NULL;
  }
  for (int32_t k = 0; k < specialised->n_slots; k++)
    if (specialised->slots[k].param != k || specialised->slots[k].dtype != signature.param) return NULL;
  return builtin;
}

quern_status qn_fused_ops_source(const quern_op *op, const uint8_t *dtypes, qn_bytes *source) {
  qn_fused_op *fused = qn_fused_op_of(op);
  const quern_op_info *info = fused->op.info;
  const qn_expression *expression;
  const char *names[QN_MAX_OPERANDS];
  char classes[QN_MAX_OPERANDS + 1] = {0};
  quern_status status = qn_specialise_expression(fused, &expression);
  if (status) return status;
  if (expression->n_axes) {
    const qn_specialised *specialised;
    if ((status = qn_specialise(op, dtypes, &specialised))) return status;
    return qn_row_stages_source(qn_specialisation_of(specialised)->rows, fused->generator, source);
  }
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) {
    names[k] = qn_dtype_infos[dtypes[k]].name;
    classes[k] = 'c';
  }
  const qn_source_request request = {.symbol = "qj_kernel", .canonical = expression->canonical, .dtypes = names,
                                     .n_in = info->n_in, .n_out = info->n_out, .classes = classes, .rank = 1};
  return qn_generator_source(fused->generator, &request, source, NULL);
}
