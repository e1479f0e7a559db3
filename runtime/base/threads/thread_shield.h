/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_shield.h: the deferral of a thread's cancellation. */
#ifndef QN_THREAD_SHIELD_H
#define QN_THREAD_SHIELD_H

/* Defers cancellation of the calling thread, so that it cannot end while it holds a lock or work of other threads. A pending
 * request takes effect at the first cancellation point after qn_thread_unshield, which takes the value returned here. */
int qn_thread_shield(void);
void qn_thread_unshield(int before);

#endif
