/* SPDX-License-Identifier: Apache-2.0
 *
 * op.h: quern.Op, an op as a callable. */
#ifndef QUERN_PYTHON_OP_H
#define QUERN_PYTHON_OP_H

#include <quern/quern.h>

#include "base/limited.h"

/* A new quern.Op, which takes over the op. reduces_all: its axes are by default all, though it has no keepdims. NULL: an exception, and
 * the op has been released. */
PyObject *op_new(quern_op *op, int may_compile, int reduces_all);

/* Tells a new op where it comes from, for pickling and repr: its _origin. Takes over both references, which may be NULL after an
 * exception. The op; NULL: an exception. */
PyObject *op_with_origin(PyObject *op, PyObject *origin);
int op_check(PyObject *object);

/* Makes the type and adds it to the module. -1: an exception. */
int op_add(PyObject *module);

#endif
