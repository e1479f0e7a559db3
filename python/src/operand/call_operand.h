/* SPDX-License-Identifier: Apache-2.0
 *
 * call_operand.h: takes and holds the tensors of Python objects for one call. Only this file tells kinds of objects apart. */
#ifndef QUERN_PYTHON_CALL_OPERAND_H
#define QUERN_PYTHON_CALL_OPERAND_H

#include "operand/tensor_operand.h"

/* An operand is taken in steps; each step is done for all operands before the next. Foreign code may change the objects of
 * borrowed tensors, so steps that may run it come first, and borrowing comes last. Each returns 0, or -1 with an exception; the
 * operand must be released in both cases.
 *
 * operand_take finds the kind, asks whether the tensor may be used, and imports tensors of Python's protocols. index: among
 * info->args. stream: given to producers, as quern_call.stream. 1: the object is foreign (operand/foreign.h); no exception. */
int operand_take(PyObject *object, const quern_op_info *info, int32_t index, void *stream, operand *operand);

/* Reads borrowed tensors. Runs no foreign code, but may set operand->doubt. Does nothing for numbers. */
int operand_read(operand *operand);

/* Takes a reference to a borrowed tensor: needed before foreign code runs, the GIL is released, or an object is made. */
int operand_hold(operand *operand);

/* Resolves doubts, and gives producers on devices the stream of the work. CPU operands without a doubt do not need it. Runs
 * foreign code. The operands have been held. */
int operand_settle(operand *operand, void *stream);

#endif
