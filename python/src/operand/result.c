/* SPDX-License-Identifier: Apache-2.0
 *
 * result.c: new objects for the results of a call, of the kind of an operand. */
#include "operand/result.h"

#include <string.h>

#include "array/array_object.h"
#include "base/errors.h"
#include "operand/numpy_array.h"
#include "types/dtypes.h"

/* Whether dense strides are those of the row-major order, those of extents of 1 too. */
static int is_row_major(const quern_shape *shape) {
  uint64_t step = 1; /* of shapes that no memory has, modulo 2^64 */
  for (int32_t d = shape->ndim - 1; d >= 0; d--) {
    if ((uint64_t)shape->strides[d] != step) return 0;
    if (shape->shape[d] > 1) step *= (uint64_t)shape->shape[d];
  }
  return 1;
}

/* Whether dimension d is outside of dimension e: of equal strides one is that of an extent of 1, which is inside. */
static int is_outside(const quern_shape *shape, int32_t d, int32_t e) {
  if (shape->strides[d] != shape->strides[e]) return shape->strides[d] > shape->strides[e];
  return shape->shape[d] > 1 && shape->shape[e] == 1;
}

/* A row-major tensor of these extents. */
static struct DLManagedTensorVersioned *allocate_dense(DLPackManagedTensorAllocator allocate, const quern_shape *shape,
                                                       int64_t *extents) {
  struct DLManagedTensorVersioned *managed = NULL, *checked = NULL;
  DLTensor prototype = {.device = shape->device, .ndim = shape->ndim, .dtype = shape->dtype, .shape = extents};
  if (allocate(&prototype, &managed, NULL, raise_kind)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_MemoryError, "out of memory");
    return NULL;
  }
  quern_status status = quern_managed_import(managed, 0, &checked);
  if (status) raise_exchange(status);
  return status ? NULL : checked;
}

static void release_dense(void *managed) { quern_managed_release(managed); }

/* Allocates the extents in the order of memory, and makes a tensor that has them in the shape's order: the producer's own extents may
 * belong to an object of its. */
static __attribute__((noinline)) struct DLManagedTensorVersioned *allocate_permuted(DLPackManagedTensorAllocator allocate,
                                                                                   const quern_shape *shape) {
  int64_t extents[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM], own[QUERN_MAX_NDIM];
  int32_t order[QUERN_MAX_NDIM];
  for (int32_t d = 0; d < shape->ndim; d++) {
    int32_t at = d;
    for (; at > 0 && is_outside(shape, d, order[at - 1]); at--) order[at] = order[at - 1];
    order[at] = d;
  }
  for (int32_t i = 0; i < shape->ndim; i++) extents[i] = shape->shape[order[i]];
  struct DLManagedTensorVersioned *dense = allocate_dense(allocate, shape, extents), *managed = NULL;
  if (!dense) return NULL;
  for (int32_t i = 0; i < shape->ndim; i++) {
    own[order[i]] = dense->dl_tensor.shape[i];
    strides[order[i]] = dense->dl_tensor.strides[i];
  }
  DLTensor view = dense->dl_tensor;
  view.shape = own;
  view.strides = strides;
  quern_status status = quern_managed_wrap(&view, dense->flags, release_dense, dense, &managed);
  if (!status) return managed;
  raise_exchange(status);
  managed_drop(dense);
  return NULL;
}

static int make_managed(DLPackManagedTensorAllocator allocate, const quern_shape *shape, operand *result) {
  if (is_row_major(shape)) {
    int64_t extents[QUERN_MAX_NDIM];
    memcpy(extents, shape->shape, (size_t)shape->ndim * sizeof *extents);
    result->managed = allocate_dense(allocate, shape, extents);
  } else {
    result->managed = allocate_permuted(allocate, shape);
  }
  if (!result->managed) return -1;
  result->tensor = &result->managed->dl_tensor;
  result->flags = result->managed->flags;
  return 0;
}

int operand_result(const operand *like, const quern_shape *shape, operand *result) {
  const dtype_row *dtype = dtype_of(shape->dtype);
  result->managed = NULL;
  result->object = NULL;
  if (like && like->makes_numpy && dtype && dtype->numpy >= 0 && shape->device.device_type == kDLCPU) {
    result->kind = OPERAND_NUMPY;
    return numpy_make(dtype, shape, result);
  }
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
