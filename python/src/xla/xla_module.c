/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_module.c: see xla_module.h. */
#include "xla/xla_module.h"

#include <string.h>

#include "base/errors.h"
#include "call/op_object.h"
#include "op/op.h"
#include "xla/xla_call.h"
#include "xla/xla_ops.h"

static PyObject *target(PyObject *module, PyObject *platform) {
  xla_handler *handler = PyUnicode_Check(platform) && PyUnicode_CompareWithASCIIString(platform, "CUDA") == 0 ? xla_call_cuda : xla_call_cpu;
  void *pointer;
  (void)module;
  memcpy(&pointer, &handler, sizeof pointer);
  return PyCapsule_New(pointer, "xla._CUSTOM_CALL_TARGET", NULL);
}

static PyObject *keep(PyObject *module, PyObject *args) {
  const char *key;
  Py_ssize_t n;
  PyObject *op;
  (void)module;
  if (!PyArg_ParseTuple(args, "s#O:_xla_keep", &key, &n, &op)) return NULL;
  if (!op_check(op)) return PyErr_Format(PyExc_TypeError, "_xla_keep: %.100R, expected a quern.Op", op);
  if (!xla_ops_has(key, (size_t)n)) {
    const quern_status status = xla_ops_put(key, (size_t)n, ((op_object *)op)->op);
    if (status) return raise_status(status);
    Py_INCREF(op); /* for good */
  }
  Py_RETURN_NONE;
}

int xla_add(PyObject *module) {
  static PyMethodDef functions[] = {
      {"_xla_target", target, METH_O, NULL},
      {"_xla_keep", keep, METH_VARARGS, NULL},
      {NULL, NULL, 0, NULL},
  };
  return PyModule_AddFunctions(module, functions);
}
