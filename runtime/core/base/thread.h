/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.h: the start of the library's own threads. Knows no locks. */
#ifndef QN_THREAD_H
#define QN_THREAD_H

#include <pthread.h>
#include <signal.h>

/* Starts a thread with all signals blocked. stack_bytes 0: the default size. Returns 0 on failure. */
static inline int qn_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg) {
  pthread_attr_t attributes;
  sigset_t all, kept;
  if (pthread_attr_init(&attributes)) return 0;
  if (stack_bytes) pthread_attr_setstacksize(&attributes, stack_bytes);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &kept);
  const int failed = pthread_create(thread, &attributes, run, arg);
  pthread_sigmask(SIG_SETMASK, &kept, NULL);
  pthread_attr_destroy(&attributes);
  return !failed;
}

#endif
