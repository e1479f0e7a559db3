/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h: what DLPack says of its device types: their names, which memory the host reads, which host memory belongs to which
 * device. The only place that knows them; who computes on a device is a backend (op/backend.h). */
#ifndef QN_DEVICE_H
#define QN_DEVICE_H

#include "quern/quern.h"

/* "cpu", "cuda:0"; written into text. */
#define QN_DEVICE_CHARS 40
const char *qn_device_text(DLDevice device, char text[QN_DEVICE_CHARS]);

/* The host reads and writes its memory: kDLCPU, and the host types of devices. The types are below 32 where the set has any. */
#define QN_DEVICE_HOSTS (1u << kDLCPU | 1u << kDLCUDAHost | 1u << kDLROCMHost | 1u << kDLCUDAManaged)
static inline int qn_device_is_host(DLDevice device) {
  return (unsigned)device.device_type < 32 && (1u << (unsigned)device.device_type & QN_DEVICE_HOSTS);
}

/* The type of device that host memory of this type belongs to, and may be used by; 0: to none. */
int qn_device_joins(DLDevice device);

/* Such memory may have another address on its device. */
int qn_device_is_pinned(DLDevice device);

#endif
