/* SPDX-License-Identifier: Apache-2.0
 *
 * reading.h: reads bytes of an open file. */
#ifndef QUERN_PROGRAM_READING_H
#define QUERN_PROGRAM_READING_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "why.h"

/* From a place in the file; at < 0: from where a stream is. *got: how many, fewer at the end. Returns 1, or 0 and says why. */
static inline int read_bytes(int fd, int64_t at, void *memory, size_t size, size_t *got, char why[WHY_SIZE]) {
  char *to = memory;
  for (*got = 0; *got < size;) {
    const size_t step = size - *got < 1 << 30 ? size - *got : 1 << 30;
    const ssize_t n = at < 0 ? read(fd, to + *got, step) : pread(fd, to + *got, step, (off_t)(at + (int64_t)*got));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refuse(why, "cannot be read: %s", strerror(errno));
    if (n == 0) return 1;
    *got += (size_t)n;
  }
  return 1;
}

#endif
