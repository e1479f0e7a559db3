/* SPDX-License-Identifier: Apache-2.0
 *
 * scalar.c: see scalar.h. */
#include "types/scalar.h"

static int from_float(PyObject *number, quern_scalar *scalar) {
  *scalar = (quern_scalar){.kind = QUERN_F64};
  scalar->v.f[0] = PyFloat_AsDouble(number); /* takes an int, too: OverflowError */
  return scalar->v.f[0] == -1 && PyErr_Occurred() ? -1 : 0;
}

static int from_integer(PyObject *integer, quern_scalar *scalar) {
  int overflow;
  *scalar = (quern_scalar){.kind = QUERN_I64};
  scalar->v.i = PyLong_AsLongLongAndOverflow(integer, &overflow);
  if (!overflow) return scalar->v.i == -1 && PyErr_Occurred() ? -1 : 0;
  scalar->kind = QUERN_U64;
  scalar->v.u = PyLong_AsUnsignedLongLong(integer);
  if (scalar->v.u != UINT64_MAX || !PyErr_Occurred()) return 0;
  PyErr_Clear();
  return from_float(integer, scalar);
}

int scalar_from_object(PyObject *object, quern_scalar *scalar) {
  if (PyLong_Check(object)) return from_integer(object, scalar);
  if (PyComplex_Check(object)) {
    *scalar = (quern_scalar){.kind = QUERN_C128, .v.f = {PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)}};
    return 0;
  }
  if (!PyFloat_Check(object) && PyIndex_Check(object)) {
    PyObject *integer = PyNumber_Index(object);
    int failed = integer ? from_integer(integer, scalar) : -1;
    Py_XDECREF(integer);
    if (!failed || !PyErr_ExceptionMatches(PyExc_TypeError)) return failed;
    PyErr_Clear(); /* an array of one float raises TypeError */
  }
  return from_float(object, scalar);
}

PyObject *scalar_object(const quern_scalar *scalar) {
  switch (scalar->kind) {
    case QUERN_I64: return PyLong_FromLongLong(scalar->v.i);
    case QUERN_U64: return PyLong_FromUnsignedLongLong(scalar->v.u);
    case QUERN_F64: return PyFloat_FromDouble(scalar->v.f[0]);
    case QUERN_C128: return PyComplex_FromDoubles(scalar->v.f[0], scalar->v.f[1]);
    default: return new_ref(Py_None);
  }
}
