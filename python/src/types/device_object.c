/* SPDX-License-Identifier: Apache-2.0
 *
 * device_object.c: quern.Device; see device_object.h. */
#include "types/device_object.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* By DLPack's number; the names are those of the library's messages. */
static const char *const names[] = {
    NULL,     "cpu",       "cuda",    "cuda_host",    "opencl", NULL,     NULL,      "vulkan", "metal", "vpi",
    "rocm",   "rocm_host", "ext_dev", "cuda_managed", "oneapi", "webgpu", "hexagon", "maia",   "trn",
};

#define N_NAMES ((int)(sizeof names / sizeof names[0]))

static PyObject *device_type; /* for the life of the process */

PyObject *device_object(DLDevice device) {
  PyObject *pair = Py_BuildValue("((ii))", (int)device.device_type, (int)device.device_id);
  PyObject *object = pair ? PyObject_Call(device_type, pair, NULL) : NULL;
  Py_XDECREF(pair);
  return object;
}

/* -1: an exception. */
static int int_of(PyObject *object, const char *what, int *value) {
  long number;
  if (!object) return -1;
  if (!PyLong_Check(object)) {
    PyErr_Format(PyExc_TypeError, "%s: %.200R in a device, expected an int", what, object);
    return -1;
  }
  number = PyLong_AsLong(object);
  if ((number == -1 && PyErr_Occurred()) || number < INT_MIN || number > INT_MAX) {
    PyErr_Format(PyExc_ValueError, "%s: %.200R is no number of a device", what, object);
    return -1;
  }
  *value = (int)number;
  return 0;
}

int device_from_pair(PyObject *object, const char *what, DLDevice *device) {
  int type, id;
  if (!PyTuple_Check(object) || PyTuple_Size(object) != 2) {
    if ((PyObject *)Py_TYPE(object) == device_type) /* its repr calls this function */
      PyErr_Format(PyExc_TypeError, "%s: a quern.Device that is no pair of device type and index", what);
    else
      PyErr_Format(PyExc_TypeError, "%s: %.200R, expected a tuple of device type and index", what, object);
    return -1;
  }
  /* Members of a producer's enum are ints, too. */
  if (int_of(PyTuple_GetItem(object, 0), what, &type) || int_of(PyTuple_GetItem(object, 1), what, &id)) return -1;
  *device = (DLDevice){(DLDeviceType)type, id};
  return 0;
}

/* Parses "cuda", "cuda:1". 0: it is no device. */
static int parse(const char *text, DLDevice *device) {
  const size_t length = strcspn(text, ":");
  for (int type = 0; type < N_NAMES; type++) {
    char *end = NULL;
    long id = 0;
    if (!names[type] || strlen(names[type]) != length || strncmp(text, names[type], length) != 0) continue;
    if (text[length] == ':') {
      if (text[length + 1] < '0' || text[length + 1] > '9') return 0;
      id = strtol(text + length + 1, &end, 10);
      if (*end || id > INT_MAX) return 0;
    }
    *device = (DLDevice){(DLDeviceType)type, (int32_t)id};
    return 1;
  }
  return 0;
}

int device_from_object(PyObject *object, const char *what, DLDevice *device) {
  PyObject *text, *bytes = NULL;
  Py_ssize_t size;
  char *name;
  int good = 0;
  if (PyTuple_Check(object)) return device_from_pair(object, what, device);
  text = PyObject_Str(object);
  if (text) bytes = PyUnicode_AsUTF8String(text);
  if (bytes && PyBytes_AsStringAndSize(bytes, &name, &size) == 0) good = strlen(name) == (size_t)size && parse(name, device);
  Py_XDECREF(text);
  Py_XDECREF(bytes);
  if (!good && !PyErr_Occurred()) {
    PyErr_Format(PyExc_ValueError, "%s: %.200R names no device, expected 'cpu', 'cuda:0' or DLPack's pair of numbers", what,
                 object);
  }
  return good ? 0 : -1;
}

static PyObject *device_str(PyObject *self) {
  DLDevice device;
  if (device_from_pair(self, "Device", &device)) return NULL;
  if (device.device_type == kDLCPU && device.device_id == 0) return PyUnicode_FromString("cpu");
  if ((int)device.device_type > 0 && (int)device.device_type < N_NAMES && names[device.device_type]) {
    return PyUnicode_FromFormat("%s:%d", names[device.device_type], (int)device.device_id);
  }
  return PyUnicode_FromFormat("device_%d:%d", (int)device.device_type, (int)device.device_id);
}

static PyObject *device_repr(PyObject *self) {
  DLDevice device;
  if (device_from_pair(self, "Device", &device)) return NULL;
  return PyUnicode_FromFormat("quern.Device((%d, %d))", (int)device.device_type, (int)device.device_id);
}

static PyObject *device_get_type(PyObject *self, void *unused) {
  (void)unused;
  return PySequence_GetItem(self, 0);
}

static PyObject *device_get_id(PyObject *self, void *unused) {
  (void)unused;
  return PySequence_GetItem(self, 1);
}

static PyGetSetDef device_attributes[] = {
    {"type", device_get_type, NULL, "DLPack's number of the kind of device: 1 is the CPU, 2 CUDA.", NULL},
    {"id", device_get_id, NULL, "Which of that kind.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot device_slots[] = {
    {Py_tp_doc, "DLPack's pair of numbers for a device, (type, id), with a name: str() gives 'cpu', 'cuda:0'."},
    {Py_tp_str, (void *)device_str},
    {Py_tp_repr, (void *)device_repr},
    {Py_tp_getset, device_attributes},
    {0, NULL},
};

static PyType_Spec device_spec = {"quern.Device", 0, 0, Py_TPFLAGS_DEFAULT, device_slots};

int device_add(PyObject *module) {
  if (!device_type) {
    PyObject *bases = PyTuple_Pack(1, (PyObject *)&PyTuple_Type);
    if (bases) device_type = PyType_FromSpecWithBases(&device_spec, bases);
    Py_XDECREF(bases);
    if (!device_type) return -1;
  }
  return module_add(module, "Device", new_ref(device_type));
}
