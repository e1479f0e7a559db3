/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda.h: calls on tensors in CUDA memory: what the backends for them have in common, which are implemented above the core: in
 * the library by kernels that are compiled at run time, in a generated tree by those that nvcc has built. */
#ifndef QN_CUDA_H
#define QN_CUDA_H

#include "core/op/backend.h"
#include "core/simt/launch.h"

/* A call made ready: on its caller's stack, or in a plan (qn_run), where it is only read. */
typedef struct qn_cuda_run {
  const void *kernel; /* the backend's, as long as the op lives; NULL: it must look again at the launch */
  const void *detail; /* the backend's, likewise */
  qn_launch launch;   /* without addresses and parameters */
} qn_cuda_run;

/* Whether addresses are multiples of their items' sizes: no instruction of a GPU takes others. */
quern_status qn_cuda_check_addresses(const qn_decision *decision, const qn_ref *ref);

/* The whole of a kernel's arguments, with the first items' addresses, values or positions, and the parameters. */
void qn_cuda_arguments(const qn_decision *decision, const qn_cuda_run *run, const qn_ref *ref, const qn_params *params,
                       uint64_t args[QN_LAUNCH_ARGS]);

/* Moves the addresses to the next place of the dimensions over which the launch is repeated, at[0 ... repeat_rank), which is 0 to
 * begin with. 0: that was the last. */
int qn_cuda_next(const qn_decision *decision, const qn_launch *launch, int64_t *at, uint64_t *args);

/* qn_backend.explain where there are no elements. */
void qn_cuda_explain_empty(const qn_decision *decision, qn_strbuf *buf);

/* qn_backend.prepare by a function that fills what the caller has. */
quern_status qn_cuda_keep(quern_status (*prepare)(const qn_decision *decision, const quern_call *call, qn_cuda_run *run),
                          const qn_decision *decision, const quern_call *call, qn_run **run);

#endif
