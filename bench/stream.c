/* SPDX-License-Identifier: Apache-2.0
 *
 * stream.c: see stream.h. */
#include "stream.h"

#if defined(__x86_64__)

#include <immintrin.h>

int stream_is_there(void) { return __builtin_cpu_supports("avx2"); }

#define LOAD(k) _mm256_load_ps(s->in[k] + i)
#define LOOP(name, result)                                                             \
  __attribute__((target("avx2"))) void name(void *arg) {                               \
    const stream *s = arg;                                                             \
    for (int64_t i = 0; i < s->n; i += 8) _mm256_stream_ps(s->out + i, result);         \
    _mm_sfence();                                                                      \
  }
#define MULTIPLY_ADD _mm256_add_ps(_mm256_mul_ps(LOAD(0), LOAD(1)), LOAD(2))

#else

int stream_is_there(void) { return 0; }

#define LOOP(name, result) \
  void name(void *arg) { (void)arg; }

#endif

LOOP(stream_2, _mm256_add_ps(LOAD(0), LOAD(1)))
LOOP(stream_3, MULTIPLY_ADD)
LOOP(stream_4, _mm256_mul_ps(MULTIPLY_ADD, LOAD(3)))
