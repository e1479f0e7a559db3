/* SPDX-License-Identifier: Apache-2.0
 *
 * clock.h: the monotonic clock, for durations; and deadlines by the real-time clock, for waits on conditions and locks. */
#ifndef QN_CLOCK_H
#define QN_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline int64_t qn_clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t qn_clock_ms(void) { return qn_clock_ns() / 1000000; }

/* The deadline of pthread_cond_timedwait and pthread_mutex_timedlock that lies ms milliseconds ahead. */
static inline struct timespec qn_clock_deadline(int64_t ms) {
  struct timespec t;
  clock_gettime(CLOCK_REALTIME, &t);
  t.tv_sec += ms / 1000;
  t.tv_nsec += ms % 1000 * 1000000;
  return t.tv_nsec < 1000000000 ? t : (struct timespec){t.tv_sec + 1, t.tv_nsec - 1000000000};
}

#endif
