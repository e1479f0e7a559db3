/* registry.h: contexts and their ops: the built-in ones of the generated table and those that hosts register. Owns
 * their lifetime; knows no tensors and does not run anything. */
#ifndef QN_REGISTRY_H
#define QN_REGISTRY_H

#include "kernel_abi.h"
#include "slices.h"

/* An op of one context. It has no count of its own: it lives as long as its context, and who holds an op holds that. */
struct quern_op {
  quern_ctx *ctx;
  const quern_op_info *info;
  const qn_builtin *builtin;     /* NULL: registered under a name of its own */
  const quern_op_def *registered; /* NULL: built-in only. Both: the registered one is asked first */
};

/* NULL: the process-wide default context, made at its first use; then NULL is returned only for lack of memory. */
quern_ctx *qn_registry_ctx(quern_ctx *ctx);

/* `options` is of this library's size, or NULL. */
quern_status qn_registry_ctx_create(const quern_options *options, quern_ctx **ctx);
quern_status qn_registry_configure_default(const quern_options *options);
void qn_registry_ctx_release(quern_ctx *ctx);

qn_slices *qn_registry_slices(const quern_op *op);

/* Lookups take no locks. They return a borrowed op, NULL where there is none. */
int32_t qn_registry_count(quern_ctx *ctx);
quern_op *qn_registry_at(quern_ctx *ctx, int32_t index);
quern_op *qn_registry_find(quern_ctx *ctx, const char *name);

/* The index-th op of the generated table in the process-wide context, or what is registered under its name there; NULL only
 * for lack of memory. For the typed functions: no search. */
quern_op *qn_registry_builtin(int32_t index);

/* The name nearest to `name` among the context's ops, or NULL if none is near. */
const char *qn_registry_nearest(quern_ctx *ctx, const char *name);

/* `def` is of this library's size, its required fields checked. */
quern_status qn_registry_register(quern_ctx *ctx, const quern_op_def *def);

void qn_registry_retain(quern_op *op);
void qn_registry_release(quern_op *op);

#endif
