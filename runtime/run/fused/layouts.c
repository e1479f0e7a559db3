/* SPDX-License-Identifier: Apache-2.0
 *
 * layouts.c: see layouts.h. Layouts are only ever added, at the head of a list, without a lock; they go with the op. */
#include "run/fused/layouts.h"

#include <stdlib.h>
#include <string.h>

#include "core/op/kind.h"
#include "run/fused/op_text.h"
#include "run/fused/specialise.h"
#include "toolchain/cpu_target.h"

typedef struct qn_layout {
  struct qn_layout *next;
  qn_compiled compiled;
  qn_code *code;
  const qn_target *target;
  int32_t capability, is_wide;
  char name[32];
  uint8_t classes[QN_MAX_OPERANDS];
} known_layout;

static const known_layout *find(qn_specialisation *own, const qn_layout_request *request, int32_t n) {
  const known_layout *at = atomic_load_explicit(&own->layouts, memory_order_acquire);
  while (at && (at->target != request->target || at->compiled.variant.rank != request->rank ||
                at->capability != request->capability || at->is_wide != request->is_wide ||
                memcmp(at->classes, request->classes, (size_t)n) != 0))
    at = at->next;
  return at;
}

/* The op, if it is compiled as a single op, because an expression would make NaNs canonical, or cannot have it. NULL: the
 * expression is compiled. */
static const quern_op_info *by_itself(const qn_builtin *built) {
  return built && built->kind->has_own_entry ? &built->info : NULL;
}

/* Requests the code of a kernel. NULL: out of memory. */
static qn_code *acquire(qn_fused_op *fused, const qn_specialisation *own, const qn_layout_request *layout) {
  const qn_expression *expression = atomic_load(&fused->expression);
  const quern_op_info *itself = by_itself(own->built);
  char key[256];
  if (itself) qn_op_text_key(itself, key, sizeof key);
  const qn_code_request request = {
      .target = layout->target, .canonical = itself ? key : expression->canonical, .op = itself ? itself->name : NULL,
      .specs = expression ? qn_specs_of(expression) : fused->digest, .n_in = qn_fused_op_n_inputs(fused),
      .n_out = fused->op.info->n_out, .dtypes = own->dtypes, .classes = layout->classes, .rank = layout->rank,
      .capability = layout->capability, .is_wide = layout->is_wide};
  return qn_jit_acquire(fused->jit, &request);
}

static const known_layout *make(qn_fused_op *fused, qn_specialisation *own, const qn_layout_request *request, int32_t n) {
  known_layout *made = calloc(1, sizeof *made);
  if (!made || !(made->code = acquire(fused, own, request))) {
    free(made);
    return NULL;
  }
  qn_code_info info;
  qn_code_describe(made->code, &info);
  strncpy(made->name, info.name, sizeof made->name - 1);
  memcpy(made->classes, request->classes, (size_t)n);
  made->target = request->target;
  made->capability = request->capability;
  made->is_wide = request->is_wide;
  const qn_variant variant = {.name = made->name, .dtypes = own->dtypes, .classes = made->classes,
                              .rank = (uint8_t)request->rank};
  made->compiled = (qn_compiled){.variant = variant, .isa = info.isa, .kernel = &made->code->kernel};
  made->next = atomic_load(&own->layouts);
  do {
    const known_layout *other = find(own, request, n);
    if (other) { /* another thread was quicker */
      qn_code_release(made->code);
      free(made);
      return other;
    }
  } while (!atomic_compare_exchange_weak_explicit(&own->layouts, &made->next, made, memory_order_release,
                                                  memory_order_relaxed));
  return made;
}

static const known_layout *layout_of(const quern_op *op, const qn_specialised *specialised, const qn_layout_request *request,
                               int may_ask) {
  qn_fused_op *fused = qn_fused_op_of(op);
  qn_specialisation *own = qn_specialisation_of(specialised);
  const int32_t n = qn_fused_op_n_operands(fused);
  const known_layout *found = find(own, request, n);
  if (!found && may_ask) found = make(fused, own, request, n);
  if (found) qn_code_ask(found->code);
  return found;
}

qn_code *qn_layouts_code(const quern_op *op, const qn_specialised *specialised, const qn_layout_request *request, int may_ask) {
  const known_layout *found = layout_of(op, specialised, request, may_ask);
  return found ? found->code : NULL;
}

const qn_compiled *qn_layouts_compiled(const quern_op *op, const qn_specialised *specialised, const uint8_t *classes,
                                       int32_t rank) {
  const qn_layout_request request = {.target = &qn_cpu_target, .classes = classes, .rank = rank};
  const known_layout *found = layout_of(op, specialised, &request, 1);
  return found ? &found->compiled : NULL;
}

void qn_layouts_ask(const qn_compiled *compiled) {
  qn_code_ask(((const known_layout *)(const void *)((const char *)compiled - offsetof(known_layout, compiled)))->code);
}

void qn_layouts_facts(const quern_op *op, const qn_specialised *specialised, const qn_compiled *compiled, qn_fused_facts *facts) {
  (void)op;
  *facts = (qn_fused_facts){.tier = ""};
  if (specialised->is_built) {
    strcpy(facts->reason, "one built op computes all of it");
  } else if (!compiled) {
    strcpy(facts->reason, "there is no memory for compiled code");
  } else {
    const known_layout *of = (const void *)((const char *)compiled - offsetof(known_layout, compiled));
    qn_code_info info;
    qn_code_describe(of->code, &info);
    facts->tier = info.tier;
    memcpy(facts->reason, info.reason, sizeof facts->reason);
    facts->compile_us = (int64_t)(info.compile_ms * 1000 + 0.5);
    facts->compiles = info.compiles;
  }
}

void qn_layouts_free(qn_specialisation *specialisation) {
  for (known_layout *at = atomic_load(&specialisation->layouts), *next; at; at = next) {
    next = at->next;
    qn_code_release(at->code);
    free(at);
  }
}
