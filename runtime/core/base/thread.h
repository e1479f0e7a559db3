/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h: threads of the library's own, and keeping a host's thread from being cancelled. Knows no locks. */
#ifndef QN_THREAD_H
#define QN_THREAD_H

#include <pthread.h>
#include <stddef.h>

/* Starts a thread that takes none of the host's signals. stack_bytes 0: as much stack as threads have. 0: there is none. */
int qn_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg);

/* Until qn_thread_unshield is given what this returned, the calling thread is not cancelled: a lock that it waits with, or
 * what it has in hand for others, would be lost. Whoever cancels it meanwhile is heard at the first chance after that. */
int qn_thread_shield(void);
void qn_thread_unshield(int before);

#endif
