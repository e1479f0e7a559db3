/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_context.h: which CUDA context a call works in, and what its device is like. The caller's current context is as it was
 * after each pair of enter and leave, whatever happens in between. Knows no kernels. */
#ifndef QN_CUDA_CONTEXT_H
#define QN_CUDA_CONTEXT_H

#include "cuda/cuda_driver.h"

/* Where a thread is between enter and leave. */
typedef struct qn_cuda_scope {
  const qn_cuda_driver *driver;
  qn_cuda_device device;
  qn_cuda_context context; /* current */
  uint64_t id;             /* of the context: its address may have been another's before; 0: the driver has no such numbers */
  int32_t ordinal;
  int is_pushed;
} qn_cuda_scope;

/* Makes a context of device `ordinal` current: that of `stream` if somebody created it, else the caller's current one if it is
 * of that device, else the primary one, which is retained once and for good. stream: a CUstream; NULL, the legacy stream, the
 * thread's own: of no context. Errors: as qn_cuda_open; DEVICE (no such device, a stream of another one), MEMORY, DRIVER; then
 * there is nothing to leave. errno is kept. */
quern_status qn_cuda_enter(int32_t ordinal, void *stream, qn_cuda_scope *scope);
void qn_cuda_leave(const qn_cuda_scope *scope);

typedef struct qn_cuda_facts {
  int32_t capability; /* 10 major + minor: 90 */
  int32_t multiprocessors, threads_per_multiprocessor;
  int32_t l2_bytes;
  int32_t max_grid; /* blocks along x */
  char name[64];
} qn_cuda_facts;

/* Asked once per device; static. In no context. Errors as qn_cuda_enter. */
quern_status qn_cuda_device_facts(int32_t ordinal, const qn_cuda_facts **facts);

/* 1: `stream` is being captured, or a capture was lost on it, or the question is refused because of a capture elsewhere. The
 * legacy stream is the current context's. */
int qn_cuda_is_capturing(const qn_cuda_driver *driver, void *stream);

/* Around what a capture of another stream would forbid this thread, or be lost by, and which has nothing to do with streams:
 * loading code, making a primary context. */
int qn_cuda_relax(const qn_cuda_driver *driver);
void qn_cuda_unrelax(const qn_cuda_driver *driver, int kept);

#endif
