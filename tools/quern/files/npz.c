/* SPDX-License-Identifier: Apache-2.0
 *
 * npz.c: see npz.h. Records are those of PKWARE's APPNOTE: little-endian, without padding. */
#include "npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reading.h"

#define LOCAL 0x04034b50u
#define ENTRY 0x02014b50u
#define END 0x06054b50u
#define END64 0x06064b50u
#define LOCATOR64 0x07064b50u
enum { LOCAL_BYTES = 30, ENTRY_BYTES = 46, END_BYTES = 22, END64_BYTES = 56, LOCATOR64_BYTES = 20, MOST_COMMENT = 65535 };
#define MOST_DIRECTORY ((int64_t)64 << 20)
#define MOST_RATIO 1032 /* of deflate: what a byte can become */
#define SMALL 0xffffffffu

/* ---- Numbers ---- */

static uint64_t number(const unsigned char *at, int bytes) {
  uint64_t value = 0;
  for (int k = bytes - 1; k >= 0; k--) value = value << 8 | at[k];
  return value;
}

static unsigned char *put(unsigned char *at, int bytes, uint64_t value) {
  for (int k = 0; k < bytes; k++) *at++ = (unsigned char)(value >> 8 * k);
  return at;
}

/* Eight bytes a step; table[k][b]: the CRC of the byte b and k zeros. */
uint32_t npz_crc(uint32_t crc, const void *bytes, size_t size) {
  static uint32_t table[8][256];
  static int is_made;
  const unsigned char *at = bytes;
  for (uint32_t b = 0; b < 256 && !is_made; b++) {
    uint32_t c = b;
    for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    table[0][b] = c;
  }
  for (int k = 1; k < 8 && !is_made; k++)
    for (int b = 0; b < 256; b++) table[k][b] = table[k - 1][b] >> 8 ^ table[0][table[k - 1][b] & 255];
  is_made = 1;
  crc = ~crc;
  for (; size >= 8; size -= 8, at += 8) {
    const uint64_t word = number(at, 8) ^ crc;
    crc = 0;
    for (int k = 0; k < 8; k++) crc ^= table[7 - k][word >> 8 * k & 255];
  }
  while (size--) crc = crc >> 8 ^ table[0][(crc ^ *at++) & 255];
  return ~crc;
}

/* ---- Reading ---- */

static int read_at(int fd, int64_t offset, void *memory, size_t size, char *why) {
  size_t got;
  if (!read_bytes(fd, offset, memory, size, &got, why)) return 0;
  return got == size ? 1 : refuse(why, "truncated: the archive ends too early");
}

/* Where the directory is, and its size, from the end of the file. */
static int find_directory(int fd, int64_t file_bytes, int64_t *at, int64_t *bytes, char *why) {
  const int64_t most = END_BYTES + MOST_COMMENT, size = file_bytes < most ? file_bytes : most;
  unsigned char *tail = malloc((size_t)size + 1), wide[END64_BYTES];
  int64_t k = size - END_BYTES;
  if (!tail) return refuse(why, "out of memory");
  const int is_read = read_at(fd, file_bytes - size, tail, (size_t)size, why);
  if (!is_read) k = -1;
  while (k >= 0 && number(tail + k, 4) != END) k--;
  const int64_t end_at = file_bytes - size + k;
  *bytes = k >= 0 ? (int64_t)number(tail + k + 12, 4) : 0;
  *at = k >= 0 ? (int64_t)number(tail + k + 16, 4) : 0;
  int64_t wide_at = -1;
  if (k >= LOCATOR64_BYTES && number(tail + k - LOCATOR64_BYTES, 4) == LOCATOR64)
    wide_at = (int64_t)(number(tail + k - LOCATOR64_BYTES + 8, 8) & INT64_MAX);
  free(tail);
  if (!is_read) return 0;
  if (k < 0) return refuse(why, "this is no whole .npz archive: its directory is missing; is it truncated?");
  int64_t limit = end_at;
  if (wide_at >= 0) {
    if (wide_at > end_at - LOCATOR64_BYTES - END64_BYTES) return refuse(why, "its archive's end is not where it says");
    if (!read_at(fd, wide_at, wide, sizeof wide, why)) return 0;
    if (number(wide, 4) != END64) return refuse(why, "its archive's end is not where it says");
    *bytes = (int64_t)(number(wide + 40, 8) & INT64_MAX);
    *at = (int64_t)(number(wide + 48, 8) & INT64_MAX);
    limit = wide_at;
  }
  if (*at > limit || *bytes > limit - *at) return refuse(why, "its archive's directory is not in the file");
  if (*bytes > MOST_DIRECTORY) return refuse(why, "its archive's directory has %lld bytes; no arrays need that many", (long long)*bytes);
  return 1;
}

