/* SPDX-License-Identifier: Apache-2.0
 *
 * specs.h: quern.Context.load_spec. */
#ifndef QUERN_PYTHON_SPECS_H
#define QUERN_PYTHON_SPECS_H

#include "base/limited.h"

/* The method of a context_object. */
PyObject *context_load_spec(PyObject *self, PyObject *path);

#endif
