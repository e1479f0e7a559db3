/* SPDX-License-Identifier: Apache-2.0
 *
 * npy.h: NumPy's .npy format, versions 1.0 to 3.0: the header of a file, read and checked against the file's size, and the
 * header of a new file. Every byte may be hostile. Must not know Quern: what a file holds is said in NumPy's terms.
 *
 * Functions return 1, or 0 with one sentence in `why`, without the file's name. */
#ifndef QUERN_PROGRAM_NPY_H
#define QUERN_PROGRAM_NPY_H

#include <stddef.h>
#include <stdint.h>

#include "why.h"

#define NPY_MAX_NDIM 32
#define NPY_MAX_HEADER (1 << 20) /* bytes; the longest that says anything has some 800 */
#define NPY_ALIGNMENT 64         /* a header's length is padded to a multiple of it */
#define NPY_DESCR_SIZE 64

/* What a file holds. `kind` and `item_bytes` are those of a descr such as '<f4': b (bool, 1), i u (1, 2, 4, 8), f (2,
 * 4, 8), V (2: sixteen bits of no type). */
typedef struct npy_header {
  char kind;
  int32_t item_bytes;
  int32_t is_fortran; /* the first index varies fastest */
  int32_t ndim;
  int64_t shape[NPY_MAX_NDIM]; /* none is negative */
  int64_t n_items;             /* their product */
  int64_t data_bytes;          /* n_items * item_bytes: all of the file behind data_offset */
  int64_t data_offset;
  char descr[NPY_DESCR_SIZE]; /* as in the file */
} npy_header;

/* Of a stream, which ends where it ends, file_bytes is not known. */
#define NPY_NO_SIZE (-1)

/* Where the data begin, from the first `size` bytes of a file of file_bytes; 12 are enough. At most NPY_MAX_HEADER. */
int npy_data_offset(const void *bytes, size_t size, int64_t file_bytes, int64_t *offset, char why[WHY_SIZE]);

/* The header, of which `bytes` holds all: its first `size` bytes, at least npy_data_offset. */
int npy_parse(const void *bytes, size_t size, int64_t file_bytes, npy_header *header, char why[WHY_SIZE]);

/* Writes the preamble and header of a file of version 1.0 that holds `shape` in C order, the very bytes that numpy.save
 * writes. Returns how many they are; `text` has room for NPY_FORMAT_SIZE. */
#define NPY_FORMAT_SIZE 1024
size_t npy_format(char kind, int32_t item_bytes, int32_t ndim, const int64_t *shape, char text[NPY_FORMAT_SIZE]);

/* A file that is being read. */
typedef struct npy_file {
  int fd;
  npy_header header;
} npy_file;

/* Opens a regular file and reads its header. */
int npy_open(const char *path, npy_file *file, char why[WHY_SIZE]);

/* Reads `size` bytes of the data, from the offset-th on. */
int npy_read(const npy_file *file, int64_t offset, void *memory, size_t size, char why[WHY_SIZE]);

void npy_close(npy_file *file);

#endif
