/* SPDX-License-Identifier: Apache-2.0
 *
 * row_columns.h: reduces one input column by column: for programs with one reduction, of an input that is contiguous along another
 * dimension than the joined axis. */
#ifndef QN_ROW_COLUMNS_H
#define QN_ROW_COLUMNS_H

#include "core/row/engine/row_frame.h"

/* The reduction of stage `at`: the row values of the tile. */
void qn_row_columns(row_frame *frame, int32_t at);

/* Whether the rows of a tile are better reduced side by side, from a transposed block. */
static inline int qn_row_are_short(const qn_row_job *job) { return job->row > 1 && job->row < QN_ROW_LANES && job->rows >= 8; }

/* Reduces the tile's rows of job->row elements, of which the first is at `from`, side by side. */
void qn_row_reduce_short(row_frame *frame, const qn_reducer *by, qn_kernel *both, value_place from, char *to);

#endif
