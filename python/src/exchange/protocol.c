/* SPDX-License-Identifier: Apache-2.0
 *
 * protocol.c: the consumer's side of Python's DLPack protocol: __dlpack_device__, then __dlpack__ with as many arguments as the
 * producer knows. Producers are foreign code: everything they return is checked before it is used. */
#include "exchange/protocol.h"

#include "exchange/capsule.h"
#include "types/device_object.h"

/* Checks the type, then the object: it may be a proxy. */
int dlpack_has(PyObject *object) {
  int has = has_attribute((PyObject *)Py_TYPE(object), "__dlpack__");
  return has ? has : has_attribute(object, "__dlpack__");
}

static PyObject *call_method(PyObject *object, const char *name, PyObject *keywords) {
  PyObject *method = PyObject_GetAttrString(object, name), *none, *result;
  if (!method) return NULL;
  none = PyTuple_New(0);
  result = none ? PyObject_Call(method, none, keywords) : NULL;
  Py_XDECREF(none);
  Py_DECREF(method);
  return result;
}

static int device_of(PyObject *object, DLDevice *device) {
  PyObject *pair = call_method(object, "__dlpack_device__", NULL);
  int failed;
  if (!pair) return -1;
  failed = device_from_pair(pair, "__dlpack_device__", device);
  Py_DECREF(pair);
  return failed;
}

/* Takes over the reference to the value, which may be NULL with an exception. */
static int set(PyObject *keywords, const char *name, PyObject *value) {
  const int failed = !value || PyDict_SetItemString(keywords, name, value);
  Py_XDECREF(value);
  return failed ? -1 : 0;
}

/* Sets the stream argument, the stream that will use the tensor: the legacy default one is 1 for CUDA and 0 for ROCm; other
 * devices have none. A copy to the CPU is complete on return, from any device. */
static int set_stream(PyObject *keywords, DLDevice at, const dlpack_wish *wish) {
  if (wish->device && wish->device->device_type == kDLCPU) return 0;
  if (at.device_type != kDLCUDA && at.device_type != kDLCUDAManaged && at.device_type != kDLROCM) return 0;
  if (wish->stream) return set(keywords, "stream", PyLong_FromVoidPtr(wish->stream));
  return set(keywords, "stream", PyLong_FromLong(at.device_type == kDLROCM ? 0 : 1));
}

static int set_wishes(PyObject *keywords, const dlpack_wish *wish) {
  if (wish->device && set(keywords, "dl_device",
                          Py_BuildValue("(ii)", (int)wish->device->device_type, (int)wish->device->device_id))) {
    return -1;
  }
  if (wish->copy == QUERN_COPY_IF_NEEDED) return 0;
  return set(keywords, "copy", PyBool_FromLong(wish->copy == QUERN_COPY_ALWAYS));
}

/* Asks for a versioned capsule. A TypeError usually means a producer older than versions, which knows no argument but the
 * stream, so it is asked again; an error with another cause is raised again. */
static PyObject *ask(PyObject *object, DLDevice at, const dlpack_wish *wish) {
  PyObject *keywords = PyDict_New(), *capsule = NULL;
  if (!keywords || set_stream(keywords, at, wish)) goto done;
  if (set(keywords, "max_version", Py_BuildValue("(ii)", DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION))) goto done;
  if (set_wishes(keywords, wish)) goto done;
  capsule = call_method(object, "__dlpack__", keywords);
  if (capsule || wish->device || wish->copy != QUERN_COPY_IF_NEEDED || !PyErr_ExceptionMatches(PyExc_TypeError)) goto done;
  PyErr_Clear();
  PyDict_Clear(keywords);
  if (set_stream(keywords, at, wish)) goto done;
  capsule = call_method(object, "__dlpack__", keywords);
done:
  Py_XDECREF(keywords);
  return capsule;
}

/* Refuses views that negate: PyTorch exports them as if they did not. (It refuses views that conjugate itself.) */
static int refuse_negation(PyObject *object) {
  static PyObject *plain; /* owned: the last type without such views; asking costs half of an import */
  PyObject *type = (PyObject *)Py_TYPE(object), *last, *answer;
  if (type == plain) return 0;
  int has = has_attribute(type, "is_neg");
  if (has > 0) has = has_attribute(type, "is_conj");
  if (has < 0) return -1;
  if (!has) {
    last = plain; /* foreign code may have run */
    plain = new_ref(type);
    Py_XDECREF(last);
    return 0;
  }
  if (!(answer = call_method(object, "is_neg", NULL))) return -1;
  int negates = PyObject_IsTrue(answer);
  Py_DECREF(answer);
  if (negates > 0)
    PyErr_Format(PyExc_BufferError, "dlpack: a view that negates what is in its memory; give x.resolve_neg()");
  return negates ? -1 : 0;
}

/* Gets the capsule. Guarded against recursion: a producer may call this for the same object. */
static PyObject *ask_producer(PyObject *object, const dlpack_wish *wish) {
  PyObject *capsule = NULL;
  DLDevice at;
  if (Py_EnterRecursiveCall(" while a tensor is imported")) return NULL;
  if (refuse_negation(object) == 0 && device_of(object, &at) == 0) capsule = ask(object, at, wish);
  Py_LeaveRecursiveCall();
  return capsule;
}

struct DLManagedTensorVersioned *dlpack_import(PyObject *object, const dlpack_wish *wish) {
  struct DLManagedTensorVersioned *managed;
  PyObject *capsule, *type, *value, *traceback;
  if (PyErr_Occurred()) return NULL; /* a caller may treat -1 of dlpack_has as yes */
  int has = dlpack_has(object);
  if (has < 0) return NULL;
  if (!has) {
    PyErr_Format(PyExc_TypeError, "%.200R has no __dlpack__", (PyObject *)Py_TYPE(object));
    return NULL;
  }
  if (!(capsule = ask_producer(object, wish))) return NULL;
  managed = capsule_take(capsule);
  PyErr_Fetch(&type, &value, &traceback); /* the capsule's destructor is foreign code */
  Py_DECREF(capsule);
  PyErr_Restore(type, value, traceback);
  return managed;
}
