/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h: the start of the library's own threads, and the deferral of a thread's cancellation. Knows no locks. */
#ifndef QN_THREAD_H
#define QN_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread with all signals blocked. stack_bytes 0: the default size. Returns 0 on failure. */
int qn_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg);

/* Defers cancellation of the calling thread, so that it cannot end while it holds a lock or work of other threads. A pending
 * request takes effect at the first cancellation point after qn_thread_unshield, which takes the value returned here. */
int qn_thread_shield(void);
void qn_thread_unshield(int before);

#endif
