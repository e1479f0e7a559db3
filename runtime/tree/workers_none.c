/* SPDX-License-Identifier: Apache-2.0
 *
 * workers_none.c: no pool (workers.h): work runs on the caller's thread, or where the host's parallel_for runs it. */
#include "core/base/workers.h"

int32_t qn_workers_most(void) { return 1; }

int32_t qn_workers_limit(int32_t wanted) {
  (void)wanted;
  return 1;
}

int qn_workers_are_awake(void) { return 0; }

int qn_workers_run(const qn_log *log, int32_t n_threads, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  (void)log, (void)n_threads, (void)n, (void)body, (void)arg;
  return 0;
}
