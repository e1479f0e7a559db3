/* SPDX-License-Identifier: Apache-2.0
 *
 * extension.h: the part of a context above the core: its options, its generator, its compiled code, the ops of its specs. All
 * but the options is made at first need. Knows no tensors. */
#ifndef QN_EXTENSION_H
#define QN_EXTENSION_H

#include "core/op/decision.h"
#include "jit/jit.h"

/* As qn_above_table has them. */
void *qn_extension_create(quern_ctx *ctx, const quern_options *options);
void qn_extension_destroy(void *extension);
quern_status qn_extension_define(quern_ctx *ctx, const quern_op_def *def);
quern_status qn_extension_find(quern_ctx *ctx, const char *name, quern_op **op);

/* The options of a context, with copies of their strings; all 0 by default. */
const quern_options *qn_extension_options(const quern_ctx *ctx);

/* The context's. NULL for lack of memory. */
qn_jit *qn_extension_jit(quern_ctx *ctx);

/* Drops its compiles that have not begun. */
void qn_extension_cancel(quern_ctx *ctx);

/* The op of an expression; owned by the caller. */
quern_status qn_extension_compile(quern_ctx *ctx, const char *text, quern_op **op);

/* The fused op that compiles kernels for a built-in op; valid as long as its context. As qn_backend.stand_in. */
quern_status qn_extension_stand_in(const quern_op *op, const uint8_t *dtypes, qn_decision *decision);

/* Adds the ops of a spec to the context: all, or none. The derivatives of bodies come when they are first found. */
quern_status qn_extension_load_spec(quern_ctx *ctx, const char *name, const char *text, size_t size);

#endif
