/* SPDX-License-Identifier: Apache-2.0
 *
 * interpreter.h: the values of an expression -> a program of built kernels, which needs no compiler. Ops of specs are split
 * into primitives by the generator. Knows no shapes and no tensors. */
#ifndef QN_INTERPRETER_H
#define QN_INTERPRETER_H

#include "core/op/params.h"
#include "toolchain/generator.h"
#include "lang/typing/typing.h"
#include "run/interpret/program.h"

/* A program and the memory that it points to. */
typedef struct qn_interpreted {
  qn_program program;
  uint8_t value[QN_MAX_OPERANDS]; /* qn_dtype of each operand's block: inputs, then outputs */
  int32_t n_slots;
  qn_slot slots[QN_MAX_SLOTS]; /* sorted by parameter, then dtype: the order of compiled kernels, too */
  uint8_t heavy, n_heavy; /* n_heavy: nodes that are heavy by themselves, at most 255 */
} qn_interpreted;

/* Errors: LIMIT (more values at a time than a slice's stack holds, or more slots), MEMORY, and the generator's. */
quern_status qn_interpreter_build(const qn_expression *expression, const qn_typed *typed, qn_generator *generator,
                                  qn_interpreted **interpreted);
void qn_interpreter_free(qn_interpreted *interpreted);

#endif
