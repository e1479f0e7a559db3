/* SPDX-License-Identifier: Apache-2.0
 *
 * output_file.h: files that are written whole or not at all: a temporary file beside the target, moved over it at the
 * end. Knows bytes, not what they mean.
 *
 * Functions return 1, or 0 with one sentence in `why`, without the file's name. */
#ifndef QUERN_PROGRAM_OUTPUT_FILE_H
#define QUERN_PROGRAM_OUTPUT_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "why.h"

#define OUTPUT_FILE_MAX 32 /* at once */

typedef struct output_file {
  char *target;    /* where links lead to; NULL: not begun */
  char *temporary; /* in the same folder; NULL: none */
  int fd;
} output_file;

/* Finds out that `path` can be written, as far as that can be known: its folder takes a new file, an existing target is
 * a regular file that may be written, and `bytes` fit on the disk where the file system can tell. */
int output_file_begin(output_file *file, const char *path, int64_t bytes, char why[WHY_SIZE]);

/* Appends. */
int output_file_write(output_file *file, const void *bytes, size_t size, char why[WHY_SIZE]);

/* Writes over bytes that were written before. */
int output_file_patch(output_file *file, int64_t offset, const void *bytes, size_t size, char why[WHY_SIZE]);

/* All is written, and on the disk. The target is as it was. */
int output_file_finish(output_file *file, char why[WHY_SIZE]);

/* The target is the new file, with the mode it had. */
int output_file_publish(output_file *file, char why[WHY_SIZE]);

/* Frees all; what was not published is removed. A zeroed struct is allowed. */
void output_file_end(output_file *file);

/* From now on a signal that ends the process removes temporary files first. */
void output_file_catch_signals(void);

#endif
