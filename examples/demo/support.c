/* SPDX-License-Identifier: Apache-2.0
 *
 * support.c: see support.h. */
#define _POSIX_C_SOURCE 200809L
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void fail(const char *what, const char *why) {
  fflush(stdout);
  fprintf(stderr, "quern-demo: %s: %s\n", what, why);
  exit(1);
}

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double times[N_RUNS]) {
  qsort(times, N_RUNS, sizeof *times, by_value);
  return times[N_RUNS / 2];
}
