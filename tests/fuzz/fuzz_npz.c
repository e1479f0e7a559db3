/* SPDX-License-Identifier: Apache-2.0
 *
 * fuzz_npz.c: libFuzzer's way into the reader of .npz archives: any bytes are a file. An array that is found must lie in it; a part and the
 * rest of its bytes must have the checksum of all. Its header is fuzz_npy's, and inflating zlib's. clang-19 -g -O1
 * -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all -D_GNU_SOURCE tests/fuzz/fuzz_npz.c -o fuzz_npz
 *   ./fuzz_npz -max_len=1024 NEW-FOLDER tests/fuzz/corpus/npz */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../tools/quern/files/npz.c"

#define CHECK(condition) \
  if (!(condition)) abort()

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const char *const names[] = {"x", "weights", NULL};
  const int fd = memfd_create("fuzz_npz", MFD_CLOEXEC);
  CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
  for (int k = 0; k < 3; k++) {
    npz_member member;
    char why[WHY_SIZE] = "";
    if (!npz_find(fd, (int64_t)size, names[k], "usual", &member, why)) {
      CHECK(why[0] && strlen(why) < WHY_SIZE && !strchr(why, '\n'));
      continue;
    }
    CHECK(member.data_at >= 0 && member.packed_bytes >= 0 && member.bytes >= 0 && member.data_at <= (int64_t)size);
    CHECK(member.packed_bytes <= (int64_t)size - member.data_at && strlen(member.name) < NPZ_NAME_SIZE);
    CHECK(!names[k] || strcmp(names[k], member.name) == 0);
    if (member.is_deflated) continue;
    CHECK(member.bytes == member.packed_bytes);
    const uint8_t *bytes = data + member.data_at;
    const size_t half = (size_t)member.bytes / 2;
    CHECK(npz_crc(npz_crc(0, bytes, half), bytes + half, (size_t)member.bytes - half) == npz_crc(0, bytes, (size_t)member.bytes));
  }
  close(fd);
  return 0;
}
