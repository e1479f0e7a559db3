/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign.h: operands that are no tensors by themselves, and how a call with them goes on: the module quern._foreign converts
 * them, calls the op once more, and gives the results back as their kind. They are pandas', xarray's and pyarrow's objects, lists,
 * numbers alone, and what @quern.fuse traces. */
#ifndef QUERN_PYTHON_FOREIGN_H
#define QUERN_PYTHON_FOREIGN_H

#include "base/limited.h"

/* Whether the object is converted though it has __dlpack__ (pyarrow's arrays): no exception. */
int foreign_has_tensors(PyObject *object);

/* Whether the object is one of these: 1, 0; -1: an exception. */
int foreign_knows(PyObject *object);

/* Whether the object is an array that its library never changes, which its DLPack does not say (JAX's): no exception. */
int foreign_is_immutable(PyObject *object);

/* Whether one of the objects is traced by @quern.fuse. No exception. */
int foreign_is_traced(PyObject *const *objects, Py_ssize_t n);

/* The op, or its method of that name (NULL: the op itself), called with these arguments of a vectorcall, converted. */
PyObject *foreign_call(PyObject *op, const char *method, PyObject *const *args, Py_ssize_t n, PyObject *keywords);

#endif
