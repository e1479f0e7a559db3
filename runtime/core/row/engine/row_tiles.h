/* SPDX-License-Identifier: Apache-2.0
 *
 * row_tiles.h: the tiles of a job of rows, `job->rows` rows each, and the slices that run them. */
#ifndef QN_ROW_TILES_H
#define QN_ROW_TILES_H

#include "core/base/slices.h"
#include "core/row/row_job.h"

/* The stride of operand k from row to row of a tile. */
int64_t qn_row_step(const qn_row_job *job, int32_t k);

/* The number of tiles. */
int64_t qn_row_tiles(const qn_row_job *job);

/* Sets ptr[k] to the first item of operand k in a tile. ref: the operands' first items. Returns the rows of the tile. */
int64_t qn_row_tile(const qn_row_job *job, const qn_ref *ref, int64_t tile, char **ptr);

/* The number of slices that the work is worth where threads must be woken; and of a run that this thread starts now. slices NULL: 1. */
int32_t qn_row_slices(const qn_row_job *job, const qn_slices *slices);
int32_t qn_row_slices_now(const qn_row_job *job, const qn_slices *slices);

/* Scans run over rows in blocks of so many elements, a multiple of a segment's; a segment of each row of a tile fits a block. */
#define QN_ROW_SCANNED 768
#define QN_ROW_SCANNED_ROWS (QN_ROW_SCANNED / QN_ROW_LANES) /* the most of a tile */
typedef char qn_row_scanned[QN_ROW_SCANNED * QN_DTYPE_MAX_BYTES];

/* Cuts such a job into tiles, of `columns` rows if that is not 0, and into slices. */
void qn_row_cut_scans(qn_row_job *job, int64_t columns);

#endif
