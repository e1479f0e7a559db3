/* SPDX-License-Identifier: Apache-2.0
 *
 * device_memory.h: memory of a backend's devices, as tensors that the library gives away have it, and copies of compact memory
 * between there and the host. A backend has a table of it, or none. */
#ifndef QN_DEVICE_MEMORY_H
#define QN_DEVICE_MEMORY_H

#include "core/op/backend.h"
#include "core/tensor/device.h"

/* function: the public one that errors are recorded of. stream: what work is in the order of; NULL: the device's usual one. */
typedef struct qn_device_memory {
  /* Not initialised, at a multiple of 256 bytes; n_bytes 0: *data is NULL. */
  quern_status (*make)(DLDevice device, void *stream, int64_t n_bytes, char **data);
  /* From any thread; quietly where the driver is gone. */
  void (*free)(DLDevice device, char *data);
  /* Whether copies can be made now: the device is there and does not capture the stream. */
  quern_status (*check)(const char *function, DLDevice device, void *stream);
  /* Waited for, both. */
  quern_status (*to_host)(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream);
  quern_status (*from_host)(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream);
  /* Within the device's memory. */
  quern_status (*move)(const char *function, DLDevice device, const char *from, char *to, size_t n_bytes, void *stream);
  /* Until the host can read memory of the host's that belongs to a device of this type. device: as the tensor has it. */
  quern_status (*wait)(const char *function, DLDevice device, void *stream);
} qn_device_memory;

/* NULL: there is none that the library makes or copies. */
static inline const qn_device_memory *qn_device_memory_of(DLDevice device) {
  const qn_backend *backend = qn_backend_of(device);
  return backend ? backend->memory : NULL;
}

/* The same for memory of the host's that belongs to a device. */
static inline const qn_device_memory *qn_device_memory_joined(DLDevice device) {
  const DLDevice owner = {(DLDeviceType)qn_device_joins(device), device.device_id};
  return owner.device_type ? qn_device_memory_of(owner) : NULL;
}

#endif
