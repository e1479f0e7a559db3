/* SPDX-License-Identifier: Apache-2.0
 *
 * read_all.c: see read_all.h. */
#include "base/files/read_all.h"

#include <errno.h>
#include <unistd.h>

size_t qn_read_all(int file, char *bytes, size_t size) {
  size_t done = 0;
  while (done < size) {
    const ssize_t n = read(file, bytes + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) break;
    done += (size_t)n;
  }
  return done;
}
