/* SPDX-License-Identifier: Apache-2.0
 *
 * device.h: DLPack's device types: their names, the host-readable ones, the device of each type of host memory. No other file
 * knows them. The computation on a device belongs to its backend (op/backend.h). */
#ifndef QN_DEVICE_H
#define QN_DEVICE_H

#include "quern/quern.h"

/* "cpu", "cuda:0"; written to `text`, which is returned. */
#define QN_DEVICE_CHARS 40
const char *qn_device_text(DLDevice device, char text[QN_DEVICE_CHARS]);

/* The device types of host-readable and writable memory, as a bit set: kDLCPU and the host types of devices, all below 32. */
#define QN_DEVICE_HOSTS (1u << kDLCPU | 1u << kDLCUDAHost | 1u << kDLROCMHost | 1u << kDLCUDAManaged)
static inline int qn_device_is_host(DLDevice device) {
  return (unsigned)device.device_type < 32 && (1u << (unsigned)device.device_type & QN_DEVICE_HOSTS);
}

/* The device type that can use host memory of this type, besides the host; 0: none. */
int qn_device_joins(DLDevice device);

#endif
