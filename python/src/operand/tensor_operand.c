/* SPDX-License-Identifier: Apache-2.0
 *
 * tensor_operand.c: see tensor_operand.h. */
#include "operand/tensor_operand.h"

#include <stdarg.h>

int operand_fail(const operand *operand, PyObject *exception, const char *format, ...) {
  int is_output = operand_is_output(operand);
  int32_t number = operand->index - (is_output ? operand->info->n_in : 0) + 1;
  va_list rest;
  va_start(rest, format);
  PyObject *text = PyUnicode_FromFormatV(format, rest);
  va_end(rest);
  if (text)
    PyErr_Format(exception, "%s: %s %d (%s): %U", operand->info->name, is_output ? "output" : "input", number,
                 operand->info->args[operand->index].name, text);
  Py_XDECREF(text);
  return -1;
}
