/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.h: hand-written loops for large arrays: everything is read once, the result is written past the cache, and little is
 * computed. A lower bound for times out of cache; knows nothing of Quern. */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include <stdint.h>

typedef struct stream {
  const float *in[4]; /* aligned to 32 bytes, as out */
  float *out;
  int64_t n; /* a multiple of 8 */
} stream;

/* Whether this machine can run these loops. */
int stream_is_there(void);

/* arg: a stream. Two inputs: a + b; three: a * b + c; four: (a * b + c) * d. */
void stream_2(void *arg);
void stream_3(void *arg);
void stream_4(void *arg);

#endif