/* A field that a short record has, or the extension where that says so; *extra moves on. 0: it is not there. */
static int wide_number(uint64_t small, const unsigned char **extra, const unsigned char *end, int64_t *value) {
  *value = (int64_t)small;
  if (small != SMALL) return 1;
  if (end - *extra < 8) return 0;
  const uint64_t wide = number(*extra, 8);
  *extra += 8;
  *value = (int64_t)wide;
  return wide <= INT64_MAX;
}

/* One record of the directory, of which `left` bytes are left. *used: its bytes; *local_at: of the record before its bytes. */
static int read_entry(const unsigned char *at, int64_t left, npz_member *member, int64_t *local_at, int64_t *used, int *is_odd, char *why) {
  if (left < ENTRY_BYTES || number(at, 4) != ENTRY) return refuse(why, "its archive's directory is damaged");
  const int64_t name_size = (int64_t)number(at + 28, 2), extra_size = (int64_t)number(at + 30, 2), comment = (int64_t)number(at + 32, 2);
  *used = ENTRY_BYTES + name_size + extra_size + comment;
  if (*used > left) return refuse(why, "its archive's directory is damaged");
  const char *name = (const char *)at + ENTRY_BYTES;
  const unsigned char *extra = at + ENTRY_BYTES + name_size, *end = extra + extra_size, *wide = end, *wide_end = end;
  int64_t shown = name_size > 4 && memcmp(name + name_size - 4, ".npy", 4) == 0 ? name_size - 4 : name_size;
  for (; end - extra >= 4; extra += 4 + number(extra + 2, 2)) {
    if ((int64_t)number(extra + 2, 2) > end - extra - 4) break;
    if (number(extra, 2) != 1) continue;
    wide = extra + 4;
    wide_end = wide + number(extra + 2, 2);
    break;
  }
  if (!wide_number(number(at + 24, 4), &wide, wide_end, &member->bytes) || !wide_number(number(at + 20, 4), &wide, wide_end, &member->packed_bytes) ||
      !wide_number(number(at + 42, 4), &wide, wide_end, local_at))
    return refuse(why, "its archive's directory is damaged");
  const uint64_t method = number(at + 10, 2);
  *is_odd = (int)(number(at + 8, 2) & 1) || (method != 0 && method != 8); /* encrypted, or of another method */
  member->is_deflated = method == 8;
  member->crc = (uint32_t)number(at + 16, 4);
  if (shown >= NPZ_NAME_SIZE) shown = NPZ_NAME_SIZE - 1;
  memcpy(member->name, name, (size_t)shown);
  member->name[shown] = 0;
  for (unsigned char *c = (unsigned char *)member->name; *c; c++) {
    if (*c < ' ' || *c == 0x7f) *c = '?';
    if (*c == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0) *c = c[1] = '?'; /* control characters in UTF-8, which terminals obey, too */
  }
  return 1;
}

/* Checks what the directory says of the chosen one by its own record, and finds its bytes. */
static int find_bytes(int fd, int64_t limit, int64_t local_at, int is_odd, npz_member *member, char *why) {
  unsigned char local[LOCAL_BYTES];
  if (is_odd) return refuse(why, "its array %.60s is encrypted, or packed in a way that NumPy does not write", member->name);
  if (local_at > limit - LOCAL_BYTES) return refuse(why, "its array %.60s is not in the file", member->name);
  if (!read_at(fd, local_at, local, sizeof local, why)) return 0;
  if (number(local, 4) != LOCAL) return refuse(why, "its array %.60s is not where its directory says", member->name);
  member->data_at = local_at + LOCAL_BYTES + (int64_t)number(local + 26, 2) + (int64_t)number(local + 28, 2);
  if (member->data_at > limit || member->packed_bytes > limit - member->data_at)
    return refuse(why, "its array %.60s is not in the file", member->name);
  if (!member->is_deflated && member->bytes != member->packed_bytes)
    return refuse(why, "its array %.60s has two sizes", member->name);
  if (member->is_deflated && member->bytes / MOST_RATIO > member->packed_bytes)
    return refuse(why, "its array %.60s is said to be larger than its packed bytes can become", member->name);
  return 1;
}

