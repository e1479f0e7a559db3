/* SPDX-License-Identifier: Apache-2.0
 *
 * fake_cuda.h: what a test can ask of the fake driver (libcuda.so.1 and libnvrtc.so.13 in a folder of the build, for
 * QUERN_CUDA_PATH), by dlsym, and what the two have in common. fake_cuda.c says what the fakes do.
 *
 * Variables, read when the driver is first called: FAKE_CUDA_DEVICES (2), FAKE_CUDA_VERSION (13000),
 * FAKE_CUDA_MISSING=cuX,cuY: cuGetProcAddress does not know these; FAKE_CUDA_LOG=file: calls are appended there, too;
 * FAKE_CUDA_FAIL: a plan of failures, function:nth:CODE with commas between them: the nth call of a function (or `*`: of any)
 * gives CODE (OUT_OF_MEMORY); nth+: and all later ones, too. FAKE_CUDA_SLOW=function: takes 50 ms before it begins.
 * FAKE_NVRTC_VERSION (13.0), FAKE_NVRTC_FAIL=function:nth:NUMBER, nth+ likewise,
 * FAKE_NVRTC_ARCHS=n: it knows the first n of its chips, FAKE_NVRTC_UNKNOWN=option: not this one. */
#ifndef QUERN_TESTS_FAKE_CUDA_H
#define QUERN_TESTS_FAKE_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef const char *fake_cuda_log_function(void);                /* "fake_cuda_log": lines "cuMemAlloc 4096";
    until the next call */
typedef void fake_cuda_clear_function(void);                     /* "fake_cuda_clear": empties the log, counts calls anew */
typedef int fake_cuda_count_function(const char *function);      /* "fake_cuda_count": calls since then; "*": of all */
typedef void fake_cuda_plan_function(const char *plan);          /* "fake_cuda_plan": another plan instead; counts calls anew */

/* The head of what fake NVRTC makes; a shared object follows. */
typedef struct fake_cubin {
  char magic[16]; /* FAKE_CUBIN_MAGIC */
  uint64_t text_hash; /* fake_hash of the source */
  uint64_t size;
  uint32_t arch, is_ptx; /* 90; 1: for all chips from that one on */
} fake_cubin;
#define FAKE_CUBIN_MAGIC "quern fake cubin"

static inline uint64_t fake_hash(const char *text) { /* FNV-1a */
  uint64_t h = 0xcbf29ce484222325u;
  for (; *text; text++) h = (h ^ (unsigned char)*text) * 0x100000001b3u;
  return h;
}

#endif
