/* SPDX-License-Identifier: Apache-2.0
 *
 * row_share.h: the rows of a nest, and which leaves of a row a group of threads takes: the fields of a kernel's arguments that say so. */
#ifndef QN_ROW_SHARE_H
#define QN_ROW_SHARE_H

#include "core/row/row_program.h"
#include "core/simt/launch.h"

#define QN_ROW_GROUPS (QN_LAUNCH_THREADS / QN_ROW_LANES) /* ORDER rows.cu.in: a group has a thread for each lane */
#define QN_ROW_SLOTS 128   /* ORDER SLOTS of gen/targets/cuda/rows.lua: nodes that can wait, of all groups of a block */

/* The fields of a kernel's arguments behind the addresses. ORDER arguments_text of gen/targets/cuda/rows.lua */
enum {
  QN_ROW_ITEMS, QN_ROW_ROWS, QN_ROW_FLAGS, QN_ROW_RANK, QN_ROW_N_JOINED, QN_ROW_N_REDUCED, QN_ROW_JOINED, QN_ROW_CHUNKS, QN_ROW_LEAVES,
  QN_ROW_SPREAD_BITS, QN_ROW_CHUNK_DIVISOR, QN_ROW_STAGE = QN_ROW_CHUNK_DIVISOR + 2, QN_ROW_STEP, QN_ROW_UNIT_BITS, QN_ROW_UNITS,
  QN_ROW_UNIT_LEAVES, QN_ROW_END_DIM, QN_ROW_OUTER_LEAVES, QN_ROW_ROW_PIECES, QN_ROW_UNIT_PIECES, QN_ROW_SPAN, QN_ROW_PIECE_DIVISOR,
  QN_ROW_UNIT_DIVISOR = QN_ROW_PIECE_DIVISOR + 2, QN_ROW_VALUES = QN_ROW_UNIT_DIVISOR + 2, QN_ROW_NODES, QN_ROW_JOINED_NODES,
  QN_ROW_ROOM, QN_ROW_JOINED_ROOM, QN_ROW_KEPT, QN_ROW_FIELDS
};
#define QN_ROW_TURNED 2 /* flags */
#define QN_ROW_OWN 4

/* The rows of a nest. */
typedef struct qn_row_cut {
  int64_t rows, joined, chunks, leaves;
  int32_t rank, room; /* dimensions that one launch covers, and that its arguments have room for */
} qn_row_cut;

static inline int32_t qn_log2_down(int64_t n) { return n > 0 ? 63 - __builtin_clzll((uint64_t)n) : 0; }
static inline int32_t qn_log2_up(int64_t n) { return n > 1 ? 64 - __builtin_clzll((uint64_t)n - 1) : 0; }

qn_row_cut qn_rows_cut(const qn_nest *nest, int64_t count);

/* Sets the fields that say which leaves a group takes where one block has a whole row. groups: of a block; fields: behind the addresses. */
void qn_rows_share(const qn_nest *nest, const qn_row_cut *c, int is_wide, int32_t groups, int32_t spread_bits, uint64_t *fields);

/* An axis. Its units are shared out among groups. */
typedef struct qn_row_axis {
  int64_t n, leaves, outers; /* units; leaves of one; indices of the axes after it */
  int32_t end_dim, inside;   /* nodes inside a unit that can wait */
} qn_row_axis;

/* Axis 0 is the chunks, axis j the j-th further one. */
qn_row_axis qn_rows_axis(const qn_nest *nest, const qn_row_cut *c, int32_t j);

/* Sets the fields of an axis that is cut into pieces of 1 << unit_bits units for each group. */
void qn_rows_set_axis(const qn_row_axis *a, int is_wide, int64_t unit_pieces, int32_t unit_bits, uint64_t *fields);

#endif
