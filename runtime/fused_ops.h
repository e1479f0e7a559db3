/* fused_ops.h: ops made at run time: expressions, and the ops of specs, which are expressions with a name of their own.
 * Implements core/fused.h's interface. Knows of its context the generator and the compiled code, which must outlive the op. */
#ifndef QN_FUSED_OPS_H
#define QN_FUSED_OPS_H

#include "core/fused.h"
#include "expression.h"
#include "generator.h"
#include "jit.h"

/* The op of an expression; owned by the caller, counted. */
quern_status qn_fused_ops_of_text(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, const char *text, quern_op **op);

/* An op of a spec, to be freed by qn_fused_ops_free. Takes `spec` in any case. digest: of the specs that it depends on. NULL for
 * lack of memory. */
quern_op *qn_fused_ops_of_spec(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, qn_spec_op *spec, qn_digest digest);
void qn_fused_ops_free(quern_op *op);

/* The C text of the kernel for contiguous operands of these dtypes (inputs, then outputs), as qn_generator_source gives it.
 * `op` is fused. */
quern_status qn_fused_ops_source(const quern_op *op, const uint8_t *dtypes, qn_bytes *source);

#endif
