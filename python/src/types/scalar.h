/* SPDX-License-Identifier: Apache-2.0
 *
 * scalar.h: the library's numbers (quern_scalar) from Python's, and back. */
#ifndef QUERN_PYTHON_SCALAR_H
#define QUERN_PYTHON_SCALAR_H

#include <quern/quern.h>

#include "base/limited.h"

/* Converts Python's numbers, NumPy's scalars, tensors of one item. Integers beyond i64 and u64 become floats. -1: OverflowError,
 * TypeError, or an exception of foreign code. */
int scalar_from_object(PyObject *object, quern_scalar *scalar);

/* A new int, float or complex; None for QUERN_NONE. */
PyObject *scalar_object(const quern_scalar *scalar);

#endif
