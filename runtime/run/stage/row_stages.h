/* SPDX-License-Identifier: Apache-2.0
 *
 * row_stages.h: compiles the values of an expression that reduces to the program of a row, with stages of the interpreter. Knows no shapes. */
#ifndef QN_ROW_STAGES_H
#define QN_ROW_STAGES_H

#include "run/stage/stage_code.h"

/* A reduction or scan of the expression, for the checks of its axes. */
typedef struct qn_row_reduction {
  int32_t axes;    /* its number in qn_expression.axes */
  uint32_t inputs; /* bit k: its argument depends on input k */
  uint32_t elements; /* bit k: it reads input k outside of other reductions */
  const quern_op *scan; /* NULL; or it is a scan, by this op, which has one axis */
} qn_row_reduction;

typedef struct qn_row_stages qn_row_stages;

/* Errors: UNSUPPORTED (a reduction of what is reduced), LIMIT, and those of qn_stage_code_make. */
quern_status qn_row_stages_build(const qn_expression *expression, const qn_typed *typed, const qn_stage_maker *by, qn_row_stages **made);
void qn_row_stages_free(qn_row_stages *stages); /* NULL is allowed */

/* The result of a row of no elements, which its stages do not give. */
void qn_row_stages_set_empty(qn_row_stages *stages, double empty);

/* The texts of its kernels, one after the other; malloc'ed. */
quern_status qn_row_stages_source(const qn_row_stages *stages, qn_generator *generator, qn_bytes *source);

const qn_row_program *qn_row_stages_program(const qn_row_stages *stages);
int32_t qn_row_stages_reductions(const qn_row_stages *stages, const qn_row_reduction **reductions);

#endif
