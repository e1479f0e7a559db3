/* SPDX-License-Identifier: Apache-2.0
 *
 * fused.h: ops that are expressions, as the core sees them: what an expression is for given dtypes, and its compiled code.
 * Implemented above the core, and only in the library; in a generated tree no op is fused. */
#ifndef QN_FUSED_H
#define QN_FUSED_H

#include <stdatomic.h>

#include "core/op/program.h"
#include "core/op/resolve.h"

/* One kernel compiled at run time, or being compiled: *kernel appears once, and stays. */
typedef struct qn_compiled {
  qn_variant variant; /* its functions are all NULL: *kernel is the code */
  qn_isa isa;
  const _Atomic(qn_kernel *) *kernel;
} qn_compiled;

static inline qn_kernel *qn_compiled_kernel(const qn_compiled *compiled) {
  return atomic_load_explicit((_Atomic(qn_kernel *) *)(uintptr_t)compiled->kernel, memory_order_acquire);
}

/* An expression for operands of certain dtypes. Lives as long as its op. */
typedef struct qn_specialised {
  qn_signature signature; /* of the interpreter: `program`; or, where the expression is one built op, of that */
  const uint8_t *dtypes;  /* of the operands: compiled kernels take them as they are */
  int32_t n_slots;
  const qn_slot *slots; /* the parameters of either; NULL though there are some: they are converted as the built op's are */
  uint8_t heavy, is_built;
  int32_t n_nodes;
} qn_specialised;

/* Facts for explain. */
typedef struct qn_fused_facts {
  const char *tier;
  char reason[256];
  int64_t compile_us, compiles;
} qn_fused_facts;

typedef struct qn_fused {
  /* What the op is for operands of these dtypes (inputs, then outputs); checks them. */
  quern_status (*specialise)(const quern_op *op, const uint8_t *dtypes, const qn_specialised **specialised);
  /* The dtypes that outputs have of themselves. */
  quern_status (*infer)(const quern_op *op, const uint8_t *in_dtypes, uint8_t *out_dtypes);
  /* The compiled kernel for operands that lie as `classes` says, or NULL where none is wanted. */
  const qn_compiled *(*compiled)(const quern_op *op, const qn_specialised *specialised, const uint8_t *classes, int32_t rank);
  void (*facts)(const quern_op *op, const qn_specialised *specialised, const qn_compiled *compiled, qn_fused_facts *facts);
} qn_fused;

#endif
