/* SPDX-License-Identifier: Apache-2.0
 *
 * call.h: one call of an op: operands are had, results made, the kernels run without the GIL where they take their time. */
#ifndef QUERN_PYTHON_CALL_H
#define QUERN_PYTHON_CALL_H

#include "arguments.h"

/* Computes. The result, or the tuple of the results: the objects given as outputs, or new ones. NULL: an exception. */
PyObject *call_run(op_object *op, const arguments *given);

/* How that would run: the library's lines as a dict. NULL: an exception. */
PyObject *call_explain(op_object *op, const arguments *given);

#endif
