/* SPDX-License-Identifier: Apache-2.0
 * tags: memory
 *
 * t572: .npz archives: what is written is found again, beyond 4 GiB too; archives that are cut short, changed in one byte, or lie in a
 * field: what is found lies in the file. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tools/quern/files/npz.c" /* a part of the program, which is no library */
#include "tap.h"

enum { N = 3, MOST = 4096 };
static const char *const names[N] = {"x", "weights", "z"};
static unsigned char image[MOST];
static int64_t image_size, data_at[N], directory_at;
static char path[256], why[WHY_SIZE];

/* An archive of N members of k + 5 bytes; as if `gap` bytes lay before the first, for its numbers alone. */
static void make_image(int64_t gap) {
  npz_member members[N];
  int64_t places[N];
  unsigned char *at = image;
  memset(members, 0, sizeof members);
  for (int k = 0; k < N; k++) {
    unsigned char bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    strcpy(members[k].name, names[k]);
    members[k].bytes = members[k].packed_bytes = k + 5;
    members[k].crc = npz_crc(0, bytes, (size_t)k + 5);
    places[k] = gap + (at - image);
    at += npz_format_local(&members[k], at);
    data_at[k] = gap + (at - image);
    memcpy(at, bytes, (size_t)k + 5);
    at += k + 5;
  }
  directory_at = at - image;
  for (int k = 0; k < N; k++) at += npz_format_entry(&members[k], places[k], at);
  at += npz_format_end(N, gap + directory_at, (at - image) - directory_at, at);
  image_size = at - image;
}

static int write_image(int64_t gap, int64_t size) {
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || pwrite(fd, image, (size_t)size, gap) != size) bail("%s cannot be written", path);
  return fd;
}

/* Looks for each name, none, and one that is not there. What is found must lie in the file. Returns how many were found. */
static int look(int fd, int64_t size) {
  static const char *const wanted[] = {"x", "weights", "z", "nothing", NULL};
  int n = 0;
  for (int k = 0; k < 5; k++) {
    npz_member member;
    why[0] = 0;
    const int good = npz_find(fd, size, wanted[k], "usual", &member, why);
    n += good;
    group_count(1);
    if (good && (member.data_at < 0 || member.packed_bytes < 0 || member.bytes < 0 || member.data_at > size || member.packed_bytes > size - member.data_at))
      group_fail("%lld bytes at %lld of a file of %lld", (long long)member.packed_bytes, (long long)member.data_at, (long long)size);
    if (!good && (!why[0] || strchr(why, '\n') || strlen(why) >= WHY_SIZE - 1)) group_fail("it says '%s'", why);
  }
  return n;
}

static void test_round_trip(int64_t gap, const char *what) {
  npz_member member;
  make_image(gap);
  const int fd = write_image(gap, image_size);
  for (int k = 0; k < N; k++) {
    ok(npz_find(fd, gap + image_size, k ? names[k] : NULL, names[k], &member, why) && member.data_at == data_at[k] && member.bytes == k + 5 &&
           strcmp(member.name, names[k]) == 0, "%s: %s is found where it is: %s", what, names[k], why);
  }
  ok(!npz_find(fd, gap + image_size, "q", "x", &member, why) && strstr(why, "no array q; it has x, weights, z"), "%s: another is not: %s", what, why);
  close(fd);
}

static void test_hostile(void) {
  rng r;
  make_image(0);
  group_begin("archives cut short");
  for (int64_t size = 0; size < image_size; size++) {
    const int fd = write_image(0, size);
    if (look(fd, size)) group_fail("%lld bytes of %lld are taken", (long long)size, (long long)image_size);
    close(fd);
  }
  group_end();
  group_begin("one byte is another");
  for (int64_t at = 0; at < image_size; at++) {
    static const unsigned char others[] = {0, 1, 0x7f, 0x80, 0xfe, 0xff};
    const unsigned char was = image[at];
    for (size_t k = 0; k < sizeof others; k++) {
      image[at] = others[k];
      const int fd = write_image(0, image_size);
      look(fd, image_size);
      close(fd);
    }
    image[at] = was;
  }
  group_end();
  rng_seed(&r, 572);
  group_begin("fields of the directory at random");
  for (int i = 0; i < 2000; i++) {
    make_image(0);
    for (int k = 0; k < 3; k++) {
      const int64_t at = directory_at + (int64_t)rng_below(&r, (uint64_t)(image_size - directory_at - 8));
      const uint64_t value = rng_below(&r, 3) ? rng_u64(&r) : rng_below(&r, 2) ? UINT64_MAX : 0;
      memcpy(image + at, &value, 1 + rng_below(&r, 8));
    }
    const int fd = write_image(0, image_size);
    look(fd, image_size);
    close(fd);
  }
  group_end();

  make_image(0);
  unsigned char *name = memmem(image + directory_at, (size_t)(image_size - directory_at), "weights.npy", 11);
  if (!name) bail("no name");
  memcpy(name, "\33[\xc2\x9bxyz", 7);
  npz_member member;
  const int fd = write_image(0, image_size);
  ok(!npz_find(fd, image_size, "q", "x", &member, why) && strstr(why, "it has x, ?[??xyz, z"), "what a terminal would obey is not shown: %s", why);
  close(fd);
}

int main(void) {
  snprintf(path, sizeof path, "%s/quern-t572-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
  is_int(npz_crc(0, "123456789", 9), 0xcbf43926, "the checksum of the digits");
  is_int(npz_crc(npz_crc(0, "1234", 4), "56789", 5), 0xcbf43926, "  in two parts");
  test_round_trip(0, "an archive");
  test_round_trip((int64_t)5 << 30, "beyond 5 GiB"); /* a hole in the file */
  test_hostile();
  unlink(path);
  return done_testing();
}
