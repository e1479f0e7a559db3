/* SPDX-License-Identifier: Apache-2.0
 *
 * array_make.h: new arrays and views. */
#ifndef QUERN_PYTHON_ARRAY_MAKE_H
#define QUERN_PYTHON_ARRAY_MAKE_H

#include "base/limited.h"

/* Array.T: the dimensions in the opposite order. */
PyObject *array_transposed(PyObject *self, void *unused);

/* Adds _empty, _strided and _unstack to the module. -1: an exception. */
int array_make_add(PyObject *module);

#endif
