/* SPDX-License-Identifier: Apache-2.0
 *
 * remedy.c: see remedy.h. */
#include "base/remedy.h"

PyObject *remedy_of(const char *function, PyObject *object) {
  PyObject *module = PyImport_ImportModule("quern._remedies");
  PyObject *answer = module ? PyObject_CallMethod(module, function, "(O)", object) : NULL;
  Py_XDECREF(module);
  if (!answer && !clear_refusal()) return NULL;
  if (answer && PyUnicode_Check(answer)) return answer;
  Py_XDECREF(answer);
  return PyUnicode_FromString("");
}

/* Whether an exception says that an object is not handed over. */
static int is_refusal(void) {
  PyObject *const classes[] = {PyExc_AttributeError, PyExc_BufferError, PyExc_RuntimeError, PyExc_TypeError, PyExc_ValueError};
  if (PyErr_ExceptionMatches(PyExc_RecursionError)) return 0;
  for (size_t k = 0; k < sizeof classes / sizeof *classes; k++)
    if (PyErr_ExceptionMatches(classes[k])) return 1;
  return 0;
}

PyObject *remedy_of_refusal(PyObject *object) {
  PyObject *type, *value, *traceback, *remedy, *reason, *text = NULL;
  if (!PyErr_Occurred() || !is_refusal()) return NULL;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_NormalizeException(&type, &value, &traceback);
  remedy = remedy_of("of_refusal", object);
  reason = remedy && PyUnicode_GetLength(remedy) > 0 ? PyObject_Str(value) : NULL;
  if (reason) text = PyObject_CallMethod(reason, "rstrip", "s", ".");
  if (text) PyUnicode_Append(&text, remedy);
  Py_XDECREF(reason);
  Py_XDECREF(remedy);
  if (!text) {
    PyErr_Restore(type, value, traceback); /* replaces the current exception */
    return NULL;
  }
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
  return text;
}
