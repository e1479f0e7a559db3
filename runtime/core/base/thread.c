/* SPDX-License-Identifier: Apache-2.0
 *
 * thread.c: see thread.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_sigmask */
#endif
#include "core/base/thread.h"

#include <signal.h>

int qn_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *arg), void *arg) {
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

int qn_thread_shield(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

void qn_thread_unshield(int before) {
  int shielded;
  pthread_setcancelstate(before, &shielded);
}
