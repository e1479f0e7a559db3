/* SPDX-License-Identifier: Apache-2.0
 *
 * stage_code.h: the values of a stage of a row, or of a reduction's combine -> steps of the interpreter, and a compiled kernel when it is
 * made. Knows no shapes. */
#ifndef QN_STAGE_CODE_H
#define QN_STAGE_CODE_H

#include "core/row/row_program.h"
#include "jit/jit.h"
#include "run/interpret/interpreter.h"

/* The digest of the specs that ops come from. */
typedef qn_digest qn_row_specs(int32_t n, const quern_op *const *ops);

/* What stages are made with. */
typedef struct qn_stage_maker {
  qn_generator *generator;
  qn_jit *jit;
  qn_row_specs *specs;
} qn_stage_maker;

/* All zero before it is made. */
typedef struct qn_stage_code {
  qn_row_steps steps; /* first: the engine's view */
  qn_jit *jit;
  qn_digest specs;
  char *text;              /* what is compiled: stage_text.h */
  _Atomic(qn_code *) code; /* NULL: not requested yet */
  int32_t n_in, n_out;
  qn_interpreted *interpreted;
  uint8_t dtypes[QN_MAX_OPERANDS]; /* of the operands: inputs, then outputs */
  uint8_t classes[QN_MAX_OPERANDS]; /* set by the owner before it is used */
} qn_stage_code;

/* name: for messages. Errors: LIMIT, MEMORY, and those of qn_interpreter_build. */
quern_status qn_stage_code_make(qn_stage_code *made, const char *name, int32_t n_in, const qn_typed *typed, const qn_stage_maker *by);
/* The same of a program of qn_generator_program by itself, `program->name`, an op's: of contiguous operands, inputs first, of program->dtypes. */
quern_status qn_stage_code_of_program(qn_stage_code *made, const qn_variant *program, const quern_op *op, int32_t n_in, int32_t n_out,
                                      const qn_stage_maker *by);
void qn_stage_code_free(qn_stage_code *made); /* what it points to */

/* The text that is compiled, of a function of that name. */
quern_status qn_stage_code_source(const qn_stage_code *of, qn_generator *generator, const char *symbol, qn_bytes *source);

/* The compiled kernel if there is one; asks for none. */
qn_kernel *qn_stage_code_kernel(const qn_stage_code *of);

#endif
