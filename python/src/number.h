/* SPDX-License-Identifier: Apache-2.0
 *
 * number.h: Python's numbers as operands. */
#ifndef QUERN_PYTHON_NUMBER_H
#define QUERN_PYTHON_NUMBER_H

#include "tensor_operand.h"

/* What an op makes of numbers. */
typedef struct number_rules {
  uint32_t conditions; /* bit k: input k can only be bool */
  uint32_t counts;     /* bit k: input k is a whole number whatever the dtype (quern_op_info.counts): an int beside f16 or bf16 is i64 */
  uint8_t gives_f64;   /* whatever it takes (float_power): numbers are f64 */
} number_rules;

/* Gives the numbers among n inputs, 0-d and on the CPU, the dtype that the others, which have been read, promote to: numbers are
 * weak. A float beside integers is f32, an int beside bools i64. OverflowError, TypeError (there are no others). */
int operand_numbers(operand *operands, int32_t n, const number_rules *rules);

#endif
