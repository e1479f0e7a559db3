/* SPDX-License-Identifier: Apache-2.0
 *
 * row_pieces.h: how long rows are cut into pieces for many blocks, in the caller's workspace. Results do not depend on it. */
#ifndef QN_ROW_PIECES_H
#define QN_ROW_PIECES_H

#include "core/simt/rows/row_share.h"

#define QN_ROW_MAX_JOINS (QUERN_MAX_NDIM + 1)

/* One row's nodes along one axis. */
typedef struct qn_row_join {
  int64_t n, span; /* nodes; elements that a lane's presence counts one for */
} qn_row_join;

/* The stages of elements of a kernel. */
typedef struct qn_row_work {
  int32_t n_reducing, has_last; /* those that reduce; whether one that does not follows */
  int32_t parts, all_parts;     /* parts of states: the most of a stage, all */
  int32_t kept_bytes; /* an element, of the inputs that several stages load */
} qn_row_work;

/* The work of a kernel: by its op's program, sizes being the bytes of an item of each input; or, for a kernel compiled at run time, by the
 * number that came with its text (ORDER items of gen/targets/cuda/rows.lua). */
qn_row_work qn_rows_work(const qn_row_program *program, const uint8_t *sizes);
qn_row_work qn_rows_work_of_items(int32_t items);

/* Bytes of shared memory, `most` or fewer, in which the kernel keeps the elements of a block's rows from stage to stage, in a launch of
 * whole rows. *kept: the field that says so. 0: it loads them again, or has them in registers. */
uint32_t qn_rows_keep(const qn_row_work *work, const qn_launch *launch, uint32_t most, uint64_t *kept);

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
