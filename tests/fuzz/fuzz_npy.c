/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_npy.c: libFuzzer's way into the .npy reader: any bytes are a file. What is taken must add up, and must be read
 * again from the header that would be written for it. clang-19 -g -O1 -fsanitize=fuzzer,address,undefined
 * -fno-sanitize-recover=all -D_GNU_SOURCE tests/fuzz/fuzz_npy.c -o fuzz_npy
 *   ./fuzz_npy -max_len=512 -dict=tests/fuzz/npy.dict NEW-FOLDER tests/fuzz/corpus/npy */
#include <stdlib.h>
#include <string.h>

#include "../../tools/quern/files/npy.c"

#define CHECK(condition) \
  if (!(condition)) abort()

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  npy_header header, again;
  char why[WHY_SIZE] = "", text[NPY_FORMAT_SIZE];
  if (!npy_parse(data, size, (int64_t)size, &header, why)) {
    CHECK(why[0] && strlen(why) < WHY_SIZE && !strchr(why, '\n'));
    /* The same header before a file as long as it says. */
    if (strncmp(why, "truncated: its header says", 26) != 0 && strncmp(why, "too long: its header says", 25) != 0)
      return 0;
    CHECK(npy_parse(data, size, header.data_offset + header.data_bytes, &header, why));
  } else {
    CHECK(header.data_offset + header.data_bytes == (int64_t)size);
  }
  __int128 bytes = header.item_bytes;
  for (int32_t k = 0; k < header.ndim; k++) {
    CHECK(header.shape[k] >= 0);
    bytes *= header.shape[k];
  }
  CHECK(header.ndim >= 0 && header.ndim <= NPY_MAX_NDIM && bytes == header.data_bytes);
  CHECK(header.n_items * header.item_bytes == header.data_bytes && strlen(header.descr) < NPY_DESCR_SIZE);
  const size_t n = npy_format(header.kind, header.item_bytes, header.ndim, header.shape, text);
  CHECK(n <= sizeof text && n % NPY_ALIGNMENT == 0);
  CHECK(npy_parse(text, n, (int64_t)n + header.data_bytes, &again, why));
  CHECK(again.kind == header.kind && again.item_bytes == header.item_bytes && again.ndim == header.ndim &&
        !again.is_fortran);
  CHECK(memcmp(again.shape, header.shape, sizeof header.shape) == 0 && again.data_bytes == header.data_bytes);
  return 0;
}
