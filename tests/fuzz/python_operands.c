/* SPDX-License-Identifier: Apache-2.0
 *
 * python_operands.c: the target operands: an interpreter in libFuzzer's program, which hands its bytes to operands.py, so that the
 * package's module and the library are instrumented. PYTHONPATH: the build's package and tests/fuzz. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

static PyObject *one;

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc;
  (void)argv;
  Py_InitializeEx(0);
  PyObject *module = PyImport_ImportModule("operands");
  one = module ? PyObject_GetAttrString(module, "one") : NULL;
  Py_XDECREF(module);
  if (!one) {
    PyErr_Print();
    exit(1);
  }
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  PyObject *result = PyObject_CallFunction(one, "y#", (const char *)bytes, (Py_ssize_t)size);
  if (!result) {
    PyErr_Print();
    abort();
  }
  Py_DECREF(result);
  return 0;
}
