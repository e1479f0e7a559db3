/* SPDX-License-Identifier: Apache-2.0
 *
 * gather.c: see gather.h. Each index is read once, and then checked: other threads may write what it lies in. */
#include "array/gather.h"

#include <string.h>

#include "array/array_object.h"
#include "types/items.h"

/* The lock (GIL) is released for as many bytes and more. */
#define LONG 65536

/* An array of indices, all of one shape, and the dimension that they are of. */
typedef struct index_array {
  const DLTensor *tensor;
  const char *at; /* the index of the item that is next */
  int64_t extent, step; /* of the dimension, in bytes */
} index_array;

typedef struct gathering {
  index_array indices[QUERN_MAX_NDIM];
  int32_t n;
  const DLTensor *rest; /* what is copied for each place: from the first item of the dimensions that have indices */
  int64_t wrong; /* the index that is out of bounds, of array .at_wrong */
  int32_t at_wrong;
} gathering;

/* An integer of any dtype. Those of u64 that i64 has not become the largest, which is out of bounds. */
static int64_t read_index(const DLTensor *tensor, const char *at) {
  const int is_signed = tensor->dtype.code == kDLInt;
  uint64_t value;
  uint32_t four;
  uint16_t two;
  switch (tensor->dtype.bits) {
    case 8: return is_signed ? *(const int8_t *)at : *(const uint8_t *)at;
    case 16: return memcpy(&two, at, 2), is_signed ? (int16_t)two : two;
    case 32: return memcpy(&four, at, 4), is_signed ? (int32_t)four : (int64_t)four;
    default: return memcpy(&value, at, 8), is_signed || value <= INT64_MAX ? (int64_t)value : INT64_MAX;
  }
}

/* Copies all items to row-major memory. Returns the place behind them. */
static char *copy_items(char *to, const char *from, const DLTensor *tensor, int32_t d) {
  const size_t size = tensor->dtype.bits / 8;
  if (d == tensor->ndim) return memcpy(to, from, size), to + size;
  const int64_t step = tensor->strides[d] * (int64_t)size;
  if (d + 1 == tensor->ndim && step == (int64_t)size) {
    const size_t bytes = (size_t)tensor->shape[d] * size;
    if (bytes) memcpy(to, from, bytes);
    return to + bytes;
  }
  for (int64_t i = 0; i < tensor->shape[d]; i++) to = copy_items(to, from + i * step, tensor, d + 1);
  return to;
}

/* Copies what one index of each array names. NULL: an index is out of bounds. */
static char *gather_one(gathering *g, char *to) {
  const char *from = tensor_first(g->rest);
  for (int32_t k = 0; k < g->n; k++) {
    const index_array *array = &g->indices[k];
    const int64_t index = read_index(array->tensor, array->at);
    if (index >= array->extent || index < -array->extent) return g->wrong = index, g->at_wrong = k, NULL;
    from += (index < 0 ? index + array->extent : index) * array->step;
  }
  if (g->rest->ndim) return copy_items(to, from, g->rest, 0);
  switch (g->rest->dtype.bits) { /* sizes that the compiler knows */
    case 32: return memcpy(to, from, 4), to + 4;
    case 64: return memcpy(to, from, 8), to + 8;
    default: return copy_items(to, from, g->rest, 0);
  }
}

/* Copies what the next indices name, of those along dimensions from d on. NULL: an index is out of bounds. */
static char *gather_along(gathering *g, char *to, int32_t d) {
  const DLTensor *shape = g->indices[0].tensor;
  const char *kept[QUERN_MAX_NDIM];
  if (d == shape->ndim) return gather_one(g, to);
  for (int32_t k = 0; k < g->n; k++) kept[k] = g->indices[k].at;
  for (int64_t i = 0; to && i < shape->shape[d]; i++) {
    to = d + 1 == shape->ndim ? gather_one(g, to) : gather_along(g, to, d + 1);
    for (int32_t k = 0; k < g->n; k++) {
      const DLTensor *tensor = g->indices[k].tensor;
      g->indices[k].at += tensor->strides[d] * (tensor->dtype.bits / 8);
    }
  }
  for (int32_t k = 0; k < g->n; k++) g->indices[k].at = kept[k];
  return to;
}

