/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_memory.h: memory of the tensors that the library returns: the host's, or a device's (base/device_memory.h). */
#ifndef QN_MANAGED_MEMORY_H
#define QN_MANAGED_MEMORY_H

#include "quern/quern.h"

/* A handle: the address of a struct on the host that owns device memory, and is freed with it. */
typedef struct qn_managed_memory {
  DLDevice device;
  char *data; /* aligned to 256 bytes; NULL for 0 bytes */
} qn_managed_memory;

/* Allocates on kDLCPU or a device with allocation, uninitialised. stream: the stream to be used on. Errors: DEVICE, MEMORY,
 * DRIVER, recorded as of `function`. */
quern_status qn_managed_memory_make(const char *function, DLDevice device, void *stream, int64_t n_bytes,
                                    qn_managed_memory **memory);

/* Frees struct and memory; usable as a `release`: from any thread, in any or no context. Ignores a driver that is gone. */
void qn_managed_memory_free(void *memory);

#endif
