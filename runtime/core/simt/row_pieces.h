/* SPDX-License-Identifier: Apache-2.0
 *
 * row_pieces.h: how the threads of a launch share the rows that they reduce, and how a long row is cut into pieces for many blocks, in
 * the caller's workspace. Results do not depend on it. */
#ifndef QN_ROW_PIECES_H
#define QN_ROW_PIECES_H

#include "core/row/row_program.h"
#include "core/simt/rows.h"

#define QN_ROW_GROUPS (QN_LAUNCH_THREADS / QN_ROW_LANES) /* ORDER rows.cu.in: a group has a thread for each lane */
#define QN_ROW_SLOTS 128   /* ORDER SLOTS of gen/targets/cuda/rows.lua: nodes that can wait, of all groups of a block */

/* The fields of a kernel's arguments behind the addresses. ORDER arguments_text of gen/targets/cuda/rows.lua */
enum {
  QN_ROW_ITEMS, QN_ROW_ROWS, QN_ROW_FLAGS, QN_ROW_RANK, QN_ROW_N_JOINED, QN_ROW_N_REDUCED, QN_ROW_JOINED, QN_ROW_CHUNKS, QN_ROW_LEAVES,
  QN_ROW_SPREAD_BITS, QN_ROW_CHUNK_DIVISOR, QN_ROW_STAGE = QN_ROW_CHUNK_DIVISOR + 2, QN_ROW_STEP, QN_ROW_UNIT_BITS, QN_ROW_UNITS,
  QN_ROW_UNIT_LEAVES, QN_ROW_END_DIM, QN_ROW_OUTER_LEAVES, QN_ROW_ROW_PIECES, QN_ROW_UNIT_PIECES, QN_ROW_SPAN, QN_ROW_PIECE_DIVISOR,
  QN_ROW_UNIT_DIVISOR = QN_ROW_PIECE_DIVISOR + 2, QN_ROW_VALUES = QN_ROW_UNIT_DIVISOR + 2, QN_ROW_NODES, QN_ROW_JOINED_NODES,
  QN_ROW_ROOM, QN_ROW_JOINED_ROOM, QN_ROW_FIELDS
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

#define QN_ROW_MAX_JOINS (QUERN_MAX_NDIM + 1)

/* One row's nodes along one axis. */
typedef struct qn_row_join {
  int64_t n, span; /* nodes; elements that a lane's presence counts one for */
} qn_row_join;

/* The stages of elements of a kernel. */
typedef struct qn_row_work {
  int32_t n_reducing, has_last; /* those that reduce; whether one that does not follows */
  int32_t parts, all_parts;     /* parts of states: the most of a stage, all */
} qn_row_work;

/* Of an op's program, which its kernel follows; of a kernel compiled at run time, by the number that came with its text (ORDER items of
 * gen/targets/cuda/rows.lua). */
qn_row_work qn_rows_work(const qn_row_program *program);
qn_row_work qn_rows_work_of_items(int32_t items);

/* Rows cut into pieces: launches that follow one another on a stream. For each stage of elements: its nodes, one a piece; those of an
 * axis joined, from the pieces' axis on. */
typedef struct qn_row_pieces {
  size_t bytes; /* of workspace; 0: the rows are not cut */
  int32_t n_launches, n_reducing, n_joins;
  qn_row_join joins[QN_ROW_MAX_JOINS];
  uint8_t is_wide, spread_bits, unit_bits, is_turned;
  int32_t end_dim;
  int64_t rows, units, unit_leaves, outer_leaves, outers, unit_pieces;
  size_t at_nodes[2];    /* offsets in the workspace, behind the row values */
  int64_t room[2];
} qn_row_pieces;

/* How rows are cut: 1 << spread_bits groups of a block have 1 << unit_bits units each, of axis 0, the chunks, or of the n-th further
 * axis. */
typedef struct qn_row_share {
  int32_t axis;
  uint8_t spread_bits, unit_bits, is_turned;
} qn_row_share;

/* Cuts rows so; 0: they cannot be. */
int qn_rows_set_pieces(const qn_nest *nest, const qn_row_work *work, int64_t count, const qn_launch *launch,
                       const qn_row_share *share, qn_row_pieces *pieces);

/* Cuts the rows of a launch that was packed, where many blocks are faster. */
void qn_rows_cut_pieces(const qn_nest *nest, const qn_row_work *work, int64_t count, const qn_launch *launch,
                        qn_row_pieces *pieces);

/* Sets the fields of launch i, and *n_items. workspace: its address. */
void qn_rows_set_piece(const qn_row_pieces *pieces, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                       uint64_t *n_items);

#endif
