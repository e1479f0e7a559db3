/* SPDX-License-Identifier: Apache-2.0
 *
 * idle.h: what idle threads of the library do. A thread ends after a second without work. If the main thread has left by pthread_exit and
 * only threads of the library remain, they no longer block the signals that end the process. */
#ifndef QN_IDLE_H
#define QN_IDLE_H

#include <pthread.h>

/* Notes which signals the calling thread blocks. For threads of the host that have work for the library's. */
void qn_idle_note_signals(void);

/* Gives the calling thread, one of the library's, a name by which it is known as such. */
void qn_idle_name_thread(void);

/* Waits on a condition. Returns 0 after a second without a signal. */
int qn_idle_wait(pthread_cond_t *condition, pthread_mutex_t *lock);

/* Waits on a condition, or a moment, for other threads of the library. If there are no others in the process any more, this one no longer
 * blocks the signals that end a process, as far as the host's thread (qn_idle_note_signals) did not. */
void qn_idle_watch(pthread_cond_t *condition, pthread_mutex_t *lock);
void qn_idle_poll(void); /* the same without waiting */

#endif
