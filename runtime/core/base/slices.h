/* SPDX-License-Identifier: Apache-2.0
 *
 * slices.h: work cut into slices, run by the library's thread pool or the host's. Knows no tensors. */
#ifndef QN_SLICES_H
#define QN_SLICES_H

#include <stdint.h>

#include "core/base/status.h"
#include "quern/quern.h"

typedef struct qn_slices qn_slices; /* a context's configuration for running slices */

/* Uses threads, parallel_for, host and log of the options; NULL: the defaults. parallel_for NULL: the pool of the process
 * (workers.h), which all contexts share. threads 0: QUERN_NUM_THREADS, else one for each core that this
 * process may use. Returns NULL for lack of memory. */
qn_slices *qn_slices_create(const quern_options *options);
/* NULL is allowed. The process's pool is not destroyed. */
void qn_slices_destroy(qn_slices *slices);
const qn_log *qn_slices_log(const qn_slices *slices); /* the context's */

/* The number of threads that a call would run on, with the caller's (at least 1). 1 inside a slice: nested calls run inline.
 * slices NULL, here and below: the caller's thread only. */
int32_t qn_slices_limit(const qn_slices *slices);

/* The number of slices for work that is worth `woken` ones (from 0) if threads must be woken. */
int32_t qn_slices_worth(const qn_slices *slices, int32_t woken);

/* The same for a call that begins now, for work that is worth `most` slices if threads are awake; the host's threads never are. */
int32_t qn_slices_now(const qn_slices *slices, int32_t woken, int32_t most);

/* Runs body(arg, i) once for each i in [0, n), on any threads, and returns when all are done. n may be larger than the
 * limit: slices are claimed one by one, so several for each thread balance the load. A thread begins with the same part of
 * [0, n) in every call with as many slices and threads, so its data may still be in its cache. Each slice runs in the default
 * floating point environment; the thread's own is restored afterwards. ARGUMENT: the host's parallel_for broke its promise; each
 * slice has been run once nevertheless. */
quern_status qn_slices_run(qn_slices *slices, int32_t n, void (*body)(void *arg, int64_t i), void *arg);

#endif
