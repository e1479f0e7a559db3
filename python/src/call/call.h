/* SPDX-License-Identifier: Apache-2.0
 *
 * call.h: one call of an op: takes operands, makes results, runs the kernels, without the GIL if they take long. */
#ifndef QUERN_PYTHON_CALL_H
#define QUERN_PYTHON_CALL_H

#include "call/arguments.h"

/* Computes. The result, or the tuple of the results: the objects given as outputs, or new ones. NULL: an exception.
 * Both set the parameter of the axes. */
PyObject *call_run(op_object *op, arguments *given);

/* The library's explanation of such a call, as a dict. NULL: an exception. */
PyObject *call_explain(op_object *op, arguments *given);

#endif
