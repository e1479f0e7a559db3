/* SPDX-License-Identifier: Apache-2.0
 *
 * array_source.h: the source of an input's bytes, read from first to last: an .npy file, an array of an .npz archive,
 * packed or not, or standard input. An archive's checksum is verified. Knows no dtypes of the library.
 *
 * Functions return 1, or 0 with one sentence in `why`, without the file's name. */
#ifndef QUERN_PROGRAM_ARRAY_SOURCE_H
#define QUERN_PROGRAM_ARRAY_SOURCE_H

#include "npy.h"

typedef struct array_source {
  npy_header header;
  int fd;       /* -1: none is open */
  int is_input; /* standard input */
  int64_t at;   /* the place in the file of what comes next; of standard input -1 */
  int has_crc;
  uint32_t crc, wanted_crc;
  struct inflater *inflater; /* of an array that is packed */
} array_source;

/* path: a file, FILE.npz:NAME, or "-". usual: the operand's name. Reads the header. */
int array_source_open(const char *path, const char *usual, array_source *source, char why[WHY_SIZE]);

/* The next `size` bytes of the data. */
int array_source_read(array_source *source, void *memory, size_t size, char why[WHY_SIZE]);

/* That all has been read, and nothing comes behind. */
int array_source_finish(array_source *source, char why[WHY_SIZE]);

void array_source_close(array_source *source);

/* Whether a path is that of an archive, or of an array in one. file: room for the path's size + 1; the archive. *name: behind the colon,
 * in `path`; NULL: none. */
int array_source_splits(const char *path, char *file, const char **name);

#endif
