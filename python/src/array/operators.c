/* SPDX-License-Identifier: Apache-2.0
 *
 * operators.c: see operators.h. */
#include "array/operators.h"

PyObject *operator_call(const char *name, PyObject *a, PyObject *b, PyObject *c) {
  PyObject *module = PyImport_ImportModule("quern._operators"), *function = module ? PyObject_GetAttrString(module, name) : NULL;
  PyObject *result = function ? PyObject_CallFunctionObjArgs(function, a, b, c, NULL) : NULL;
  Py_XDECREF(function);
  Py_XDECREF(module);
  return result;
}

#define BINARY(slot, name)                                                                                      \
  PyObject *array_operator_##slot(PyObject *a, PyObject *b) { return operator_call(#name, a, b, NULL); }        \
  PyObject *array_inplace_##slot(PyObject *a, PyObject *b) { return operator_call("inplace_" #name, a, b, NULL); }
#define UNARY(slot, name) \
  PyObject *array_operator_##slot(PyObject *a) { return operator_call(#name, a, NULL, NULL); }
ARRAY_BINARY_OPERATORS(BINARY)
ARRAY_UNARY_OPERATORS(UNARY)

PyObject *array_divmod(PyObject *a, PyObject *b) { return operator_call("divmod", a, b, NULL); }

static PyObject *power(const char *name, PyObject *a, PyObject *b, PyObject *modulus) {
  if (modulus != Py_None) return new_ref(Py_NotImplemented);
  return operator_call(name, a, b, NULL);
}
PyObject *array_power(PyObject *a, PyObject *b, PyObject *modulus) { return power("pow", a, b, modulus); }
PyObject *array_inplace_power(PyObject *a, PyObject *b, PyObject *modulus) { return power("inplace_pow", a, b, modulus); }

PyObject *array_compare(PyObject *a, PyObject *b, int comparison) {
  static const char *const names[] = {"less", "less_equal", "equal", "not_equal", "greater", "greater_equal"}; /* ORDER Py_LT ... Py_GE */
  return operator_call(names[comparison], a, b, NULL);
}

/* Of the object, not of its values, which change. */
Py_hash_t array_hash(PyObject *self) { return (Py_hash_t)((uintptr_t)self >> 4); }

PyObject *array_iterate(PyObject *self) { return operator_call("iterate", self, NULL, NULL); }

PyObject *array_get_items(PyObject *self, PyObject *key) { return operator_call("get_items", self, key, NULL); }

int array_set_items(PyObject *self, PyObject *key, PyObject *value) {
  PyObject *done;
  if (!value) {
    PyErr_SetString(PyExc_TypeError, "quern.Array: items cannot be deleted");
    return -1;
  }
  done = operator_call("set_items", self, key, value);
  Py_XDECREF(done);
  return done ? 0 : -1;
}

PyObject *array_matrix_transposed(PyObject *self, void *unused) {
  (void)unused;
  return operator_call("matrix_transpose", self, NULL, NULL);
}

PyObject *array_reshape(PyObject *self, PyObject *args, PyObject *keywords) {
  static char *names[] = {"shape", "copy", NULL};
  PyObject *shape, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "O|$O:reshape", names, &shape, &copy)) return NULL;
  return operator_call("reshape", self, shape, copy);
}
