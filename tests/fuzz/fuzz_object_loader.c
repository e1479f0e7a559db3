/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_object_loader: any bytes are refused with a word or loaded; nothing is called. Built from this file,
 * object_loader.c and code_pages.c of runtime/toolchain, with clang -fsanitize=fuzzer,address,undefined. */
#include <stdint.h>
#include <stdlib.h>

#include "runtime/toolchain/object_loader.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  char why[100] = "";
  qn_loaded *loaded = qn_object_load(bytes, size, "k", why, sizeof why);
  if (!loaded) {
    if (!why[0]) abort();
    return 0;
  }
  const volatile uint8_t *code = qn_object_entry(loaded);
  (void)code[0]; /* must be readable */
  if (qn_object_size(loaded) % 4096) abort();
  qn_object_unload(loaded);
  return 0;
}
