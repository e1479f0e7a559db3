/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz.h: what the structure-aware targets share: choices that are read from the fuzzer's bytes, contexts that interpret and that
 * compile, and what every refusal must be. A target is one function, LLVMFuzzerTestOneInput; t298 calls it by another name. */
#ifndef QUERN_TESTS_FUZZ_H
#define QUERN_TESTS_FUZZ_H

#include "tensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

#define REQUIRE(condition, ...) \
  do { \
    if (!(condition)) { \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__); \
      fputc('\n', stderr); \
      abort(); \
    } \
  } while (0)

/* A context that interprets, or one that compiles before the first run; of two threads, without a disk cache. */
UNUSED static quern_ctx *fuzz_ctx(int32_t jit) {
  static quern_ctx *made[4];
  if (!made[jit]) {
    /* What no build of the targets has; QUERN_CACHE_DIR is not read where cache_dir is given. */
    const quern_options options = {.size = sizeof options, .jit = jit, .threads = 2, .cache_dir = "", .kernel_memory_limit = 1 << 22};
    REQUIRE(quern_ctx_create(&options, &made[jit]) == QUERN_OK, "%s", quern_last_error());
  }
  return made[jit];
}

/* A status of the list, with a sentence. */
UNUSED static void check_refused(quern_status status) {
  REQUIRE(status < 0 && status >= QUERN_E_CAPTURING, "status %d", status);
  REQUIRE(quern_last_error()[0] && strlen(quern_last_error()) < 1024, "status %d: no sentence", status);
}

#endif
