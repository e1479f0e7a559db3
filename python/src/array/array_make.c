/* SPDX-License-Identifier: Apache-2.0
 *
 * array_make.c: new arrays and views, for array_api.py. */
#include "array/array_make.h"

#include "array/array_object.h"
#include "base/errors.h"
#include "types/device_object.h"
#include "types/dtypes.h"

/* The extents in a tuple. -1: an exception. */
static int shape_of(PyObject *tuple, int64_t shape[QUERN_MAX_NDIM], int32_t *ndim) {
  const Py_ssize_t n = PyTuple_Size(tuple);
  if (n > QUERN_MAX_NDIM) {
    PyErr_Format(PyExc_ValueError, "empty: %zd dimensions, at most %d are possible", n, QUERN_MAX_NDIM);
    return -1;
  }
  for (Py_ssize_t d = 0; d < n; d++) {
    shape[d] = PyNumber_AsSsize_t(PyTuple_GetItem(tuple, d), PyExc_OverflowError);
    if (shape[d] == -1 && PyErr_Occurred()) return -1;
    if (shape[d] < 0) {
      PyErr_Format(PyExc_ValueError, "empty: extent %lld of dimension %zd", (long long)shape[d], d);
      return -1;
    }
  }
  *ndim = (int32_t)n;
  return 0;
}

/* _empty(shape, dtype, device): shape is a tuple; dtype any name of one; device any name of one, or None. */
static PyObject *array_empty(PyObject *module, PyObject *args) {
  int64_t shape[QUERN_MAX_NDIM];
  DLTensor prototype = {.device = {kDLCPU, 0}, .shape = shape};
  struct DLManagedTensorVersioned *managed = NULL;
  PyObject *tuple, *dtype, *device;
  const dtype_row *row;
  (void)module;
  if (!PyArg_ParseTuple(args, "O!OO:empty", &PyTuple_Type, &tuple, &dtype, &device)) return NULL;
  if (shape_of(tuple, shape, &prototype.ndim) || !(row = dtype_from_object(dtype))) return NULL;
  if (device != Py_None && device_from_object(device, "empty: device", &prototype.device)) return NULL;
  prototype.dtype = dtype_dlpack(row);
  return quern_managed_alloc(&prototype, &managed, NULL, raise_kind) ? NULL : array_new(managed);
}

static PyObject *view(PyObject *source, const DLTensor *tensor) {
  struct DLManagedTensorVersioned *managed = holder_view(array_holder(source), tensor);
  return managed ? array_new(managed) : NULL;
}

PyObject *array_transposed(PyObject *self, void *unused) {
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  DLTensor tensor = array_managed(self)->dl_tensor;
  (void)unused;
  for (int d = 0; d < tensor.ndim; d++) {
    shape[d] = tensor.shape[tensor.ndim - 1 - d];
    strides[d] = tensor.strides[tensor.ndim - 1 - d];
  }
  tensor.shape = shape;
  tensor.strides = strides;
  return view(self, &tensor);
}

/* Moves a tensor by `bytes`. data may be a handle, so byte_offset is changed, unless it would become negative. */
static void move(DLTensor *tensor, int64_t bytes) {
  if (bytes >= 0 || tensor->byte_offset >= 0 - (uint64_t)bytes) tensor->byte_offset += (uint64_t)bytes;
  else tensor->data = (void *)((uintptr_t)tensor->data + (uintptr_t)bytes);
}

/* _unstack(array): a tuple of the arrays along the first dimension. */
static PyObject *array_unstack(PyObject *module, PyObject *self) {
  const DLTensor *tensor;
  PyObject *rows;
  (void)module;
  if (!array_check(self)) return PyErr_Format(PyExc_TypeError, "unstack: %.200R, expected a quern.Array", self);
  tensor = &array_managed(self)->dl_tensor;
  if (tensor->ndim == 0) return PyErr_Format(PyExc_ValueError, "unstack: x has 0 dimensions, expected 1 or more");
  rows = PyTuple_New((Py_ssize_t)tensor->shape[0]);
  for (int64_t i = 0; rows && i < tensor->shape[0]; i++) {
    DLTensor row = *tensor;
    PyObject *object;
    row.ndim--;
    row.shape++;
    row.strides++;
    move(&row, (int64_t)((uint64_t)i * (uint64_t)tensor->strides[0] * (row.dtype.bits / 8)));
    object = view(self, &row);
    if (object) {
      PyTuple_SetItem(rows, (Py_ssize_t)i, object);
    } else {
      Py_DECREF(rows);
      rows = NULL;
    }
  }
  return rows;
}

/* _strided(array, shape, strides, first): a view of the items from `first` on, in items; the caller knows that they are the array's. */
static PyObject *array_strided(PyObject *module, PyObject *args) {
  int64_t shape[QUERN_MAX_NDIM], strides[QUERN_MAX_NDIM];
  PyObject *self, *extents, *steps;
  long long first;
  (void)module;
  if (!PyArg_ParseTuple(args, "OO!O!L:_strided", &self, &PyTuple_Type, &extents, &PyTuple_Type, &steps, &first)) return NULL;
  if (!array_check(self)) return PyErr_Format(PyExc_TypeError, "_strided: %.200R, expected a quern.Array", self);
  DLTensor tensor = array_managed(self)->dl_tensor;
  if (shape_of(extents, shape, &tensor.ndim)) return NULL;
  if (PyTuple_Size(steps) != tensor.ndim) return PyErr_Format(PyExc_ValueError, "_strided: as many strides as extents");
  for (int32_t d = 0; d < tensor.ndim; d++) {
    strides[d] = PyLong_AsLongLong(PyTuple_GetItem(steps, d));
    if (strides[d] == -1 && PyErr_Occurred()) return NULL;
  }
  tensor.shape = shape;
  tensor.strides = strides;
  move(&tensor, (int64_t)((uint64_t)first * (tensor.dtype.bits / 8)));
  return view(self, &tensor);
}

/* _part(array, k): a view of the real (0) or the imaginary parts (1) of complex items. */
static PyObject *array_part(PyObject *module, PyObject *args) {
  int64_t strides[QUERN_MAX_NDIM];
  PyObject *self;
  int k;
  (void)module;
  if (!PyArg_ParseTuple(args, "Oi:_part", &self, &k)) return NULL;
  if (!array_check(self) || array_managed(self)->dl_tensor.dtype.code != kDLComplex)
    return PyErr_Format(PyExc_TypeError, "_part: %.200R, expected a complex quern.Array", self);
  DLTensor tensor = array_managed(self)->dl_tensor;
  tensor.dtype.code = kDLFloat;
  tensor.dtype.bits /= 2;
  for (int32_t d = 0; d < tensor.ndim; d++) strides[d] = 2 * tensor.strides[d];
  tensor.strides = strides;
  move(&tensor, k ? tensor.dtype.bits / 8 : 0);
  return view(self, &tensor);
}

int array_make_add(PyObject *module) {
  static PyMethodDef functions[] = {
      {"_empty", array_empty, METH_VARARGS, NULL},
      {"_part", array_part, METH_VARARGS, NULL},
      {"_strided", array_strided, METH_VARARGS, NULL},
      {"_unstack", array_unstack, METH_O, NULL},
      {NULL, NULL, 0, NULL},
  };
  return PyModule_AddFunctions(module, functions);
}
