/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h: contexts and their ops: the built-in ones of the generated table and those that hosts register. Owns
 * their lifetime; knows no tensors and does not run anything. */
#ifndef QN_REGISTRY_H
#define QN_REGISTRY_H

#include <stdatomic.h>

#include "core/base/guess.h"
#include "core/base/kernel_abi.h"
#include "core/base/log.h"
#include "core/base/slices.h"

struct qn_fused;

/* An op of one context. Those with a name there have no count of their own: they live as long as the context, and who
 * holds one holds that. An expression's op is counted: it goes with its last holder. */
struct quern_op {
  quern_ctx *ctx;
  const quern_op_info *info;
  const qn_builtin *builtin;      /* a built-in op, or the dtype rules of a spec's; NULL: neither */
  const quern_op_def *registered; /* NULL: none. With a built-in op: asked first */
  const struct qn_fused *fused;   /* an expression, or an op of a spec: fused.h; NULL: has kernels of its own */
  void (*destroy)(quern_op *op);  /* counted; NULL: not */
  atomic_int_fast64_t references; /* if counted */
};

/* What the operands of a call are checked by: the registered implementation aside. */
static inline const quern_op_info *qn_registry_own_info(const quern_op *op) {
  return op->builtin ? &op->builtin->info : op->info;
}

/* Whether outputs are as large as values say: the class that the public ABI has for it. */
static inline int qn_registry_is_measured(const quern_op_info *info) { return info->op_class == QUERN_CLASS_DYNAMIC; }

/* NULL: the process-wide default context, made at its first use; then NULL is returned only for lack of memory. */
quern_ctx *qn_registry_ctx(quern_ctx *ctx);

/* `options` is of this library's size, or NULL. */
quern_status qn_registry_ctx_create(const quern_options *options, quern_ctx **ctx);
quern_status qn_registry_configure_default(const quern_options *options);
void qn_registry_ctx_release(quern_ctx *ctx);

qn_slices *qn_registry_slices(const quern_op *op);
qn_slices *qn_registry_ctx_slices(const quern_ctx *ctx);

/* The options a context was made with, strings of its own; all 0 by default. */
const quern_options *qn_registry_options(const quern_ctx *ctx);

/* What is added to a context above the core, at first need: NULL until then. It is given to `destroy` when the context goes. */
typedef struct qn_extension {
  void (*destroy)(struct qn_extension *extension);
} qn_extension;
_Atomic(qn_extension *) *qn_registry_extension(quern_ctx *ctx);

/* Adds ops of new names, which the caller keeps as long as the context lives: all of them, or none. Errors: EXISTS, MEMORY. */
quern_status qn_registry_add(quern_ctx *ctx, int32_t n, quern_op *const *ops);

/* Lookups take no locks. They return a borrowed op, NULL where there is none. */
int32_t qn_registry_count(quern_ctx *ctx);
quern_op *qn_registry_at(quern_ctx *ctx, int32_t index);
quern_op *qn_registry_find(quern_ctx *ctx, const char *name);

/* The index-th op of the generated table in the process-wide context, or what is registered under its name there; NULL only
 * for lack of memory. For the typed functions: no search. */
quern_op *qn_registry_builtin(int32_t index);

/* Offers the names of the context's ops. */
void qn_registry_guess(quern_ctx *ctx, qn_guess *guess);

/* `def` is of this library's size, its required fields checked. */
quern_status qn_registry_register(quern_ctx *ctx, const quern_op_def *def);

void qn_registry_retain(quern_op *op);
void qn_registry_release(quern_op *op);

#endif
