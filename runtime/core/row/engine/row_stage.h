/* SPDX-License-Identifier: Apache-2.0
 *
 * row_stage.h: a stage of a program of rows, on a tile or on a part of it. */
#ifndef QN_ROW_STAGE_H
#define QN_ROW_STAGE_H

#include "core/row/engine/row_frame.h"
#include "core/row/engine/row_tiles.h"

/* The elements [first, first + count) of one segment, in each row of a tile. */
typedef struct qn_stage_part {
  const int64_t *offset; /* [operands], in bytes: from a row's beginning to the segment; NULL: 0 */
  int64_t first, count;
  int64_t place; /* of the segment's first element in the row */
} qn_stage_part;

/* Whether stage i is skipped. Of a program with `kept`, one of the last two stages runs: the `is_again` one if job->is_kept is 0. */
int qn_row_is_skipped(const qn_row_job *job, int32_t i);

/* An input as elements of a dtype. */
value_place qn_row_load_value(row_frame *frame, int32_t k, uint8_t dtype, const qn_stage_part *part);

/* Runs the kernel of a stage of elements over a part. Its temporaries stay in scratch. */
void qn_row_compute(row_frame *frame, int32_t at, const qn_stage_part *part);

/* Runs a stage of a kernel that also combines the elements. form: 1, the node of each row is stored at `to`; 2: its result. */
void qn_row_fused(row_frame *frame, int32_t at, const qn_stage_part *part, int64_t form, char *to);

/* Where a reduction reads its elements, after the stage's kernel has run: a place for each part of the state. */
void qn_row_reduced_places(row_frame *frame, int32_t reduction, const qn_row_reduce *reduce, const qn_stage_part *part, value_place *from);

/* The kernel that reads the elements of a reduction. */
qn_kernel *qn_row_elements_kernel(const qn_row_job *job, int32_t reduction);

/* Runs the kernel that reduces contiguous rows. from, to: a place for each part of the state. is_whole: 0, of several rows only nodes of
 * one part. */
void qn_row_inner(qn_kernel *kernel, const qn_reducer *by, const value_place *from, int64_t count, int64_t rows, char *const *to,
                  int64_t is_whole);

int64_t qn_row_node_bytes(const qn_reducer *by);

/* Runs a stage of row values over the tile's rows. */
void qn_row_compute_values(row_frame *frame, int32_t at);

#endif
