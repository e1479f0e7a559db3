/* SPDX-License-Identifier: Apache-2.0
 *
 * device_object.h: quern.Device: DLPack's pair of a device type and an index as a tuple that can be read. */
#ifndef QUERN_PYTHON_DEVICE_OBJECT_H
#define QUERN_PYTHON_DEVICE_OBJECT_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

/* A new reference. */
PyObject *device_object(DLDevice device);

/* The device that an object names: a pair of integers, "cpu", "cuda:1", or what str() makes one of these of. `what` begins the
 * sentence of a failure. -1: TypeError, ValueError. */
int device_from_object(PyObject *object, const char *what, DLDevice *device);

/* From two integers in a tuple, and nothing else. -1: TypeError, ValueError. */
int device_from_pair(PyObject *object, const char *what, DLDevice *device);

static inline int device_is_host(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost ||
         device.device_type == kDLCUDAManaged;
}

/* Makes the type and adds it to the module. -1: an exception. */
int device_add(PyObject *module);

#endif
