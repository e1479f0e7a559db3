/* SPDX-License-Identifier: Apache-2.0
 *
 * descriptor.h: reads and checks a DLTensor of any dtype on any device, for exchange rather than for a call of an op. As in
 * tensor.c every number in it may be hostile. Knows no owners, and touches no memory but shape and strides. */
#ifndef QN_DESCRIPTOR_H
#define QN_DESCRIPTOR_H

#include "core/base/status.h"

typedef struct qn_descriptor {
  char *data; /* byte_offset added */
  int64_t n_elements;
  int64_t item_bytes; /* of all lanes; rounded up to whole bytes */
  int is_whole;       /* items are of whole bytes */
  int is_compact;     /* row-major without gaps; extents of 1 do not count; 1 for every empty tensor */
} qn_descriptor;

/* Reads each field once. `function` begins the error's sentence. has_data 0: ignores data. Errors: ARGUMENT (NULL, ndim, a
 * negative extent, no data), LAYOUT (more than QUERN_MAX_NDIM dimensions, items over 2^61 bytes apart, past the address space),
 * DTYPE (0 bits or lanes). */
quern_status qn_descriptor_read(const char *function, const DLTensor *tensor, int has_data, qn_descriptor *descriptor);

/* The strides of a descriptor that was read, or the compact ones where it has none. */
void qn_descriptor_strides(const DLTensor *tensor, int64_t *strides);

#endif
