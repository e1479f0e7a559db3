/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_jit_cache: any bytes are an entry with all parts within them, or none; the same once their checksum is made right,
 * which a fuzzer does not hit by itself. Built from this file and runtime/{jit_cache,jit_environment,write_all,
 * core/log,core/environment}.c, with clang -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/base/digest.h"
#include "runtime/jit/jit_cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { DIGEST_AT = 40, HEADER_SIZE = 56 };

static int is_sane(const char *bytes, size_t size) {
  qn_cache_parts parts;
  if (!qn_jit_cache_parse(bytes, size, &parts)) return 0;
  if (parts.key != bytes + HEADER_SIZE || parts.check != parts.key + parts.key_size) abort();
  if (parts.value != parts.check + parts.check_size || parts.value + parts.value_size != bytes + size) abort();
  if (parts.key_size > size || parts.check_size > size || parts.value_size > size) abort();
  return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char *copy = malloc(size ? size : 1);
  if (!copy) return 0;
  memcpy(copy, bytes, size);
  is_sane(copy, size);
  if (size >= HEADER_SIZE) {
    const qn_digest digest = qn_digest_add(qn_digest_of(copy, DIGEST_AT), copy + HEADER_SIZE, size - HEADER_SIZE);
    for (int i = 0; i < 8; i++) {
      copy[DIGEST_AT + i] = (char)(uint8_t)(digest.high >> i * 8);
      copy[DIGEST_AT + 8 + i] = (char)(uint8_t)(digest.low >> i * 8);
    }
    if (is_sane(copy, size)) {
      copy[size / 2] ^= 1;
      if (is_sane(copy, size)) abort(); /* damage that is not noticed */
    }
  }
  free(copy);
  return 0;
}
