/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_code.c: see stage_code.h. */
#include "run/stage/stage_code.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "run/stage/stage_text.h"
#include "toolchain/cpu_target.h"

/* As qn_row_steps.kernel. */
static qn_kernel *compiled_kernel(const qn_row_steps *steps) {
  qn_stage_code *of = (qn_stage_code *)(uintptr_t)steps;
  qn_code *code = atomic_load_explicit(&of->code, memory_order_acquire), *none = NULL;
  if (!code) {
    const qn_code_request request = {.target = &qn_cpu_target, .canonical = of->text, .specs = of->specs, .n_in = of->n_in,
                                     .n_out = of->n_out, .dtypes = of->dtypes, .classes = of->classes, .rank = 2};
    code = qn_jit_acquire(of->jit, &request);
    if (!code) return NULL; /* out of memory */
    if (!atomic_compare_exchange_strong(&of->code, &none, code)) { /* another thread was quicker */
      qn_code_release(code);
      code = none;
    }
  }
  qn_code_ask(code);
  return atomic_load_explicit(&code->kernel, memory_order_acquire);
}

qn_kernel *qn_stage_code_kernel(const qn_stage_code *of) {
  qn_code *code = atomic_load_explicit(&((qn_stage_code *)(uintptr_t)of)->code, memory_order_acquire);
  return code ? atomic_load_explicit(&code->kernel, memory_order_acquire) : NULL;
}

static void describe(const qn_row_steps *steps, qn_code_info *info) {
  qn_stage_code *of = (qn_stage_code *)(uintptr_t)steps;
  qn_code *code = atomic_load(&of->code);
  *info = (qn_code_info){.tier = "", .name = "", .reason = "there is no memory for compiled code"};
  if (code) qn_code_describe(code, info);
}

static const char *stage_tier(const qn_row_steps *steps, char reason[256]) {
  qn_code_info info;
  describe(steps, &info);
  memcpy(reason, info.reason, sizeof info.reason);
  return info.tier;
}

static void explain_stage(const qn_row_steps *steps, qn_strbuf *buf) {
  const qn_program *program = &((const qn_stage_code *)steps)->interpreted->program;
  qn_code_info info;
  describe(steps, &info);
  if (info.tier[0]) {
    qn_strbuf_add(buf, "variant: %s\n", info.name);
    return;
  }
  for (int32_t i = 0; i < program->n_steps; i++) qn_strbuf_add(buf, "step: %s\n", program->steps[i].variant->name);
}

static void compute_steps(const qn_row_steps *steps, char *const *ptr, const int64_t *stride, int64_t count, char *scratch,
                          const void *params) {
  const qn_stage_code *of = (const qn_stage_code *)steps;
  (void)stride;
  qn_program_run(&of->interpreted->program, ptr, count, scratch, scratch + 8 * steps->n_ones, count, params);
}

/* Sets the digest of the specs of a stage's ops, each once, as its text calls them. 0: out of memory. */
static int set_specs(qn_stage_code *made, const qn_typed *typed, qn_row_specs *specs) {
  const quern_op **ops = malloc(((size_t)typed->n_values + 1) * sizeof *ops);
  int32_t n = 0;
  if (!ops) return 0;
  for (int32_t i = 0; i < typed->n_values; i++) {
    const qn_value *value = &typed->values[i];
    int32_t k = 0;
    if (!value->op) continue;
    while (k < n && ops[k] != value->op) k++;
    if (k == n) ops[n++] = value->op;
  }
  made->specs = specs(n, ops);
  free(ops);
  return 1;
}

quern_status qn_stage_code_make(qn_stage_code *made, const char *name, int32_t n_in, const qn_typed *typed, const qn_stage_maker *by) {
  const qn_expression whole = {.name = name, .n_in = n_in, .n_out = typed->n_out};
  if (n_in + typed->n_out > QN_MAX_OPERANDS)
    return qn_status_fail(QUERN_E_LIMIT, "%s: more than %d inputs, outputs and values of a row", name, QN_MAX_OPERANDS);
  quern_status status = qn_interpreter_build(&whole, typed, by->generator, &made->interpreted);
  if (status) return status;
  if (!(made->text = qn_stage_text(typed)) || !set_specs(made, typed, by->specs))
    return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", name);
  const qn_program *of = &made->interpreted->program;
  for (int32_t i = 0; i < n_in + typed->n_out; i++) made->dtypes[i] = made->interpreted->value[i];
  made->jit = by->jit;
  made->n_in = n_in;
  made->n_out = typed->n_out;
  made->steps = (qn_row_steps){.compute = compute_steps, .kernel = compiled_kernel, .tier = stage_tier, .explain = explain_stage,
                               .n_ones = of->n_ones, .temp_bytes = of->temp_before[of->n_temps],
                               .in_place = ~(of->head.to_blocks >> n_in)};
  return QUERN_OK;
}

quern_status qn_stage_code_of_program(qn_stage_code *made, const qn_variant *program, const quern_op *op, int32_t n_in, int32_t n_out,
                                      const qn_stage_maker *by) {
  const size_t n = (size_t)(n_in + n_out), n_args = (size_t)(n_in * n_out);
  qn_typed *typed = calloc(1, sizeof *typed + n * sizeof(qn_value) + n_args * sizeof(int32_t));
  if (!typed) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", op->info->name);
  typed->values = (qn_value *)(typed + 1);
  typed->args = (int32_t *)(typed->values + n);
  for (int32_t k = 0; k < n_in; k++)
    typed->values[typed->n_values++] = (qn_value){.kind = QN_VALUE_INPUT, .type = program->dtypes[k], .dtype = program->dtypes[k], .index = k};
  for (int32_t k = 0; k < n_out; k++) {
    typed->values[typed->n_values] = (qn_value){.kind = QN_VALUE_KERNEL, .type = program->dtypes[n_in + k], .index = k, .bits = (uint64_t)n_out,
                                                .op = op, .kernel = program, .n_args = n_in, .first_arg = typed->n_args};
    for (int32_t i = 0; i < n_in; i++) typed->args[typed->n_args++] = i;
    typed->out[typed->n_out++] = typed->n_values++;
  }
  for (int32_t k = 0; k < n_in + n_out; k++) made->classes[k] = QN_CLASS_CONTIGUOUS;
  const quern_status status = qn_stage_code_make(made, op->info->name, n_in, typed, by);
  free(typed);
  return status;
}

quern_status qn_stage_code_source(const qn_stage_code *of, qn_generator *generator, const char *symbol, qn_bytes *source) {
  const char *names[QN_MAX_OPERANDS];
  char classes[QN_MAX_OPERANDS + 1] = {0};
  for (int32_t k = 0; k < of->n_in + of->n_out; k++) {
    names[k] = qn_dtype_infos[of->dtypes[k]].name;
    classes[k] = of->classes[k] == QN_CLASS_BROADCAST ? 'b' : 'c';
  }
  const qn_source_request request = {.symbol = symbol, .canonical = of->text, .dtypes = names, .n_in = of->n_in, .n_out = of->n_out,
                                     .classes = classes, .rank = 2};
  return qn_generator_source(generator, &request, source, NULL);
}

void qn_stage_code_free(qn_stage_code *made) {
  qn_code_release(atomic_load(&made->code));
  qn_interpreter_free(made->interpreted);
  free(made->text);
}
