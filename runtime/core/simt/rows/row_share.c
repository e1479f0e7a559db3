/* SPDX-License-Identifier: Apache-2.0
 *
 * row_share.c: see row_share.h. */
#include "core/simt/rows/row_share.h"

#include "core/base/status.h"

static int64_t product(const qn_nest *nest, int32_t first, int32_t last) {
  int64_t n = 1;
  for (int32_t d = first; d < last; d++) n *= nest->n[d];
  return n;
}

/* The most dimensions that there is room for. ORDER max_rank of gen/targets/cuda/rows.lua */
static int32_t max_rank(int32_t n_operands) {
  const int32_t room = QN_ROW_STRIDES / n_operands;
  return room < QUERN_MAX_NDIM ? room : QUERN_MAX_NDIM;
}

qn_row_cut qn_rows_cut(const qn_nest *nest, int64_t count) {
  qn_row_cut c = {.room = max_rank(nest->n_operands)};
  qn_assert(nest->n_reduced <= c.room);
  c.rank = nest->rank < c.room ? nest->rank : c.room;
  c.rows = product(nest, nest->n_reduced, c.rank);
  if (count == 0) return c;
  c.joined = product(nest, 0, nest->n_joined);
  c.chunks = qn_ceil_div(c.joined, QN_ROW_CHUNK);
  c.leaves = c.chunks * product(nest, nest->n_joined, nest->n_reduced);
  return c;
}

qn_row_axis qn_rows_axis(const qn_nest *nest, const qn_row_cut *c, int32_t j) {
  qn_row_axis a = {c->chunks, 1, 1, nest->n_joined, 0};
  for (int32_t i = 0; i < j; i++) {
    a.leaves *= a.n;
    a.inside += qn_log2_down(a.n);
    a.n = nest->n[a.end_dim++];
  }
  for (int32_t d = a.end_dim; d < nest->n_reduced; d++) a.outers *= nest->n[d];
  return a;
}

void qn_rows_set_axis(const qn_row_axis *a, int is_wide, int64_t unit_pieces, int32_t unit_bits, uint64_t *fields) {
  fields[QN_ROW_UNIT_BITS] = (uint64_t)unit_bits;
  fields[QN_ROW_UNITS] = (uint64_t)a->n;
  fields[QN_ROW_UNIT_LEAVES] = (uint64_t)a->leaves;
  fields[QN_ROW_END_DIM] = (uint64_t)a->end_dim;
  fields[QN_ROW_OUTER_LEAVES] = (uint64_t)(a->n * a->leaves);
  fields[QN_ROW_ROW_PIECES] = (uint64_t)(a->outers * unit_pieces);
  fields[QN_ROW_UNIT_PIECES] = (uint64_t)unit_pieces;
  qn_launch_divisor((uint64_t)(a->outers * unit_pieces), is_wide, fields + QN_ROW_PIECE_DIVISOR);
  qn_launch_divisor((uint64_t)unit_pieces, is_wide, fields + QN_ROW_UNIT_DIVISOR);
}

void qn_rows_share(const qn_nest *nest, const qn_row_cut *c, int is_wide, int32_t groups, int32_t spread_bits, uint64_t *fields) {
  const int32_t n_further = nest->n_reduced - nest->n_joined, spread = 1 << spread_bits;
  const qn_row_axis a = qn_rows_axis(nest, c, c->leaves ? n_further : 0);
  const int32_t unit_bits = qn_log2_up(qn_ceil_div(a.n ? a.n : 1, spread));
  /* Ranges of an axis with fewer indices than groups leave some of these idle. */
  const int is_even = n_further == 0 || a.n >= spread;
  qn_rows_set_axis(&a, is_wide, 1, unit_bits, fields);
  fields[QN_ROW_SPAN] = a.end_dim == nest->n_joined ? QN_ROW_CHUNK : 0;
  fields[QN_ROW_FLAGS] &= ~(uint64_t)QN_ROW_OWN;
  if (is_even && a.inside + unit_bits <= QN_ROW_SLOTS / groups) fields[QN_ROW_FLAGS] |= QN_ROW_OWN;
}
