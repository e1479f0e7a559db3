/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.c: see foreign.h. */
#include "operand/foreign.h"

#include <string.h>

static int is_of_module(PyObject *object, const char *module) {
  PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
  const int is_one = name && PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, module) == 0;
  Py_XDECREF(name);
  PyErr_Clear();
  return is_one;
}

int foreign_is_immutable(PyObject *object) {
  PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__module__");
  PyObject *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8String(name) : NULL;
  const int is_one = text && strncmp(PyBytes_AsString(text), "jaxlib.", 7) == 0;
  Py_XDECREF(text);
  Py_XDECREF(name);
  PyErr_Clear();
  return is_one;
}

int foreign_is_traced(PyObject *const *objects, Py_ssize_t n) {
  for (Py_ssize_t k = 0; k < n; k++)
    if (is_of_module(objects[k], "quern._traced")) return 1;
  return 0;
}

/* A function of quern._foreign, called with the object. */
static PyObject *ask(const char *function, PyObject *object) {
  PyObject *module = PyImport_ImportModule("quern._foreign");
  PyObject *answer = module ? PyObject_CallMethod(module, function, "(O)", object) : NULL;
  Py_XDECREF(module);
  return answer;
}

int foreign_has_tensors(PyObject *object) {
  const int knows = is_of_module(object, "pyarrow.lib") ? foreign_knows(object) : 0;
  PyErr_Clear();
  return knows > 0;
}

int foreign_knows(PyObject *object) {
  PyObject *answer = ask("knows", object);
  const int knows = answer ? PyObject_IsTrue(answer) : -1;
  Py_XDECREF(answer);
  return knows;
}

static PyObject *positional(PyObject *const *args, Py_ssize_t n) {
  PyObject *tuple = PyTuple_New(n);
  for (Py_ssize_t k = 0; tuple && k < n; k++)
    if (PyTuple_SetItem(tuple, k, new_ref(args[k]))) Py_CLEAR(tuple);
  return tuple;
}

static PyObject *named(PyObject *const *values, PyObject *keywords) {
  PyObject *dict = PyDict_New();
  for (Py_ssize_t k = 0; dict && keywords && k < PyTuple_Size(keywords); k++)
    if (PyDict_SetItem(dict, PyTuple_GetItem(keywords, k), values[k])) Py_CLEAR(dict);
  return dict;
}

PyObject *foreign_call(PyObject *op, const char *method, PyObject *const *args, Py_ssize_t n, PyObject *keywords) {
  PyObject *module = NULL, *result = NULL, *tuple = positional(args, n), *dict = tuple ? named(args + n, keywords) : NULL;
  if (dict) module = PyImport_ImportModule("quern._foreign");
  if (module && Py_EnterRecursiveCall(" while an operand is converted") == 0) {
    result = PyObject_CallMethod(module, "call", "OzOO", op, method, tuple, dict);
    Py_LeaveRecursiveCall();
  }
  Py_XDECREF(module);
  Py_XDECREF(dict);
  Py_XDECREF(tuple);
  return result;
}
