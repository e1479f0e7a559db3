/* SPDX-License-Identifier: Apache-2.0
 *
 * read_all.h: reading from files. Knows no formats. */
#ifndef QN_READ_ALL_H
#define QN_READ_ALL_H

#include <stddef.h>

/* Reads `size` bytes, or fewer if the file ends before. Returns their number; with fewer than `size`, errno is 0 at the end of the
 * file. */
size_t qn_read_all(int file, char *bytes, size_t size);

#endif
