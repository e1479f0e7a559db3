/* SPDX-License-Identifier: Apache-2.0
 *
 * registry.h: contexts and their ops: the built-in ones of the generated table and those that hosts register. Owns
 * their lifetime; knows no tensors and does not run anything. */
#ifndef QN_REGISTRY_H
#define QN_REGISTRY_H

#include <stdatomic.h>

#include "core/base/kernel_abi.h"
#include "core/base/status.h"
#include "core/base/slices.h"

struct qn_fused;

/* An op of one context. An op with a name lives as long as its context: a reference to it is one to the context. The op of an
 * expression has a reference count of its own (`destroy` is set). */
struct quern_op {
  quern_ctx *ctx;
  const quern_op_info *info;
  const struct qn_kind *own_kind; /* that of `builtin`, of an expression that reduces, or elementwise; or a wrapper of it */
  const qn_builtin *builtin;      /* the row of a built-in op, or the dtype rules of an op of a spec; NULL: neither */
  const quern_op_def *registered; /* the host's implementation, tried before a built-in one; NULL: none */
  const struct qn_fused *fused;   /* of an expression or an op of a spec: kind.h; NULL: it has kernels of its own */
  void (*destroy)(quern_op *op);  /* called with the last reference; NULL: the op is not counted */
  atomic_int_fast64_t references; /* if the op is counted */
};

/* Also the kind of ops without a row of their own: expressions and ops registered by the host. */
extern const struct qn_kind qn_kind_elementwise;

/* The description that the library's own implementation checks operands by; a registered one has op->info. */
static inline const quern_op_info *qn_registry_own_info(const quern_op *op) { return op->builtin ? &op->builtin->info : op->info; }

/* What the public ABI's class of an op says; nothing else reads it. Whether the outputs' shapes depend on the inputs' values. */
static inline int qn_registry_is_measured(const quern_op_info *info) { return info->op_class == QUERN_CLASS_DYNAMIC; }

/* The given context, or for NULL the process-wide default one, made at its first use. Returns NULL only for lack of memory. */
quern_ctx *qn_registry_ctx(quern_ctx *ctx);

/* `options` is of this library's size, or NULL. */
quern_status qn_registry_ctx_create(const quern_options *options, quern_ctx **ctx);
quern_status qn_registry_configure_default(const quern_options *options);
void qn_registry_ctx_release(quern_ctx *ctx);

qn_slices *qn_registry_slices(const quern_op *op);

/* The data of layers above the core, made by qn_above.create; NULL: there are no such layers. */
void *qn_registry_extension(const quern_ctx *ctx);

/* A context's ops. A table is immutable: a change builds a new one and swaps it in by compare-and-swap. */
typedef struct qn_op_table {
  struct qn_op_table *older; /* the table that this one replaced; other threads may still be reading it */
  int32_t count;
  quern_op *ops[]; /* sorted by name */
} qn_op_table;

_Atomic(qn_op_table *) *qn_registry_table(quern_ctx *ctx);

/* The index of `name` in a table, or the one at which to insert it; *found: whether it is there. */
int32_t qn_registry_index(const qn_op_table *table, const char *name, int *found);

/* A copy of `table` with `op` inserted at index `at` or, if `replace`, instead of the op there; NULL for lack of memory. */
qn_op_table *qn_registry_table_with(qn_op_table *table, int32_t at, int replace, quern_op *op);

/* Lookups take no locks. They return a borrowed op, NULL where there is none. */
int32_t qn_registry_count(quern_ctx *ctx);
quern_op *qn_registry_at(quern_ctx *ctx, int32_t index);
quern_op *qn_registry_find(quern_ctx *ctx, const char *name);

/* The op of row `index` of the generated table in the process-wide context, or the op registered under its name. NULL only for
 * lack of memory. For the typed functions: without a search. */
quern_op *qn_registry_builtin(int32_t index);

/* Offers the names of the context's ops to a guess. */
void qn_registry_guess(quern_ctx *ctx, qn_guess *guess);

/* `def` is of this library's size, its required fields checked. */
quern_status qn_registry_register(quern_ctx *ctx, const quern_op_def *def);

void qn_registry_retain(quern_op *op);
void qn_registry_release(quern_op *op);

#endif
