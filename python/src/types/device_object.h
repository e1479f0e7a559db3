/* SPDX-License-Identifier: Apache-2.0
 *
 * device_object.h: quern.Device: a tuple of DLPack's device type and index, with a name as its str(). */
#ifndef QUERN_PYTHON_DEVICE_OBJECT_H
#define QUERN_PYTHON_DEVICE_OBJECT_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* A new quern.Device. */
PyObject *device_object(DLDevice device);

/* Reads a device: a tuple of two integers, a str such as "cpu" or "cuda:1", or an object with such a str(). what: the beginning
 * of error messages. -1: TypeError, ValueError. */
int device_from_object(PyObject *object, const char *what, DLDevice *device);

/* The same for a tuple of two integers only. */
int device_from_pair(PyObject *object, const char *what, DLDevice *device);

static inline int device_is_host(DLDevice device) {
  return device.device_type == kDLCPU || device.device_type == kDLCUDAHost || device.device_type == kDLROCMHost ||
         device.device_type == kDLCUDAManaged;
}

/* Makes the type and adds it to the module. -1: an exception. */
int device_add(PyObject *module);

#endif
