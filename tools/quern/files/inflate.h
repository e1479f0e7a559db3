/* SPDX-License-Identifier: Apache-2.0
 *
 * inflate.h: the deflate method, by zlib; a program that is built without it packs and unpacks nothing. Knows bytes.
 *
 * Functions return 1, or 0 with one sentence in `why`, without the file's name. */
#ifndef QUERN_PROGRAM_INFLATE_H
#define QUERN_PROGRAM_INFLATE_H

#include <stddef.h>
#include <stdint.h>

#include "why.h"

/* Why nothing can be packed here; NULL: it can. */
const char *inflate_is_missing(void);

typedef struct inflater inflater;

/* Of packed_bytes of an open file, from `at` on. */
int inflater_open(int fd, int64_t at, int64_t packed_bytes, inflater **made, char why[WHY_SIZE]);
int inflater_read(inflater *inflater, void *memory, size_t size, char why[WHY_SIZE]);
void inflater_close(inflater *inflater); /* NULL is allowed */

/* Packs bytes, a part after the other, into write(arg, bytes, size), which returns 0 where it has failed, and then has said why. */
typedef struct packer packer;
packer *packer_open(int (*write)(void *arg, const void *bytes, size_t size), void *arg); /* NULL: out of memory */
int packer_add(packer *packer, const void *bytes, size_t size, int is_last);
void packer_close(packer *packer); /* NULL is allowed */

#endif
