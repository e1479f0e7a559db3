/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_memory.h: memory of the library's own making, for tensors that it gives away: the host's, or a device's (base/device_memory.h). */
#ifndef QN_MANAGED_MEMORY_H
#define QN_MANAGED_MEMORY_H

#include "quern/quern.h"

/* A handle: the address of a struct on the host that owns device memory, and is freed with it. */
typedef struct qn_managed_memory {
  DLDevice device;
  char *data; /* at a multiple of 256 bytes; NULL where there are none */
} qn_managed_memory;

/* On kDLCPU or where a device's memory is made, not initialised. stream: what it is for. Errors: DEVICE, MEMORY, DRIVER,
 * recorded as of `function`. */
quern_status qn_managed_memory_make(const char *function, DLDevice device, void *stream, int64_t n_bytes,
                                    qn_managed_memory **memory);

/* Takes the struct, as a `release`: from any thread, in any or no context; quietly where the driver is gone. */
void qn_managed_memory_free(void *memory);

#endif
