/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_shield.c: see thread_shield.h. */
#include "base/threads/thread_shield.h"

#include <pthread.h>

int qn_thread_shield(void) {
  int before = PTHREAD_CANCEL_ENABLE;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
  return before;
}

void qn_thread_unshield(int before) {
  int shielded;
  pthread_setcancelstate(before, &shielded);
}
