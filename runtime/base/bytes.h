/* SPDX-License-Identifier: Apache-2.0
 *
 * bytes.h: text or bytes that one part of the runtime hands to another. */
#ifndef QN_BYTES_H
#define QN_BYTES_H

#include <stddef.h>

/* `data` is malloc'ed and freed by its owner. A terminating 0 byte follows, not counted in `size`. */
typedef struct qn_bytes {
  char *data;
  size_t size;
} qn_bytes;

#endif
