/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_steps.h: runs an expression on a CUDA device that has no kernel for it yet: the interpreter's program, each step by a
 * kernel built ahead, over chunks of the nest, with temporaries in the caller's workspace. Gives the bits of the
 * compiled kernel. Knows no compiler. */
#ifndef QN_CUDA_STEPS_H
#define QN_CUDA_STEPS_H

#include "core/op/decision.h"
#include "cuda/cuda_context.h"

/* The cost of a decision by steps in a workspace. */
typedef struct qn_cuda_chunks {
  int32_t n_steps;       /* kernels over one chunk */
  int64_t n, n_elements; /* number of chunks; elements of each, the last ones may have fewer */
} qn_cuda_chunks;

/* NULL: it can run by steps: all its kernels are built for this capability, and `bytes` of workspace hold a chunk that is worth
 * its launches. Else the reason, a static phrase. */
const char *qn_cuda_steps_refuse(const qn_decision *decision, int32_t capability, size_t bytes, qn_cuda_chunks *chunks);

/* The largest workspace that helps; 0: none does, for the same reasons. */
size_t qn_cuda_steps_workspace(const qn_decision *decision, int32_t capability);

/* Runs a decision that is not refused, in the scope's context. args: the operands' device addresses or the bits of by-value
 * scalars; NULL: only loads the kernels. On failure nothing is written, unless the driver failed. Errors: CAPTURING (`stream` is
 * being captured, and a kernel is not loaded), and those of loading and launching. */
quern_status qn_cuda_steps_run(const qn_decision *decision, const qn_cuda_facts *facts, const qn_cuda_scope *scope, void *stream,
                               const uint64_t *args, const qn_params *params, void *workspace, size_t bytes);

#endif
