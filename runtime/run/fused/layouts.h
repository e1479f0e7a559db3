/* SPDX-License-Identifier: Apache-2.0
 *
 * layouts.h: the compiled code of fused ops, for each specialisation and each requested layout of its operands. Knows no target
 * by name. */
#ifndef QN_LAYOUTS_H
#define QN_LAYOUTS_H

#include <stdatomic.h>

#include "jit/jit.h"
#include "run/fused/specialised.h"

/* A kernel compiled at run time, or being compiled: *kernel is set once, and stays. */
typedef struct qn_compiled {
  qn_variant variant; /* its functions are all NULL: *kernel is the code */
  qn_isa isa;
  const _Atomic(qn_kernel *) *kernel;
} qn_compiled;

static inline qn_kernel *qn_compiled_kernel(const qn_compiled *compiled) {
  return atomic_load_explicit((_Atomic(qn_kernel *) *)(uintptr_t)compiled->kernel, memory_order_acquire);
}

/* Facts for explain. */
typedef struct qn_fused_facts {
  const char *tier;
  char reason[256];
  int64_t compile_us, compiles;
} qn_fused_facts;

/* A layout of operands, and the target that it is for. */
typedef struct qn_layout_request {
  const qn_target *target;
  const uint8_t *classes; /* qn_class of each operand */
  int32_t rank, capability, is_wide; /* as in a qn_code_request */
} qn_layout_request;

/* The code for that layout; valid as long as the op. may_ask 0: only if it was requested before. NULL: it was not, or out of
 * memory. */
qn_code *qn_layouts_code(const quern_op *op, const qn_specialised *specialised, const qn_layout_request *request, int may_ask);

/* Requests code again that was dropped: qn_code_ask. */
void qn_layouts_ask(const qn_compiled *compiled);

/* The CPU's compiled kernel for operands of these classes, or NULL if none is requested; and its facts for explain. */
const qn_compiled *qn_layouts_compiled(const quern_op *op, const qn_specialised *specialised, const uint8_t *classes,
                                       int32_t rank);
void qn_layouts_facts(const quern_op *op, const qn_specialised *specialised, const qn_compiled *compiled, qn_fused_facts *facts);

struct qn_specialisation;
void qn_layouts_free(struct qn_specialisation *specialisation);

#endif
