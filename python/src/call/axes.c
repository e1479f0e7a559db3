/* SPDX-License-Identifier: Apache-2.0
 *
 * axes.c: see axes.h. */
#include "call/axes.h"

#include <string.h>

/* ---- Reading ---- */

static int refuse_kind(PyObject *value, const char *name) {
  const char *remedy = "";
  if (PyUnicode_Check(value)) remedy = "; of a named dimension give x.get_axis_num(name)";
  else if (strcmp(name, "max") == 0) remedy = "; of two operands write maximum(x, y)";
  else if (strcmp(name, "min") == 0) remedy = "; of two operands write minimum(x, y)";
  PyErr_Format(PyExc_TypeError, "%s: axis: %.100R, expected an int, a tuple of ints or None%s", name, value, remedy);
  return -1;
}

/* A bool is refused, as a mistake. */
static int take_one(PyObject *value, const char *name, axis_request *request) {
  int overflow = 0;
  int64_t axis;
  if (PyBool_Check(value) || !PyIndex_Check(value)) return refuse_kind(value, name);
  if (PyLong_Check(value)) {
    axis = PyLong_AsLongLongAndOverflow(value, &overflow);
  } else {
    PyObject *integer = PyNumber_Index(value);
    if (!integer) /* an array of several numbers */
      return PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError) ? refuse_kind(value, name) : -1;
    axis = PyLong_AsLongLongAndOverflow(integer, &overflow);
    Py_DECREF(integer);
  }
  if (overflow || axis >= QUERN_MAX_NDIM || axis < -QUERN_MAX_NDIM) {
    if (!request->beyond) request->beyond = value;
    return 0;
  }
  uint32_t *side = axis < 0 ? &request->from_end : &request->from_start, bit = (uint32_t)1 << (axis < 0 ? -1 - axis : axis);
  if (*side & bit) {
    PyErr_Format(PyExc_ValueError, "%s: axis: %d is there twice", name, (int)axis);
    return -1;
  }
  *side |= bit;
  return 0;
}

int axes_take(PyObject *value, const char *name, axis_request *request) {
  *request = (axis_request){.kind = value == Py_None ? AXIS_ALL : AXIS_GIVEN};
  if (value == Py_None) return 0;
  if (!PyTuple_Check(value)) return take_one(value, name, request);
  for (Py_ssize_t k = 0; k < PyTuple_Size(value); k++)
    if (take_one(PyTuple_GetItem(value, k), name, request)) return -1;
  return 0;
}

/* ---- The mask ---- */

static int refuse(const char *name, PyObject *axis, int32_t ndim) {
  if (axis && ndim)
    PyErr_Format(PyExc_ValueError, "%s: axis %.100R is out of bounds for %d dimension%s: expected %d to %d", name, axis,
                 (int)ndim, ndim == 1 ? "" : "s", (int)-ndim, (int)ndim - 1);
  else if (axis)
    PyErr_Format(PyExc_ValueError, "%s: axis %.100R is out of bounds for 0 dimensions: expected () or None", name, axis);
  return -1;
}

static int refuse_number(const char *name, int axis, int32_t ndim) {
  PyObject *number = PyLong_FromLong(axis);
  refuse(name, number, ndim);
  Py_XDECREF(number);
  return -1;
}

int axes_mask(const axis_request *request, const char *name, int32_t ndim, int64_t *mask) {
  const uint32_t all = (uint32_t)((UINT64_C(1) << ndim) - 1);
  uint32_t axes = request->from_start;
  if (request->beyond) return refuse(name, request->beyond, ndim);
  if (request->from_start & ~all) return refuse_number(name, __builtin_ctz(request->from_start & ~all), ndim);
  if (request->from_end & ~all) return refuse_number(name, -1 - __builtin_ctz(request->from_end & ~all), ndim);
  for (uint32_t rest = request->from_end; rest; rest &= rest - 1) {
    const int axis = ndim - 1 - __builtin_ctz(rest);
    if (axes >> axis & 1) {
      PyErr_Format(PyExc_ValueError, "%s: axis: %d and %d are the same of %d dimensions", name, axis, axis - ndim, (int)ndim);
      return -1;
    }
    axes |= (uint32_t)1 << axis;
  }
  *mask = request->kind == AXIS_ALL ? all : axes;
  return 0;
}
