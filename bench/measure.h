/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.h: shared by all cases: the clock, medians, filled tensors, lines of output. Knows no ops. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <quern/quern.h>

/* Nanoseconds of a monotonic clock. */
double now(void);

/* The median; sorts the array. */
double median(double *times, int n);

/* The median of repeated timings, each of as many calls as take 200 us or more. */
typedef void measured(void *arg);
double median_ns(measured *f, void *arg);

/* Only cases with this in their name are run; "": all. */
extern const char *filter;
int is_wanted(const char *name);

/* A line of output: name, nanoseconds (or what the name says), bytes of the operands (or what the mode says). */
void report(const char *name, double ns, double bytes);

/* Prints quern_last_error and ends the program. */
_Noreturn void fail(void);

/* QUERN_BENCH_THREADS, else 1. */
int32_t threads(void);

/* The peak of the process's resident memory, without pages of files such as code. */
long peak_kilobytes(void);

typedef struct array {
  DLTensor t;
  int64_t shape[3], strides[3];
  void *memory; /* free() */
} array;

/* Of up to three dimensions, compact, with values near 1. `a` must stay where it is. */
void array_make(array *a, const char *dtype, int32_t ndim, int64_t n0, int64_t n1, int64_t n2);
double array_bytes(const array *a);

#endif
