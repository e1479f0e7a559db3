/* SPDX-License-Identifier: Apache-2.0
 *
 * array_dlpack.c: DLPack's methods of quern.Array, and quern.from_dlpack: any producer's tensor as an array. */
#include "array/array_dlpack.h"

#include "array/array_object.h"
#include "base/errors.h"
#include "base/remedy.h"
#include "exchange/buffer.h"
#include "exchange/capsule.h"
#include "exchange/protocol.h"
#include "types/device_object.h"

/* Converts None, True, False to QUERN_COPY_*. -1: an exception. */
static int copy_of(PyObject *object) {
  int is_true;
  if (object == Py_None) return QUERN_COPY_IF_NEEDED;
  is_true = PyObject_IsTrue(object);
  return is_true < 0 ? -1 : is_true ? QUERN_COPY_ALWAYS : QUERN_COPY_NEVER;
}

/* Makes a quern_export of the arguments device (may be None) and copy. */
static int wish_of(PyObject *device, PyObject *copy, const char *what, quern_export *wish) {
  *wish = (quern_export){.size = sizeof *wish};
  if (device != Py_None && device_from_object(device, what, &wish->device)) return -1;
  wish->copy = copy_of(copy);
  return wish->copy < 0 ? -1 : 0;
}

/* ---- Out ---- */

/* Converts the protocol's stream argument, for memory at `at`, to quern_export.stream. -1: an exception. */
static int stream_of(PyObject *object, DLDevice at, void **stream) {
  *stream = NULL;
  if (object == Py_None) return 0;
  if (!PyLong_Check(object)) {
    PyErr_Format(PyExc_TypeError, "__dlpack__: stream %.200R, expected an int or None", object);
    return -1;
  }
  if (at.device_type != kDLCUDA && at.device_type != kDLCUDAManaged) {
    PyErr_SetString(PyExc_ValueError, "__dlpack__: memory that is not CUDA's has no stream, expected stream=None");
    return -1;
  }
  *stream = PyLong_AsVoidPtr(object); /* also for -1, which means no synchronisation */
  if (PyErr_Occurred()) return -1;
  if (*stream == NULL) {
    PyErr_SetString(PyExc_ValueError, "__dlpack__: stream 0 may mean two streams, and is not allowed; 1 is the legacy default "
                                      "stream, 2 the thread's");
    return -1;
  }
  if ((intptr_t)*stream == -1) *stream = NULL;
  if ((intptr_t)*stream < 0) {
    PyErr_Format(PyExc_ValueError, "__dlpack__: %.200R is no stream", object);
    return -1;
  }
  return 0;
}

/* 1: the consumer takes versioned capsules. -1: an exception. */
static int is_versioned(PyObject *max_version) {
  long major;
  if (max_version == Py_None) return 0;
  if (!PyTuple_Check(max_version) || PyTuple_Size(max_version) != 2) {
    PyErr_Format(PyExc_TypeError, "__dlpack__: max_version %.200R, expected a tuple of two ints or None", max_version);
    return -1;
  }
  major = PyLong_AsLong(PyTuple_GetItem(max_version, 0));
  if (major == -1 && PyErr_Occurred()) return -1;
  return major >= DLPACK_MAJOR_VERSION;
}

PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"stream", "max_version", "dl_device", "copy", NULL};
  PyObject *stream = Py_None, *max_version = Py_None, *device = Py_None, *copy = Py_None;
  DLDevice at = array_managed(self)->dl_tensor.device;
  struct DLManagedTensorVersioned *managed;
  DLManagedTensor *legacy;
  quern_export wish;
  quern_status status;
  int versioned;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", names, &stream, &max_version, &device, &copy)) {
    return NULL;
  }
  versioned = is_versioned(max_version);
  if (versioned < 0 || wish_of(device, copy, "__dlpack__: dl_device", &wish)) return NULL;
  if (wish.device.device_type != 0) at = wish.device;
  if (stream_of(stream, at, &wish.stream)) return NULL;
  managed = holder_export(array_holder(self), &wish);
  if (!managed) return NULL;
  if (versioned) return capsule_new(managed);
  status = quern_managed_downgrade(managed, &legacy);
  return status ? raise_exchange(status) : capsule_new_legacy(legacy);
}

PyObject *array_dlpack_device(PyObject *self, PyObject *unused) {
  const DLDevice device = array_managed(self)->dl_tensor.device;
  (void)unused;
  return Py_BuildValue("(ii)", (int)device.device_type, (int)device.device_id);
}

static PyObject *exported(PyObject *self, const quern_export *wish) {
  struct DLManagedTensorVersioned *managed = holder_export(array_holder(self), wish);
  return managed ? array_new(managed) : NULL;
}

PyObject *array_to_device(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"", "stream", NULL};
  PyObject *device, *stream = Py_None;
  DLDevice at = array_managed(self)->dl_tensor.device;
  quern_export wish;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$O:to_device", names, &device, &stream)) return NULL;
  if (wish_of(device, Py_None, "to_device", &wish)) return NULL;
  if (wish.device.device_type == kDLCUDA) at = wish.device;
  return stream_of(stream, at, &wish.stream) ? NULL : exported(self, &wish);
}

