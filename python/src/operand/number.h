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

/* Makes a 0-d CPU tensor of each number among n inputs. Numbers are weak: they take the dtype that the other inputs promote to; but
 * a float beside integers is f32, an int beside bools i64. The others have been read. -1: OverflowError, TypeError (all inputs
 * are numbers). */
int operand_numbers(operand *operands, int32_t n, const number_rules *rules);

#endif
