/* SPDX-License-Identifier: Apache-2.0
 *
 * row_blocks.h: reduces rows block by block. The node of a block waits on a stack until its right neighbour is complete. */
#ifndef QN_ROW_BLOCKS_H
#define QN_ROW_BLOCKS_H

#include "core/row/engine/row_stage.h"

static inline int64_t qn_row_lanes_of(int64_t count) { return count < QN_ROW_LANES ? count : QN_ROW_LANES; }

/* Runs a stage of elements and its reductions over part of a row, segment by segment. Sets the row values; or, if `nodes` is not NULL,
 * stores the nodes of the reductions there, one after the other. */
void qn_row_blocks(row_frame *frame, int32_t at, int32_t first_reduction, qn_row_range range, char *nodes);

/* The lanes of a node combined: a row value. Of `rows` nodes of one part: as many. */
void qn_row_finish(const qn_row_job *job, int32_t reduction, const qn_reducer *by, char *node, int64_t rows, char **to);

#endif
