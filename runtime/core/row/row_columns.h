/* SPDX-License-Identifier: Apache-2.0
 *
 * row_columns.h: one reduction of one input of which another dimension than the reduced one is contiguous: column by column, as the
 * input lies. */
#ifndef QN_ROW_COLUMNS_H
#define QN_ROW_COLUMNS_H

#include "core/row/row_frame.h"

/* Plans the path COLUMNS if the program and the nest allow it. Returns whether they do. */
int qn_row_columns_plan(const qn_row_program *program, qn_row_job *job);

/* The reduction of stage `at`: the row values of the tile. */
void qn_row_columns(row_frame *frame, int32_t at);

/* Whether rows of a tile are better reduced side by side, from a transposed block. */
int qn_row_are_short(const qn_row_job *job);

/* Reduces the tile's rows of job->row elements, of which the row at `from` is the first, side by side. */
void qn_row_reduce_short(row_frame *frame, const qn_row_reduce *by, qn_kernel *both, value_place from, char *to);

#endif
