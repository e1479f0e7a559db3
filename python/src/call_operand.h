/* SPDX-License-Identifier: Apache-2.0
 *
 * call_operand.h: tensors of Python objects for one call, had and held. The only place that tells kinds of objects apart. */
#ifndef QUERN_PYTHON_CALL_OPERAND_H
#define QUERN_PYTHON_CALL_OPERAND_H

#include "tensor_operand.h"

/* An operand is had in steps, each for all operands before the next: foreign code may change the objects that others have been
 * borrowed from, so what may run any comes first, and what is borrowed comes last. Each returns 0, or -1 with an exception; the
 * operand is to be released in both cases.
 *
 * operand_take tells the kind, asks whether the tensor is handed over at all, and imports what comes by Python's protocols.
 * index: among info->args. stream: for producers that are told, as quern_call.stream. */
int operand_take(PyObject *object, const quern_op_info *info, int32_t index, void *stream, operand *operand);

/* Reads the tensors that are borrowed. Runs no foreign code, but may leave a doubt. Nothing for numbers. */
int operand_read(operand *operand);

/* Takes a share in a tensor that is borrowed: before foreign code runs, the GIL is released, an object is made. */
int operand_hold(operand *operand);

/* Settles what a CPU's operand without a doubt needs not: asks for what is in doubt, tells producers the stream that the work
 * goes on. Runs foreign code. The operands have been held. */
int operand_settle(operand *operand, void *stream);

#endif
