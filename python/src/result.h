/* SPDX-License-Identifier: Apache-2.0
 *
 * result.h: new objects for the results of a call, of the kind of an operand. */
#ifndef QUERN_PYTHON_RESULT_H
#define QUERN_PYTHON_RESULT_H

#include "tensor_operand.h"

/* A result of the kind of `like` (an input that is no number; NULL: there is none): its tensor to be written, in memory that is
 * NumPy's for NumPy, the producer's own by its exchange API, else Quern's. info and index are set. -1: nothing to give up. */
int operand_result(const operand *like, const quern_shape *shape, operand *result);

/* Makes the object, after the call: for other producers by their namespace's from_dlpack, where they have one, else a
 * quern.Array. NULL: an exception; the result is given up in both cases. */
PyObject *operand_wrap(const operand *like, operand *result);
void operand_drop(operand *result);

#endif
