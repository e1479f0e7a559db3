/* SPDX-License-Identifier: Apache-2.0
 *
 * workers.h: the process-wide pool of worker threads. Workers start at first need, block signals, and end after a second without work. The
 * process's end or the library's unloading joins them. Once the pool is in use, a forked child has no workers. A generated tree may lack this
 * file. Knows slices by their number only. */
#ifndef QN_WORKERS_H
#define QN_WORKERS_H

#include <stdint.h>

#include "core/base/status.h"

#define QN_WORKERS_MOST 256 /* threads of one call, the caller's included */

/* One thread for each core that this process may use. */
int32_t qn_workers_most(void);

/* The number of threads granted to a call that asks for `wanted`: at least 1, the caller's. */
int32_t qn_workers_limit(int32_t wanted);

/* Whether workers are worth using for a small call: one is spinning, or this was last asked less than ROW_NS (workers.c) ago. */
int qn_workers_are_awake(void);

/* Runs body(arg, i) once for each i in [0, n), on up to n_threads threads, the caller's included, and returns when all are done.
 * Returns 0 if there is no worker: then nothing has run. errno is kept. */
int qn_workers_run(const qn_log *log, int32_t n_threads, int32_t n, void (*body)(void *arg, int64_t i), void *arg);

#endif
