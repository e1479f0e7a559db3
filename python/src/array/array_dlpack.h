/* SPDX-License-Identifier: Apache-2.0
 *
 * array_dlpack.h: DLPack's methods of quern.Array, and quern.from_dlpack. */
#ifndef QUERN_PYTHON_ARRAY_DLPACK_H
#define QUERN_PYTHON_ARRAY_DLPACK_H

#include "base/limited.h"

/* Methods of Array: __dlpack__, __dlpack_device__, to_device. */
PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);
PyObject *array_to_device(PyObject *self, PyObject *args, PyObject *keywords);

/* quern.from_dlpack(x, /, *, device=None, copy=None): METH_FASTCALL | METH_KEYWORDS. */
PyObject *array_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);

#endif
