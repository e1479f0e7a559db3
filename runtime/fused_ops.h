/* fused_ops.h: ops made at run time: expressions, and the ops of specs, which are expressions with a name of their own. Owns
 * what a context has above the core: its generator, its compiled code, its specs' ops. Implements core/fused.h's interface. */
#ifndef QN_FUSED_OPS_H
#define QN_FUSED_OPS_H

#include "core/fused.h"
#include "expression.h"
#include "jit.h"

/* The op of an expression; owned by the caller. */
quern_status qn_fused_ops_compile(quern_ctx *ctx, const char *text, quern_op **op);

/* Adds the ops of a spec to the context: all, or none. */
quern_status qn_fused_ops_load_spec(quern_ctx *ctx, const char *name, const char *text, size_t size);

/* The context's; made at first need. NULL for lack of memory. */
qn_jit *qn_fused_ops_jit(quern_ctx *ctx);

/* The C text of the kernel for contiguous operands of these dtypes (inputs, then outputs), as qn_generator_source gives it.
 * `op` is fused. */
quern_status qn_fused_ops_source(const quern_op *op, const uint8_t *dtypes, qn_bytes *source);

#endif
