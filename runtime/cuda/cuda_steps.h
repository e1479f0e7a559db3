/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_steps.h: an expression on a CUDA device while there is no kernel of its own: the interpreter's program, each step by a
 * kernel built ahead, over chunks of the nest, with what lies between them in the caller's workspace. Gives the bits of the
 * compiled kernel. Knows no compiler. */
#ifndef QN_CUDA_STEPS_H
#define QN_CUDA_STEPS_H

#include "core/op/decision.h"
#include "cuda/cuda_context.h"

/* How a decision goes by steps in a workspace of some size. */
typedef struct qn_cuda_chunks {
  int32_t n_steps;       /* kernels over one chunk */
  int64_t n, n_elements; /* chunks, elements of each but the last ones */
} qn_cuda_chunks;

/* NULL: every kernel that it takes is built for devices of this capability, and `bytes` of workspace hold a chunk worth its
 * launches. Else why not: a phrase, static. */
const char *qn_cuda_steps_refuse(const qn_decision *decision, int32_t capability, size_t bytes, qn_cuda_chunks *chunks);

/* The workspace beyond which more does not help; 0: none does, for the same reasons. */
size_t qn_cuda_steps_workspace(const qn_decision *decision, int32_t capability);

/* A run, in the scope's context; where it is not refused. args: the operands' addresses on the device, or the bits of values, as
 * kernels have them; NULL: only loads what it takes. Nothing is written where it fails, unless the driver does. Errors:
 * CAPTURING (`stream` is being captured, and not all of it is loaded), and those of loading and launching. */
quern_status qn_cuda_steps_run(const qn_decision *decision, const qn_cuda_facts *facts, const qn_cuda_scope *scope, void *stream,
                               const uint64_t *args, const qn_params *params, void *workspace, size_t bytes);

#endif
