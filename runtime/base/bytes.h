/* SPDX-License-Identifier: Apache-2.0
 *
 * bytes.h: text or bytes that one part of the runtime hands to another. */
#ifndef QN_BYTES_H
#define QN_BYTES_H

#include <stddef.h>

/* `data` is from malloc, and its owner frees it. A 0 byte, not counted, follows the last. */
typedef struct qn_bytes {
  char *data;
  size_t size;
} qn_bytes;

#endif