/* Takes an array of indices and (extent, stride in items) of its dimension. */
static int take_indices(gathering *g, PyObject *object, PyObject *dimension) {
  index_array *array = &g->indices[g->n];
  long long extent, stride;
  if (!array_check(object) || !PyTuple_Check(dimension)) return PyErr_Format(PyExc_TypeError, "_gather: indices"), -1;
  if (!PyArg_ParseTuple(dimension, "LL:_gather", &extent, &stride)) return -1;
  array->tensor = &array_managed(object)->dl_tensor;
  array->at = tensor_first(array->tensor);
  array->extent = extent;
  array->step = stride * (g->rest->dtype.bits / 8);
  const DLDataType dtype = array->tensor->dtype;
  if ((dtype.code != kDLInt && dtype.code != kDLUInt) || dtype.lanes != 1)
    return PyErr_Format(PyExc_IndexError, "quern.Array: arrays of indices have dtypes of whole numbers"), -1;
  if (array->tensor->device.device_type != kDLCPU) return PyErr_Format(PyExc_NotImplementedError, "quern.Array: indices on a device"), -1;
  g->n++;
  return 0;
}

/* _gather(out, rest, indices, dimensions): what `indices`, arrays of one shape, name: an item, or all of `rest` from it on, each, to `out`,
 * which is new and row-major. dimensions: extent and stride of each dimension that has indices; the caller knows that they are the array's. */
static PyObject *array_gather(PyObject *module, PyObject *args) {
  gathering g = {.n = 0};
  PyObject *out, *rest, *indices, *dimensions;
  (void)module;
  if (!PyArg_ParseTuple(args, "OOO!O!:_gather", &out, &rest, &PyTuple_Type, &indices, &PyTuple_Type, &dimensions)) return NULL;
  if (!array_check(out) || !array_check(rest)) return PyErr_Format(PyExc_TypeError, "_gather: expected quern.Arrays");
  const DLTensor *to = &array_managed(out)->dl_tensor;
  g.rest = &array_managed(rest)->dl_tensor;
  if (to->device.device_type != kDLCPU || g.rest->device.device_type != kDLCPU)
    return PyErr_Format(PyExc_NotImplementedError, "quern.Array: items by arrays of indices on a device; give x.to_device('cpu')");
  const Py_ssize_t n = PyTuple_Size(indices);
  if (n < 1 || n > QUERN_MAX_NDIM || PyTuple_Size(dimensions) != n) return PyErr_Format(PyExc_ValueError, "_gather: indices");
  for (Py_ssize_t k = 0; k < n; k++)
    if (take_indices(&g, PyTuple_GetItem(indices, k), PyTuple_GetItem(dimensions, k))) return NULL;

  const int64_t items = tensor_n_items(to);
  char none, *at = items ? tensor_first(to) : &none; /* indices are checked where nothing is copied, too */
  PyThreadState *state = items >= LONG / (to->dtype.bits / 8) ? PyEval_SaveThread() : NULL;
  const int is_right = tensor_n_items(g.indices[0].tensor) == 0 || gather_along(&g, at, 0);
  if (state) PyEval_RestoreThread(state);
  if (!is_right) {
    const long long wrong = g.wrong, extent = g.indices[g.at_wrong].extent;
    return PyErr_Format(PyExc_IndexError, "quern.Array: index %lld of extent %lld", wrong, extent);
  }
  Py_INCREF(Py_None);
  return Py_None;
}

int gather_add(PyObject *module) {
  static PyMethodDef functions[] = {{"_gather", array_gather, METH_VARARGS, NULL}, {NULL, NULL, 0, NULL}};
  return PyModule_AddFunctions(module, functions);
}
