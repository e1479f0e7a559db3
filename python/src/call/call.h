/* SPDX-License-Identifier: Apache-2.0
 *
 * call.h: one call of an op: takes operands, makes results, runs the kernels, without the GIL if they take long. */
#ifndef QUERN_PYTHON_CALL_H
#define QUERN_PYTHON_CALL_H

#include "call/arguments.h"

/* Computes. The result, or the tuple of the results: the objects given as outputs, or new ones. NULL: an exception; or, with
 * given->is_foreign, none: objects of other libraries must be converted first (operand/foreign.h).
 * Both set the parameter of the axes. */
PyObject *call_run(op_object *op, arguments *given);

/* The library's explanation of such a call, a quern.Explanation. NULL: as above. */
PyObject *call_explain(op_object *op, arguments *given);

/* For the package's modules: the operands of such a call, with numbers and inputs as they are converted, its results, and its
 * parameters: ((dtype, shape, item of a number or None) of each input, the same of each output, bytes: three 64-bit integers for each
 * parameter up to the last one given, and to the axes). Computes nothing. NULL: as above. */
PyObject *call_infer(op_object *op, arguments *given);

/* The explanation of a call like the last one, a quern.Explanation; None: there was none, or it cannot be explained. */
PyObject *call_explain_last(op_object *op);

#endif
