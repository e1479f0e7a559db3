/* SPDX-License-Identifier: Apache-2.0
 *
 * row_call.h: a call that reduces, from operands to a decision. Ops of the kind row and expressions share it. */
#ifndef QN_ROW_CALL_H
#define QN_ROW_CALL_H

#include "core/op/backend.h"
#include "core/op/decide.h"
#include "core/row/row_program.h"

/* Generated: the backend of rows on the CPU; NULL: there are no kernels for it. */
extern const qn_backend *const qn_row_backend;

/* The operands of a call, read, and what it reduces. */
typedef struct qn_row_operands {
  qn_tensor tensor[QN_ROW_MAX_VALUES]; /* inputs, then outputs */
  uint8_t dtype[QN_ROW_MAX_VALUES];
  int32_t ndim;
  uint8_t has_data;  /* no data pointer is NULL */
  uint32_t axes;     /* bit d: dimension d of the inputs' broadcast shape is reduced */
  uint32_t reduced;  /* bit k: output k has one value for each row */
  uint32_t keepdims; /* bit k: output k keeps the reduced dimensions, with extent 1 */
  int64_t shape[QUERN_MAX_NDIM];
} qn_row_operands;

/* Sets all but `axes`, `reduced`, `keepdims` and the outputs. */
quern_status qn_row_read_inputs(const quern_op_info *info, DLTensor *const *in, int needs_data, qn_row_operands *operands);

/* Reads the outputs and checks their dtypes (results: before they are stored) and shapes. */
quern_status qn_row_read_outputs(const quern_op_info *info, DLTensor *const *out, int needs_data, const uint8_t *results,
                                 qn_row_operands *operands);

/* The shapes of the outputs, as quern_op_measure gives them. */
quern_status qn_row_measure(const quern_op_info *info, const qn_row_operands *operands, const uint8_t *results, quern_shape *out);

/* Refuses rows without elements if a reduction of the program has no result for them. Without any row there is no error. */
quern_status qn_row_check_empty(const quern_op_info *info, const qn_row_program *program, const qn_row_operands *operands);

/* Sets the rest of a decision from operands that have been read, with the parameters of `call`. `called` and `op`, the slots and the
 * specialisation are set before. */
quern_status qn_row_decide(const quern_op_info *info, const qn_row_program *program, const qn_row_operands *operands,
                           const quern_call *call, qn_decision *decision);

/* The function qn_kind.bind: adds the number of elements of a row to the parameters. */
void qn_row_bind(const qn_decision *decision, qn_params *params);

#endif
