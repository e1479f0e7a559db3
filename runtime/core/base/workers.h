/* SPDX-License-Identifier: Apache-2.0
 *
 * workers.h: the threads of the library's own, one pool for the process: made at first need, signals blocked, joined when the
 * process ends or the library is unloaded; a child forked after that first need runs alone. A generated tree may be without it. Knows
 * slices by their number only. */
#ifndef QN_WORKERS_H
#define QN_WORKERS_H

#include <stdint.h>

#include "core/base/log.h"

#define QN_WORKERS_MOST 256 /* threads of one call, the caller's included */

/* One thread for each core that this process may use. */
int32_t qn_workers_most(void);

/* How many threads a call may have that wants so many: at least 1, the caller's. */
int32_t qn_workers_limit(int32_t wanted);

/* Runs body(arg, i) once for each i in [0, n), on up to n_threads threads, the caller's included, and returns when all are done.
 * 0: there is no thread but the caller's, and nothing has run. errno is kept. */
int qn_workers_run(const qn_log *log, int32_t n_threads, int32_t n, void (*body)(void *arg, int64_t i), void *arg);

#endif
