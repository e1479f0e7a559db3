/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_context.h: the CUDA context of a call, and the properties of its device. After each pair of enter and leave the
 * caller's current context is as it was before. Knows no kernels. */
#ifndef QN_CUDA_CONTEXT_H
#define QN_CUDA_CONTEXT_H

#include "cuda/cuda_driver.h"

/* The state of a thread between enter and leave. */
typedef struct qn_cuda_scope {
  const qn_cuda_driver *driver;
  qn_cuda_device device;
  qn_cuda_context context; /* current */
  uint64_t id;             /* of the context, since addresses are reused; 0: the driver has no context ids */
  int32_t ordinal;
  int is_pushed;
} qn_cuda_scope;

/* Makes a context of device `ordinal` current: the stream's if it is a created stream, else the caller's current one if it is
 * of that device, else the primary one, which is retained once and for good. stream: a CUstream; NULL, the legacy and the
 * per-thread stream have no context. Errors: as qn_cuda_open; DEVICE (no such device, a stream of another one), MEMORY,
 * DRIVER; then leave must not be called. errno is kept. */
quern_status qn_cuda_enter(int32_t ordinal, void *stream, qn_cuda_scope *scope);
void qn_cuda_leave(const qn_cuda_scope *scope);

typedef struct qn_cuda_facts {
  int32_t capability; /* 10 major + minor: 90 */
  int32_t multiprocessors, threads_per_multiprocessor;
  int32_t l2_bytes;
  int32_t max_grid; /* blocks along x */
  int32_t shared_per_multiprocessor; /* bytes */
  char name[64];
} qn_cuda_facts;

/* The device's properties, queried once; static. Needs no context. Errors as qn_cuda_enter. */
quern_status qn_cuda_device_facts(int32_t ordinal, const qn_cuda_facts **facts);

/* 1: `stream` is being captured, or its capture was invalidated, or the query is refused because of another capture. The
 * legacy stream is that of the current context. */
int qn_cuda_is_capturing(const qn_cuda_driver *driver, void *stream);

/* Relaxes the thread's capture mode around calls that are unrelated to streams (loading code, making a primary context):
 * otherwise a capture of another stream would forbid them, or be invalidated by them. */
int qn_cuda_relax(const qn_cuda_driver *driver);
void qn_cuda_unrelax(const qn_cuda_driver *driver, int kept);

#endif
