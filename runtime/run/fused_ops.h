/* fused_ops.h: ops made at run time: expressions, and the ops of specs, which are expressions with a name of their own; so are
 * built-in ones where their kernels are compiled.
 * Implements core/fused.h's interface. Knows of its context the generator and the compiled code, which must outlive the op. */
#ifndef QN_FUSED_OPS_H
#define QN_FUSED_OPS_H

#include "core/op/fused.h"
#include "core/simt/launch.h"
#include "lang/expression.h"
#include "toolchain/generator.h"
#include "jit/jit.h"

/* The op of an expression; owned by the caller, counted. */
quern_status qn_fused_ops_of_text(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, const char *text, quern_op **op);

/* An op of a spec, to be freed by qn_fused_ops_free. Takes `spec` in any case. digest: of the specs that it depends on. NULL for
 * lack of memory. */
quern_op *qn_fused_ops_of_spec(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, qn_spec_op *spec, qn_digest digest);
void qn_fused_ops_free(quern_op *op);

/* What a built-in op is for kernels that are compiled; to be freed likewise. NULL for lack of memory. */
quern_op *qn_fused_ops_of_builtin(const quern_op *op, qn_generator *generator, qn_jit *jit);

/* The code of a fused op's kernel for CUDA devices of that capability (90); as long as the op. may_ask 0: only what has been
 * asked for before. NULL: it has not, or for lack of memory. */
qn_code *qn_fused_ops_cuda_code(const quern_op *op, const qn_specialised *specialised, const qn_launch_form *form,
                                int32_t capability, int may_ask);

/* The built-in op whose kernels for these very dtypes compute all of it, given its parameters as they are; NULL: there is none. */
const qn_builtin *qn_fused_ops_builtin(const quern_op *op, const qn_specialised *specialised);

/* The C text of the kernel for contiguous operands of these dtypes (inputs, then outputs), as qn_generator_source gives it.
 * `op` is fused. */
quern_status qn_fused_ops_source(const quern_op *op, const uint8_t *dtypes, qn_bytes *source);

#endif
