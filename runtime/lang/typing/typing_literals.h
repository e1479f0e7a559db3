/* SPDX-License-Identifier: Apache-2.0
 *
 * typing_literals.h: what is made of literals alone is a literal: a number without a dtype, or a constant condition. Calls are computed
 * by the library's kernels, in i64 where all arguments are integers and the op takes them, else in f64. gen/graph/body/literals.lua
 * computes the same. */
#ifndef QN_TYPING_LITERALS_H
#define QN_TYPING_LITERALS_H

#include "lang/typing/typing_parts.h"

/* These return 1 with *made; 0: x are not literals alone; -1: failed, with the status set. */
int qn_typing_literal_op(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made);
int qn_typing_literal_function(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made);

/* A comparison of numbers or of constant conditions. */
int qn_typing_literal_compare(qn_typing *t, const qn_typing_operand *x, qn_typing_operand *made);

/* "and", "or" and "xor" (a qn_sign) of constant conditions. */
int qn_typing_literal_logic(qn_typing *t, qn_sign sign, int32_t a, int32_t b, qn_typing_operand *made);

/* Whether a value is a constant condition; *holds: which. */
int qn_typing_is_constant_condition(const qn_typing *t, int32_t value, int *holds);

#endif
