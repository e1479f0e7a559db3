/* SPDX-License-Identifier: Apache-2.0
 *
 * write_all.h: writing to files of which a limit of the host's may want to end the process (RLIMIT_FSIZE). Knows no formats. */
#ifndef QN_WRITE_ALL_H
#define QN_WRITE_ALL_H

#include <stddef.h>

/* Adds the bytes to the end of a regular file, in one write where the system takes them at once. What would go beyond the
 * process's limit of a file's size is not begun, and raises no signal, not even where another process lengthens the file
 * meanwhile. 0, or an errno. */
int qn_write_all(int file, const char *bytes, size_t size);

#endif
