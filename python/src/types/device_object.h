/* SPDX-License-Identifier: Apache-2.0
 *
 * device_object.h: quern.Device: DLPack's device type and index as a tuple with a readable repr. */
#ifndef QUERN_PYTHON_DEVICE_OBJECT_H
#define QUERN_PYTHON_DEVICE_OBJECT_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* A new reference. */
PyObject *device_object(DLDevice device);

/* The device of an object: a pair of integers, "cpu", "cuda:1", or an object whose str() is one of these. `what` begins the
 * message of an error. -1: TypeError, ValueError. */
int device_from_object(PyObject *object, const char *what, DLDevice *device);

/* The same, but only of a tuple of two integers. -1: TypeError, ValueError. */
int device_from_pair(PyObject *object, const char *what, DLDevice *device);

static inline int device_is_host(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost ||
         device.device_type == kDLCUDAManaged;
}

/* Makes the type and adds it to the module. -1: an exception. */
int device_add(PyObject *module);

#endif