int npz_find(int fd, int64_t file_bytes, const char *name, const char *usual, npz_member *member, char why[WHY_SIZE]) {
  int64_t directory_at = 0, bytes = 0, used = 0, local_at = 0, chosen_at = 0;
  if (!find_directory(fd, file_bytes, &directory_at, &bytes, why)) return 0;
  unsigned char *directory = malloc((size_t)bytes + 1);
  if (!directory) return refuse(why, "out of memory");
  int good = read_at(fd, directory_at, directory, (size_t)bytes, why), n = 0, is_found = 0, is_odd = 0, chosen_is_odd = 0;
  char names[160] = "";
  npz_member entry;
  for (int64_t at = 0; good && at < bytes && !is_found; at += used) {
    good = read_entry(directory + at, bytes - at, &entry, &local_at, &used, &is_odd, why);
    if (!good) break;
    is_found = strcmp(entry.name, name ? name : usual) == 0;
    const size_t length = strlen(names);
    snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", entry.name);
    if (is_found || (n++ == 0 && !name)) {
      *member = entry;
      chosen_at = local_at;
      chosen_is_odd = is_odd;
    }
  }
  free(directory);
  if (!good) return 0;
  if (!is_found && (name || n != 1)) {
    if (n == 0) return refuse(why, "this archive has no arrays");
    return refuse(why, "this archive has no array %.60s; it has %s", name ? name : usual, names);
  }
  return find_bytes(fd, directory_at, chosen_at, chosen_is_odd, member, why);
}

/* ---- Writing ---- */

/* What both records of a file have, from the version on that is needed to read it. */
static unsigned char *put_facts(unsigned char *at, const npz_member *member, int is_wide, int extra) {
  at = put(at, 2, is_wide ? 45 : 20);
  at = put(at, 2, 0x0800); /* names are UTF-8 */
  at = put(at, 2, member->is_deflated ? 8 : 0);
  at = put(at, 4, 0x00210000); /* 1980-01-01, as NumPy writes: no time */
  at = put(at, 4, member->crc);
  at = put(at, 4, is_wide ? SMALL : (uint64_t)member->packed_bytes);
  at = put(at, 4, is_wide ? SMALL : (uint64_t)member->bytes);
  at = put(at, 2, strlen(member->name) + 4);
  return put(at, 2, (uint64_t)extra);
}

static unsigned char *put_name(unsigned char *at, const npz_member *member) {
  const size_t n = strlen(member->name);
  memcpy(at, member->name, n);
  memcpy(at + n, ".npy", 4);
  return at + n + 4;
}

size_t npz_format_local(const npz_member *member, unsigned char record[NPZ_RECORD_SIZE]) {
  unsigned char *at = put_facts(put(record, 4, LOCAL), member, 1, 20); /* wide at any size: so its length is known before */
  at = put(put(put_name(at, member), 2, 1), 2, 16);
  at = put(put(at, 8, (uint64_t)member->bytes), 8, (uint64_t)member->packed_bytes);
  return (size_t)(at - record);
}

size_t npz_format_entry(const npz_member *member, int64_t local_at, unsigned char record[NPZ_RECORD_SIZE]) {
  const int is_wide = member->bytes >= SMALL || member->packed_bytes >= SMALL || local_at >= SMALL;
  unsigned char *at = put(put(record, 4, ENTRY), 2, 45 | 3 << 8); /* made on Unix */
  at = put_facts(at, member, is_wide, is_wide ? 28 : 0);
  at = put(put(put(at, 2, 0), 2, 0), 2, 0); /* no comment, one disk, no text */
  at = put(at, 4, 0600u << 16);
  at = put_name(put(at, 4, is_wide ? SMALL : (uint64_t)local_at), member);
  if (is_wide) {
    at = put(put(at, 2, 1), 2, 24);
    at = put(put(put(at, 8, (uint64_t)member->bytes), 8, (uint64_t)member->packed_bytes), 8, (uint64_t)local_at);
  }
  return (size_t)(at - record);
}

size_t npz_format_end(int n, int64_t directory_at, int64_t directory_bytes, unsigned char record[NPZ_RECORD_SIZE]) {
  const int is_wide = directory_at >= SMALL;
  unsigned char *at = record;
  if (is_wide) {
    at = put(put(put(put(at, 4, END64), 8, END64_BYTES - 12), 2, 45 | 3 << 8), 2, 45);
    at = put(put(at, 8, 0), 8, (uint64_t)n); /* both disks are 0 */
    at = put(put(put(at, 8, (uint64_t)n), 8, (uint64_t)directory_bytes), 8, (uint64_t)directory_at);
    at = put(put(put(put(at, 4, LOCATOR64), 4, 0), 8, (uint64_t)(directory_at + directory_bytes)), 4, 1);
  }
  at = put(put(put(at, 4, END), 4, 0), 2, (uint64_t)n);
  at = put(put(at, 2, (uint64_t)n), 4, (uint64_t)directory_bytes);
  at = put(put(at, 4, is_wide ? SMALL : (uint64_t)directory_at), 2, 0);
  return (size_t)(at - record);
}
