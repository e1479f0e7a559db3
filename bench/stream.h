/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.h: what a person would write by hand for large arrays: everything read once and the result written past the cache,
 * with next to nothing computed. The floor of what is out of cache; knows nothing of Quern. */
#ifndef BENCH_STREAM_H
#define BENCH_STREAM_H

#include <stdint.h>

typedef struct stream {
  const float *in[4]; /* aligned to 32 bytes, as out */
  float *out;
  int64_t n; /* a multiple of 8 */
} stream;

/* Whether this machine can run them. */
int stream_is_there(void);

/* arg: a stream. Of two inputs a + b, of three a * b + c, of four (a * b + c) * d. */
void stream_2(void *arg);
void stream_3(void *arg);
void stream_4(void *arg);

#endif
