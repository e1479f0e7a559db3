/* SPDX-License-Identifier: Apache-2.0
 *
 * write_all.h: writing to files without the signal SIGXFSZ of a file size limit (RLIMIT_FSIZE). Knows no formats. */
#ifndef QN_WRITE_ALL_H
#define QN_WRITE_ALL_H

#include <stddef.h>

/* Appends the bytes to a regular file, in one write where the system takes them at once. If they would exceed the process's
 * file size limit, nothing is written. No signal is raised, even if another process lengthens the file meanwhile. Returns
 * 0 or an errno. */
int qn_write_all(int file, const char *bytes, size_t size);

#endif
