/* SPDX-License-Identifier: Apache-2.0
 *
 * row_columns.h: reductions column by column, of elements that are contiguous along another dimension than the joined axis. A program with one
 * reduction reads its input. A program of several stages goes across: each stage runs on all rows of a tile before the next. */
#ifndef QN_ROW_COLUMNS_H
#define QN_ROW_COLUMNS_H

#include "core/row/engine/row_frame.h"

/* The reductions of stage `at`: row values of the tile. reduction: the number of the first. */
void qn_row_columns(row_frame *frame, int32_t at, int32_t reduction);

/* Before and after the stages of a tile of a job that goes across: blocks of converted elements. */
void qn_row_begin_across(row_frame *frame);
void qn_row_end_across(row_frame *frame);

/* A stage of a job that goes across, without a reduction. */
void qn_row_elements_across(row_frame *frame, int32_t at);

/* Whether the rows of a tile are better reduced side by side, from a transposed block. */
static inline int qn_row_are_short(const qn_row_job *job) { return job->row > 1 && job->row < QN_ROW_LANES && job->rows >= 8; }

/* Reduces the tile's rows of job->row elements, of which the first is at `from`, side by side. */
void qn_row_reduce_short(row_frame *frame, const qn_reducer *by, qn_kernel *both, value_place from, char *to);

#endif
