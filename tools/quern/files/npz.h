/* SPDX-License-Identifier: Apache-2.0
 *
 * npz.h: NumPy's .npz format, a zip archive of .npy files: where an array lies in one that is read, and the records around arrays of
 * one that is written; beyond 4 GiB by the zip64 extension. Every byte read may be hostile: no size is believed that the file
 * cannot hold. Must not know .npy headers, nor who inflates.
 *
 * Functions return 1, or 0 with one sentence in `why`, without the file's name. */
#ifndef QUERN_PROGRAM_NPZ_H
#define QUERN_PROGRAM_NPZ_H

#include <stddef.h>
#include <stdint.h>

#include "why.h"

#define NPZ_NAME_SIZE 128

/* A file in the archive: `packed_bytes` from data_at on, `bytes` of them when inflated. */
typedef struct npz_member {
  char name[NPZ_NAME_SIZE]; /* without .npy */
  int64_t data_at, packed_bytes, bytes;
  uint32_t crc;
  int is_deflated;
} npz_member;

/* The array `name` of an open file; name NULL: the one called `usual`, or the only one. */
int npz_find(int fd, int64_t file_bytes, const char *name, const char *usual, npz_member *member, char why[WHY_SIZE]);

/* The CRC-32 of zip: of 0 at first, then of what it returned. */
uint32_t npz_crc(uint32_t crc, const void *bytes, size_t size);

/* The record before a file's bytes. Sizes and crc may be 0, to be written over by the same record later. Returns its bytes. */
#define NPZ_RECORD_SIZE (128 + NPZ_NAME_SIZE)
size_t npz_format_local(const npz_member *member, unsigned char record[NPZ_RECORD_SIZE]);

/* The record of the directory; local_at: where the file's local record is. */
size_t npz_format_entry(const npz_member *member, int64_t local_at, unsigned char record[NPZ_RECORD_SIZE]);

/* The end of the archive, behind the directory. */
size_t npz_format_end(int n, int64_t directory_at, int64_t directory_bytes, unsigned char record[NPZ_RECORD_SIZE]);

#endif
