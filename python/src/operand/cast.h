/* SPDX-License-Identifier: Apache-2.0
 *
 * cast.h: inputs of a call in another dtype, by the library's op astype. */
#ifndef QUERN_PYTHON_CAST_H
#define QUERN_PYTHON_CAST_H

#include "operand/tensor_operand.h"
#include "types/dtypes.h"

/* Replaces the tensor of an input, which has been held, by a copy of the dtype, of the same layout and on the same device. The operand
 * owns the copy; its kind stays. is_small: the GIL is kept. -1: an exception. */
int operand_cast(operand *operand, const dtype_row *dtype, void *stream, int is_small);

/* By a description of such a copy, without memory. -1: an exception. */
int operand_imagine_cast(operand *operand, const dtype_row *dtype);

#endif
