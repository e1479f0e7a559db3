/* SPDX-License-Identifier: Apache-2.0
 *
 * evaluate.h: quern.Context.evaluate. */
#ifndef QUERN_PYTHON_EVALUATE_H
#define QUERN_PYTHON_EVALUATE_H

#include "base/limited.h"

/* The method of a context_object. */
PyObject *context_evaluate(PyObject *self, PyObject *const *args, Py_ssize_t n, PyObject *keywords);

#endif
