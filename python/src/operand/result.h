/* SPDX-License-Identifier: Apache-2.0
 *
 * result.h: new objects for the results of a call, of the kind of an operand. */
#ifndef QUERN_PYTHON_RESULT_H
#define QUERN_PYTHON_RESULT_H

#include "operand/tensor_operand.h"

/* Makes the tensor of a result of the kind of `like` (an input that is no number; NULL: there is none), in memory of NumPy for
 * NumPy, of the producer by its exchange API, else of Quern. info and index are set. -1: an exception; nothing to release. */
int operand_result(const operand *like, const quern_shape *shape, operand *result);

/* Makes the object, after the call: for other producers by from_dlpack of their namespace, if there is one, else a quern.Array.
 * NULL: an exception. The result is released in both cases. */
PyObject *operand_wrap(const operand *like, operand *result);
void operand_drop(operand *result);

#endif
