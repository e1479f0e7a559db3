/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h: the functions that CUDA backends share. The backends are above the core: the library's compiles kernels at run
 * time, a generated tree's uses kernels built by nvcc. */
#ifndef QN_CUDA_H
#define QN_CUDA_H

#include "core/op/backend.h"
#include "core/simt/launcher.h"

/* A prepared call: on its caller's stack, or in a plan (qn_run), where it is constant. */
typedef struct qn_cuda_run {
  const void *kernel; /* the backend's kernel, valid as long as the op; NULL: the backend looks it up at the launch */
  const void *detail; /* the backend's data, valid as long as the op */
  qn_launch launch;   /* without addresses and parameters */
} qn_cuda_run;

/* Bit k: input k is a 0-d tensor in host memory that the device cannot read: it is passed by value. */
uint32_t qn_cuda_values(const qn_decision *decision);

/* Whether operand k is pinned host memory: its device address may differ. */
static inline int qn_cuda_is_pinned(const qn_decision *decision, int32_t k) {
  return decision->device_types[k] == kDLCUDAHost;
}

/* Checks that addresses are multiples of their items' sizes, since GPU loads and stores need that, and values fit an argument. */
quern_status qn_cuda_check_addresses(const qn_decision *decision, const qn_ref *ref);

/* Fills all arguments of a kernel: those of the launch, the first items' addresses, values or positions, and the parameters. */
void qn_cuda_arguments(const qn_decision *decision, const qn_cuda_run *run, const qn_ref *ref, const qn_params *params,
                       uint64_t args[QN_LAUNCH_ARGS]);

/* Moves the addresses to the next launch of a repeated one. at: the index in the repeated dimensions, [repeat_rank], initially
 * 0. Returns 0 after the last. */
int qn_cuda_next(const qn_decision *decision, const qn_launch *launch, int64_t *at, uint64_t *args);

/* Cuts a launch into several, if the call has the workspace for them; else there is one. items: the number that came with the kernel;
 * most_shared: the bytes of shared memory that its launches may ask for. */
void qn_cuda_cut(const qn_decision *decision, const qn_launch *launch, int32_t items, uint32_t most_shared, const quern_call *call,
                 qn_cuda_pieces *pieces);

/* The bytes of workspace that a launch of this form can use. */
size_t qn_cuda_workspace(const qn_decision *decision, const qn_launch_form *form);

/* Sets the arguments of launch i of these. Returns the number of its items. */
uint64_t qn_cuda_piece(const qn_cuda_pieces *pieces, int32_t i, const quern_call *call, const qn_launch *launch, uint64_t *args);

/* Decides a call for qn_backend.workspace. No elements: also for an op that runs its calls itself. */
quern_status qn_cuda_decide(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                            qn_decision *decision);

/* qn_backend.explain where there are no elements. */
void qn_cuda_explain_empty(const qn_decision *decision, qn_strbuf *buf);

/* Implements qn_backend.prepare by a function that fills the caller's qn_cuda_run. */
quern_status qn_cuda_keep(quern_status (*prepare)(const qn_decision *decision, const quern_call *call, qn_cuda_run *run),
                          const qn_decision *decision, const quern_call *call, qn_run **run);

#endif
