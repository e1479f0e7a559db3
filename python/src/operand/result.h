/* SPDX-License-Identifier: Apache-2.0
 *
 * result.h: new objects for the results of a call, of the kind of an operand. */
#ifndef QUERN_PYTHON_RESULT_H
#define QUERN_PYTHON_RESULT_H

#include "operand/tensor_operand.h"

/* Allocates a result's tensor. like: the input that decides its kind; NULL: none, all inputs are numbers. NumPy allocates for
 * NumPy's arrays, a producer with the exchange API for its own, else Quern. result->info and index are set. -1: an exception, and
 * nothing to release. */
int operand_result(const operand *like, const quern_shape *shape, operand *result);

/* Makes the result's object, after the call. A producer without the exchange API gets it from from_dlpack of its namespace or
 * package; without that it is a quern.Array. NULL: an exception. The result is released in both cases. */
PyObject *operand_wrap(const operand *like, operand *result);

/* Releases a result that gets no object. */
void operand_drop(operand *result);

#endif
