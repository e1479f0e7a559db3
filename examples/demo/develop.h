/* SPDX-License-Identifier: Apache-2.0
 *
 * develop.h: the demo's second half: the same work as one expression that libquern is given as text at run time. */
#ifndef DEMO_DEVELOP_H
#define DEMO_DEVELOP_H

#include <stdint.h>

#include <quern/quern.h>

typedef struct develop_job {
  const char *spec;         /* the file of the demo's own op */
  const char *out;          /* an existing folder; a disk cache is made there, and removed */
  DLTensor *picture, *gain; /* what goes in */
  DLTensor *result;         /* what comes out; cleared before each way of computing it */
  double exposure;
  uint32_t crc; /* that every result must have */
} develop_job;

/* A way to compute the whole picture, with all threads and with one. */
typedef struct develop_way {
  const char *title;
  void (*run[2])(void *arg); /* NULL: there is none */
  void *arg[2];
} develop_way;

/* Shows the expression, checks its results, and times it in turn with the other ways (at most 8; the first is Quern's op
 * by op). 0: all results are right, or what is left out was said with its reason; 1: one is wrong. */
int develop_show(const develop_job *job, const develop_way *others, int n_others);

#endif
