/* SPDX-License-Identifier: Apache-2.0
 *
 * result.c: new objects for the results of a call, of the kind of an operand. */
#include "operand/result.h"

#include <string.h>

#include "array/array_object.h"
#include "base/errors.h"
#include "operand/numpy_array.h"
#include "types/dtypes.h"

static int make_numpy(const dtype_row *dtype, const quern_shape *shape, operand *result) {
  result->kind = OPERAND_NUMPY;
  result->object = numpy_new(dtype, shape->ndim, shape->shape);
  if (!result->object) return -1;
  if (numpy_read(result) == 0) return 0;
  Py_DECREF(result->object);
  return -1;
}

static int make_managed(DLPackManagedTensorAllocator allocate, const quern_shape *shape, operand *result) {
  int64_t extents[QUERN_MAX_NDIM];
  struct DLManagedTensorVersioned *managed = NULL;
  memcpy(extents, shape->shape, (size_t)shape->ndim * sizeof *extents);
  DLTensor prototype = {.device = shape->device, .ndim = shape->ndim, .dtype = shape->dtype, .shape = extents};
  if (allocate(&prototype, &managed, NULL, raise_kind)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_MemoryError, "out of memory");
    return -1;
  }
  quern_status status = quern_managed_import(managed, 0, &result->managed);
  if (status) {
    raise_exchange(status);
    return -1;
  }
  result->tensor = &result->managed->dl_tensor;
  result->flags = result->managed->flags;
  return 0;
}

int operand_result(const operand *like, const quern_shape *shape, operand *result) {
  const dtype_row *dtype = dtype_of(shape->dtype);
  result->managed = NULL;
  result->object = NULL;
  if (like && like->makes_numpy && dtype && dtype->numpy >= 0 && shape->device.device_type == kDLCPU)
    return make_numpy(dtype, shape, result);
  int is_exchange = like && like->kind == OPERAND_EXCHANGE;
  result->kind = is_exchange ? OPERAND_EXCHANGE : OPERAND_ARRAY;
  return make_managed(is_exchange ? like->api->managed_tensor_allocator : quern_managed_alloc, shape, result);
}

void operand_drop(operand *result) {
  Py_XDECREF(result->object);
  if (result->managed) managed_drop(result->managed);
}

/* ---- Producers that have from_dlpack ---- */

/* The package of the object's type: a new reference, or NULL, perhaps with an exception to be passed on. */
static PyObject *package_of(PyObject *object) {
  PyObject *module = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
  PyObject *name = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8String(module) : NULL, *package = NULL;
  if (name) {
    char *text = PyBytes_AsString(name), *dot = strchr(text, '.');
    PyObject *top = PyUnicode_FromStringAndSize(text, dot ? dot - text : (Py_ssize_t)strlen(text));
    package = top ? PyDict_GetItemWithError(PyImport_GetModuleDict(), top) : NULL;
    Py_XINCREF(package);
    Py_XDECREF(top);
  }
  Py_XDECREF(name);
  Py_XDECREF(module);
  if (!package) clear_refusal();
  return package;
}

/* The function from_dlpack of the object's array API namespace, else of its package: a new reference, or NULL. A namespace
 * without that function is no error; exceptions of foreign code are. */
static PyObject *from_dlpack_of(PyObject *object) {
  int has = has_attribute(object, "__array_namespace__");
  if (has < 0) return NULL;
  PyObject *space = has ? PyObject_CallMethod(object, "__array_namespace__", NULL) : package_of(object);
  PyObject *function = space ? PyObject_GetAttrString(space, "from_dlpack") : NULL;
  if (space && !function && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
  Py_XDECREF(space);
  return function;
}

/* Converts a result to the kind of `like`. Takes over the array, which may be NULL. */
static PyObject *convert(PyObject *array, PyObject *like) {
  PyObject *function = array ? from_dlpack_of(like) : NULL;
  if (!function && PyErr_Occurred()) Py_CLEAR(array);
  if (!function) return array;
  PyObject *converted = NULL;
  if (Py_EnterRecursiveCall(" while a result is handed over") == 0) {
    converted = PyObject_CallFunctionObjArgs(function, array, NULL);
    Py_LeaveRecursiveCall();
  }
  Py_DECREF(function);
  Py_DECREF(array);
  return converted;
}

PyObject *operand_wrap(const operand *like, operand *result) {
  if (result->kind == OPERAND_NUMPY) return result->object;
  if (result->kind == OPERAND_EXCHANGE) {
    void *object = NULL;
    return like->api->managed_tensor_to_py_object_no_sync(result->managed, &object) ? NULL : object;
  }
  PyObject *array = array_new(result->managed);
  return like && like->kind == OPERAND_DLPACK ? convert(array, like->object) : array;
}
