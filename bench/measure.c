/* SPDX-License-Identifier: Apache-2.0
 *
 * measure.c: see measure.h. */
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

double median(double *times, int n) {
  qsort(times, (size_t)n, sizeof times[0], ascending);
  return times[n / 2];
}

double median_ns(measured *f, void *arg) {
  enum { MOST = 101 };
  double times[MOST];
  int n = 0;
  long calls = 1;
  f(arg);
  for (;;) {
    double start = now();
    for (long i = 0; i < calls; i++) f(arg);
    double took = now() - start;
    if (took >= 200e3) break;
    calls = took < 20e3 ? calls * 10 : (long)((double)calls * 220e3 / took) + 1;
  }
  for (double start = now(); n < MOST && (n < 9 || now() - start < 150e6); n++) {
    double begin = now();
    for (long i = 0; i < calls; i++) f(arg);
    times[n] = (now() - begin) / (double)calls;
  }
  return median(times, n);
}

const char *filter = "";
int is_wanted(const char *name) { return strstr(name, filter) != NULL; }

void report(const char *name, double ns, double bytes) {
  printf("%s\t%.2f\t%.0f\n", name, ns, bytes);
  fflush(stdout);
}

void fail(void) {
  fprintf(stderr, "quern-bench: %s\n", quern_last_error());
  exit(1);
}

int32_t threads(void) {
  const char *text = getenv("QUERN_BENCH_THREADS");
  return text ? atoi(text) : 1;
}

long peak_kilobytes(void) {
  FILE *status = fopen("/proc/self/status", "r");
  char line[256];
  long most = 0, files = 0;
  while (status && fgets(line, sizeof line, status)) {
    if (!strncmp(line, "VmHWM:", 6)) most = atol(line + 6);
    if (!strncmp(line, "RssFile:", 8)) files = atol(line + 8);
  }
  if (status) fclose(status);
  return most - files;
}

/* ---- Tensors ---- */

static DLDataType dtype_of(const char *name) {
  DLDataType d = {kDLFloat, 32, 1};
  if (name[0] == 'i') d.code = kDLInt;
  if (name[0] == 'u') d.code = kDLUInt;
  if (name[0] == 'b') d.code = !strcmp(name, "bool") ? kDLBool : kDLBfloat;
  d.bits = d.code == kDLBool ? 8 : d.code == kDLBfloat ? 16 : (uint8_t)atoi(name + 1);
  return d;
}

void array_make(array *a, const char *dtype, int32_t ndim, int64_t n0, int64_t n1, int64_t n2) {
  int64_t n[3] = {n0, n1, n2}, count = 1;
  memset(a, 0, sizeof *a);
  for (int d = ndim - 1; d >= 0; d--) {
    a->shape[d] = n[d];
    a->strides[d] = count;
    count *= n[d];
  }
  a->t = (DLTensor){NULL, {kDLCPU, 0}, ndim, dtype_of(dtype), a->shape, a->strides, 0};
  size_t size = (size_t)count * a->t.dtype.bits / 8;
  if (posix_memalign(&a->memory, 1 << 21, size + 64)) abort();
  madvise(a->memory, size, MADV_HUGEPAGE); /* as NumPy and PyTorch do for large arrays */
  a->t.data = a->memory;
  for (int64_t i = 0; i < count; i++) { /* values near 1, in every format */
    double v = 0.25 + (double)(i % 1000) / 600.0;
    float f = (float)v;
    uint32_t u;
    memcpy(&u, &f, 4);
    if (a->t.dtype.code == kDLBfloat) ((uint16_t *)a->memory)[i] = (uint16_t)(u >> 16);
    else if (a->t.dtype.code == kDLFloat && a->t.dtype.bits == 16)
      ((uint16_t *)a->memory)[i] = (uint16_t)(((u >> 13) & 0x3ff) | ((((u >> 23) & 0xff) - 112) << 10));
    else if (a->t.dtype.code == kDLFloat && a->t.dtype.bits == 32) ((float *)a->memory)[i] = f;
    else if (a->t.dtype.code == kDLFloat) ((double *)a->memory)[i] = v;
    else if (a->t.dtype.bits == 64) ((int64_t *)a->memory)[i] = i % 100;
    else if (a->t.dtype.bits == 32) ((int32_t *)a->memory)[i] = (int32_t)(i % 100);
    else ((uint8_t *)a->memory)[i] = (uint8_t)(i % 2);
  }
}

double array_bytes(const array *a) {
  double n = a->t.dtype.bits / 8.0;
  for (int d = 0; d < a->t.ndim; d++) n *= (double)a->shape[d];
  return n;
}
