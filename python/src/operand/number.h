/* SPDX-License-Identifier: Apache-2.0
 *
 * number.h: Python's numbers as operands. */
#ifndef QUERN_PYTHON_NUMBER_H
#define QUERN_PYTHON_NUMBER_H

#include "operand/tensor_operand.h"

/* How an op converts numbers. */
typedef struct number_rules {
  uint32_t conditions; /* bit k: input k can only be bool */
  uint32_t counts;     /* quern_op_info.counts: where bit k is set, an int as input k beside f16 or bf16 is i64 */
  uint8_t gives_f64;   /* the result is f64 always (float_power): numbers are f64 */
} number_rules;

/* Makes the numbers among n inputs 0-d CPU tensors of the dtype that the other inputs, already read, promote to: numbers are
 * weak. A float beside integers is f32 or f64, an int beside bools i64. -1: OverflowError, TypeError (there are only numbers). */
int operand_numbers(operand *operands, int32_t n, const number_rules *rules);

#endif
