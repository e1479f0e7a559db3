/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_ops.h: fused ops, made at run time of expressions, of the ops of specs (expressions with a name), and of built-in ops
 * with compiled kernels. Implements qn_fused of core/op/kind.h. Knows of its context only the generator and the
 * compiled code, which must outlive the op. */
#ifndef QN_FUSED_OPS_H
#define QN_FUSED_OPS_H

#include "core/op/decision.h"
#include "jit/jit.h"
#include "run/fused/specialised.h"
#include "toolchain/generator.h"

/* The op of an expression; owned by the caller, counted. */
quern_status qn_fused_ops_of_text(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, const char *text, quern_op **op);

/* Sets decision->specialised for these dtypes (inputs, then outputs), which it checks, and the conversion of parameters. */
quern_status qn_fused_ops_specialise(const quern_op *op, const uint8_t *dtypes, qn_decision *decision);

/* An op of a spec, to be freed by qn_fused_ops_free. Takes ownership of `spec`, on failure too. digest: of the specs that it
 * depends on. NULL for lack of memory. */
quern_op *qn_fused_ops_of_spec(quern_ctx *ctx, qn_generator *generator, qn_jit *jit, qn_spec_op *spec, qn_digest digest);
void qn_fused_ops_free(quern_op *op);

/* The fused op that compiles kernels for a built-in op; to be freed likewise. NULL for lack of memory. */
quern_op *qn_fused_ops_of_builtin(const quern_op *op, qn_generator *generator, qn_jit *jit);

/* The built-in op that computes the whole specialisation, with kernels of exactly these dtypes and the same parameters; NULL:
 * there is none. */
const qn_builtin *qn_fused_ops_builtin(const quern_op *op, const qn_specialised *specialised);

/* The C text of the kernel for contiguous operands of these dtypes (inputs, then outputs); see qn_generator_source. `op` is
 * fused. */
quern_status qn_fused_ops_source(const quern_op *op, const uint8_t *dtypes, qn_bytes *source);

#endif
