/* SPDX-License-Identifier: Apache-2.0
 *
 * device_memory.h: device memory for tensors that the library returns, and copies of compact memory between host and device. A
 * backend has a table of these functions, or none. */
#ifndef QN_DEVICE_MEMORY_H
#define QN_DEVICE_MEMORY_H

#include "core/op/backend.h"
#include "core/tensor/device.h"

/* function: the public function, for errors. stream: the stream that orders the work; NULL: the device's default one. */
typedef struct qn_device_memory {
  /* Allocates, uninitialised, aligned to 256 bytes; n_bytes 0: *data is NULL. */
  quern_status (*make)(DLDevice device, void *stream, int64_t n_bytes, char **data);
  /* From any thread. Ignores a driver that is gone. */
  void (*free)(DLDevice device, char *data);
  /* Checks that copies can be made now: the device exists, and the stream is not being captured. */
  quern_status (*check)(const char *function, DLDevice device, void *stream);
  /* Both are complete on return. */
  quern_status (*to_host)(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream);
  quern_status (*from_host)(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream);
  /* Within the device's memory. */
  quern_status (*move)(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream);
  /* Waits until the host can read host memory of a device (pinned, managed). device: the tensor's. */
  quern_status (*wait)(const char *function, DLDevice device, void *stream);
} qn_device_memory;

/* The functions for a device's memory; NULL: the library neither allocates nor copies it. */
static inline const qn_device_memory *qn_device_memory_of(DLDevice device) {
  const qn_backend *backend = qn_backend_of(device);
  return backend ? backend->memory : NULL;
}

/* The same for host memory of a device (pinned, managed). */
static inline const qn_device_memory *qn_device_memory_joined(DLDevice device) {
  const DLDevice owner = {(DLDeviceType)qn_device_joins(device), device.device_id};
  return owner.device_type ? qn_device_memory_of(owner) : NULL;
}

#endif