/* ---- In ---- */

static int is_refusal(void) {
  return PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_BufferError);
}

/* Whether to import without device and copy, and to copy here: if the producer does not know these arguments or does not support
 * them. A refusal of copy=False is final. */
static int is_for_us(const quern_export *wish) {
  if (wish->device.device_type == 0 && wish->copy == QUERN_COPY_IF_NEEDED) return 0;
  if (PyErr_ExceptionMatches(PyExc_TypeError)) return 1;
  if (wish->copy == QUERN_COPY_NEVER) return 0;
  return PyErr_ExceptionMatches(PyExc_BufferError) || PyErr_ExceptionMatches(PyExc_ValueError) ||
         PyErr_ExceptionMatches(PyExc_NotImplementedError);
}

/* Imports by __dlpack__; if that is refused (NumPy before 2.1, read-only memory), by the buffer protocol. */
static struct DLManagedTensorVersioned *import_by_protocol(PyObject *object, const quern_export *wish) {
  const dlpack_wish all = {wish->device.device_type ? &wish->device : NULL, wish->copy, wish->stream};
  const dlpack_wish none = {NULL, QUERN_COPY_IF_NEEDED, wish->stream};
  struct DLManagedTensorVersioned *managed = dlpack_import(object, &all);
  PyObject *type, *value, *traceback;
  if (!managed && is_for_us(wish)) {
    PyErr_Clear();
    managed = dlpack_import(object, &none);
  }
  if (managed || !is_refusal() || !buffer_has(object)) return managed;
  PyErr_Fetch(&type, &value, &traceback);
  managed = buffer_import(object);
  if (managed) {
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(traceback);
  } else {
    PyErr_Restore(type, value, traceback); /* replaces the current exception */
  }
  return managed;
}

static struct DLManagedTensorVersioned *import_any(PyObject *object, const quern_export *wish) {
  if (PyCapsule_CheckExact(object)) return capsule_take(object);
  if (dlpack_has(object)) return import_by_protocol(object, wish);
  if (buffer_has(object)) return buffer_import(object);
  PyObject *remedy = remedy_of("of_object", object);
  if (remedy)
    PyErr_Format(PyExc_AttributeError, "from_dlpack: %.200R has neither __dlpack__ nor a buffer%U", (PyObject *)Py_TYPE(object), remedy);
  Py_XDECREF(remedy);
  return NULL;
}

/* The producer's exception, with a remedy where there is one. */
static PyObject *refuse(PyObject *object) {
  PyObject *text = remedy_of_refusal(object);
  if (text) PyErr_Format(PyExc_BufferError, "from_dlpack: %U", text);
  Py_XDECREF(text);
  return NULL;
}

/* Whether the imported tensor fulfils the wish. */
static int is_served(const struct DLManagedTensorVersioned *managed, const quern_export *wish) {
  const DLDevice at = managed->dl_tensor.device;
  const int is_copied = (managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED) != 0;
  if (wish->device.device_type != 0 &&
      (wish->device.device_type != at.device_type || wish->device.device_id != at.device_id)) {
    return 0;
  }
  return wish->copy != QUERN_COPY_ALWAYS || is_copied;
}

/* Takes over the managed tensor, and exports it as wished. */
static struct DLManagedTensorVersioned *serve(struct DLManagedTensorVersioned *managed, const quern_export *wish) {
  tensor_holder *holder;
  if (is_served(managed, wish)) {
    if (wish->copy != QUERN_COPY_NEVER || !(managed->flags & DLPACK_FLAG_BITMASK_IS_COPIED)) return managed;
    managed_drop(managed);
    PyErr_SetString(PyExc_BufferError, "from_dlpack: the producer made a copy in spite of copy=False");
    return NULL;
  }
  holder = holder_new(managed);
  if (!holder) return NULL;
  managed = holder_export(holder, wish);
  holder_release(holder);
  return managed;
}

PyObject *array_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names) {
  PyObject *device = Py_None, *copy = Py_None;
  struct DLManagedTensorVersioned *managed;
  quern_export wish;
  (void)module;
  if (n != 1) {
    PyErr_Format(PyExc_TypeError, "from_dlpack: %zd positional arguments, expected 1", n);
    return NULL;
  }
  for (Py_ssize_t i = 0; names && i < PyTuple_Size(names); i++) {
    PyObject *name = PyTuple_GetItem(names, i);
    if (PyUnicode_CompareWithASCIIString(name, "device") == 0) device = args[n + i];
    else if (PyUnicode_CompareWithASCIIString(name, "copy") == 0) copy = args[n + i];
    else return PyErr_Format(PyExc_TypeError, "from_dlpack: no argument is called %R", name);
  }
  if (wish_of(device, copy, "from_dlpack: device", &wish)) return NULL;
  if (array_check(args[0])) return exported(args[0], &wish);
  managed = import_any(args[0], &wish);
  if (!managed) return refuse(args[0]);
  managed = serve(managed, &wish);
  return managed ? array_new(managed) : NULL;
}
