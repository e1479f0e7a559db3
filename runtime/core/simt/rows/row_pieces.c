/* SPDX-License-Identifier: Apache-2.0
 *
 * row_pieces.c: see row_pieces.h. A piece is an aligned subtree of the law's tree: 2^k chunks of the joined axes, or 2^k indices of one
 * further axis with all that is inside it. Its node goes to the workspace; the nodes along an axis are joined by the same tree. */
#include "core/simt/rows/row_pieces.h"

#include <string.h>

#define WANTED 1024       /* blocks that keep a large device busy */
#define MOST_TILES 256    /* of more tiles of whole rows a device is busy */
#define FEWEST_LEAVES 128 /* of a row for which several launches are worthwhile */
#define BATCH_BITS 3      /* log2 of the nodes that a group joins before its stack */
#define ALIGNMENT 256
#define MOST_KEPT 64            /* leaves of a group */
#define KEPT_BYTES (48u << 10)  /* of a block's rows, so that several blocks are on a multiprocessor */

/* ---- Pieces ---- */

/* The inputs that the elements of a stage are made of, as bits. */
static uint32_t inputs_of(const qn_row_stage *stage) {
  uint32_t inputs = 0;
  for (int32_t k = 0; k < stage->n_in; k++)
    if (stage->values[k] < QN_ROW_INDEX) inputs |= 1u << stage->values[k];
  for (int32_t r = 0; r < stage->n_reduces; r++)
    for (int32_t p = 0; p < stage->reduces[r].by->n_parts; p++) {
      const uint8_t from = qn_row_from(&stage->reduces[r], p);
      if (from < QN_ROW_INDEX) inputs |= 1u << from;
    }
  return inputs;
}

/* The bytes of an element of the inputs that several stages load. A stage with an `is_again` after it is left out of the kernel. */
static int32_t kept_bytes(const qn_row_program *program, const uint8_t *sizes) {
  uint32_t loaded = 0, kept = 0;
  int32_t bytes = 0;
  for (int32_t i = 0; i < program->n_stages; i++) {
    if (program->stages[i].is_row || (i + 1 < program->n_stages && program->stages[i + 1].is_again)) continue;
    const uint32_t inputs = inputs_of(&program->stages[i]);
    kept |= loaded & inputs;
    loaded |= inputs;
  }
  for (int32_t k = 0; kept >> k; k++) bytes += kept >> k & 1 ? sizes[k] : 0;
  return bytes;
}

qn_row_work qn_rows_work(const qn_row_program *program, const uint8_t *sizes) {
  qn_row_work work = {.kept_bytes = kept_bytes(program, sizes)};
  for (int32_t i = 0; i < program->n_stages; i++) {
    int32_t parts = 0;
    if (program->stages[i].is_row) continue;
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++) parts += program->stages[i].reduces[r].by->n_parts;
    if (parts > work.parts) work.parts = parts;
    work.all_parts += parts;
    work.n_reducing += parts > 0;
    work.has_last |= parts == 0;
  }
  return work;
}

qn_row_work qn_rows_work_of_items(int32_t items) {
  const int32_t kept = items >> 28 & 7;
  return (qn_row_work){items >> 8 & 31, items >> 13 & 1, items >> 14 & 63, items >> 20 & 255, kept ? 1 << kept : 0};
}

uint32_t qn_rows_keep(const qn_row_work *work, const qn_launch *launch, uint32_t most, uint64_t *kept) {
  const uint64_t *fields = launch->args + launch->form.n_operands;
  const uint64_t leaves = fields[QN_ROW_LEAVES], bits = fields[QN_ROW_SPREAD_BITS];
  const uint64_t own = fields[QN_ROW_UNIT_LEAVES] << fields[QN_ROW_UNIT_BITS], in_turn = (leaves + (1u << bits) - 1) >> bits;
  const uint64_t group_leaves = fields[QN_ROW_FLAGS] & QN_ROW_OWN ? own : in_turn;
  const uint64_t bytes = group_leaves * QN_ROW_LANES * QN_LAUNCH_THREADS * (uint64_t)work->kept_bytes;
  *kept = 0;
  if (group_leaves < 2 || group_leaves > MOST_KEPT || bytes > most || bytes > KEPT_BYTES) return 0;
  *kept = bytes ? group_leaves : 0;
  return (uint32_t)bytes;
}

static void add_join(qn_row_pieces *pieces, int64_t n, int64_t span) {
  if (n > 1) pieces->joins[pieces->n_joins++] = (qn_row_join){n, span};
}

/* The joins that remain to be done after join j, of a row: its nodes then. */
static int64_t nodes_after(const qn_row_pieces *pieces, int32_t j) {
  int64_t n = 1;
  for (int32_t i = j + 1; i < pieces->n_joins; i++) n *= pieces->joins[i].n;
  return n;
}

int qn_rows_set_pieces(const qn_nest *nest, const qn_row_work *work, int64_t count, const qn_launch *launch,
                       const qn_row_share *share, qn_row_pieces *pieces) {
  const qn_row_cut c = qn_rows_cut(nest, count);
  const qn_row_axis a = qn_rows_axis(nest, &c, share->axis);
  const int64_t parts = work->parts, units_bits = share->spread_bits + share->unit_bits;
  memset(pieces, 0, sizeof *pieces);
  if (a.inside + share->unit_bits > QN_ROW_SLOTS / QN_ROW_GROUPS) return 0;
  pieces->is_turned = share->is_turned;
  pieces->is_wide = launch->form.is_wide;
  pieces->rows = c.rows;
  pieces->spread_bits = share->spread_bits;
  pieces->unit_bits = share->unit_bits;
  pieces->end_dim = a.end_dim;
  pieces->units = a.n;
  pieces->unit_leaves = a.leaves;
  pieces->outers = a.outers;
  pieces->unit_pieces = qn_ceil_div(a.n, (int64_t)1 << units_bits);
  add_join(pieces, pieces->unit_pieces, share->axis == 0 ? (int64_t)QN_ROW_CHUNK << units_bits : 0);
  for (int32_t d = a.end_dim; d < nest->n_reduced; d++) add_join(pieces, nest->n[d], 0);
  for (int32_t i = 0; i < pieces->n_joins; i++)
    if (pieces->joins[i].n > (int64_t)QN_ROW_GROUPS << (QN_ROW_SLOTS / QN_ROW_GROUPS + BATCH_BITS)) return 0;
  pieces->room[0] = c.rows * nodes_after(pieces, -1);
  pieces->room[1] = c.rows * nodes_after(pieces, 0);
  if (pieces->n_joins == 0 || parts == 0 || pieces->room[0] > INT32_MAX) return 0; /* 32-bit kernels count nodes */
  pieces->n_reducing = work->n_reducing;
  pieces->n_launches = work->n_reducing * (1 + pieces->n_joins) + work->has_last;
  pieces->at_nodes[0] = (size_t)qn_ceil_div(c.rows * work->all_parts * 8, ALIGNMENT) * ALIGNMENT;
  pieces->at_nodes[1] = pieces->at_nodes[0] + (size_t)qn_ceil_div(pieces->room[0] * parts * QN_ROW_LANES * 8, ALIGNMENT) * ALIGNMENT;
  pieces->bytes = pieces->at_nodes[1] + (size_t)(pieces->room[1] * parts * QN_ROW_LANES * 8 + ALIGNMENT);
  return 1;
}

void qn_rows_cut_pieces(const qn_nest *nest, const qn_row_work *work, int64_t count, const qn_launch *launch,
                        qn_row_pieces *pieces) {
  const qn_row_cut c = qn_rows_cut(nest, count);
  const int64_t slots = QN_ROW_SLOTS / QN_ROW_GROUPS;
  qn_row_share share = {.is_turned = (launch->args[nest->n_operands + QN_ROW_FLAGS] & QN_ROW_TURNED) != 0};
  pieces->bytes = 0;
  if (c.leaves < FEWEST_LEAVES || (int64_t)launch->n_items >= MOST_TILES) return;
  int32_t bits = qn_log2_up(QN_ROW_GROUPS); /* turned: a block has as many rows as there are */
  for (int64_t n = c.rows; share.is_turned && bits > 0 && n > 1; n = qn_ceil_div(n, 2)) bits--;
  const int64_t wanted = qn_ceil_div(WANTED, qn_ceil_div(c.rows, QN_ROW_GROUPS >> bits)); /* pieces of a row */
  int32_t j = nest->n_reduced - nest->n_joined;
  qn_row_axis a = qn_rows_axis(nest, &c, j);
  while (j > 0 && (a.outers * a.n < wanted << bits || a.inside > slots)) a = qn_rows_axis(nest, &c, --j);
  const int64_t most_units = qn_ceil_div(wanted, a.outers);
  while (a.inside + share.unit_bits < slots && qn_ceil_div(a.n, (int64_t)1 << bits << share.unit_bits) > most_units) share.unit_bits++;
  share.axis = j;
  share.spread_bits = (uint8_t)bits;
  if (!qn_rows_set_pieces(nest, work, count, launch, &share, pieces)) pieces->bytes = 0;
}

/* The launch that makes the nodes of the pieces. */
static void set_fold(const qn_row_pieces *pieces, uint64_t *fields) {
  const qn_row_axis a = {pieces->units, pieces->unit_leaves, pieces->outers, pieces->end_dim, 0};
  const int64_t tiles = qn_ceil_div(pieces->rows, QN_ROW_GROUPS >> pieces->spread_bits);
  qn_rows_set_axis(&a, pieces->is_wide, pieces->unit_pieces, pieces->unit_bits, fields);
  fields[QN_ROW_ITEMS] = (uint64_t)(tiles * pieces->outers * pieces->unit_pieces);
  fields[QN_ROW_ROWS] = (uint64_t)pieces->rows;
  fields[QN_ROW_SPREAD_BITS] = pieces->spread_bits;
  fields[QN_ROW_SPAN] = pieces->end_dim == (int32_t)fields[QN_ROW_N_JOINED] ? QN_ROW_CHUNK : 0;
  if (pieces->is_turned) fields[QN_ROW_FLAGS] |= QN_ROW_TURNED;
}

/* The launch of join j. */
static void set_join(const qn_row_pieces *pieces, int32_t j, uint64_t *fields) {
  const qn_row_join *join = &pieces->joins[j];
  const qn_row_axis a = {join->n, 0, 1, pieces->end_dim, 0};
  const int64_t rows = pieces->rows * nodes_after(pieces, j);
  int32_t bits = 0;
  while (1 << bits < QN_ROW_GROUPS && join->n > (int64_t)1 << BATCH_BITS << bits) bits++;
  qn_rows_set_axis(&a, pieces->is_wide, 1, qn_log2_up(qn_ceil_div(join->n, (int64_t)1 << bits)), fields);
  fields[QN_ROW_ITEMS] = (uint64_t)qn_ceil_div(rows, QN_ROW_GROUPS >> bits);
  fields[QN_ROW_ROWS] = (uint64_t)rows;
  fields[QN_ROW_SPREAD_BITS] = (uint64_t)bits;
  fields[QN_ROW_SPAN] = (uint64_t)join->span;
  fields[QN_ROW_FLAGS] &= ~(uint64_t)QN_ROW_TURNED;
}

void qn_rows_set_piece(const qn_row_pieces *pieces, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                       uint64_t *n_items) {
  uint64_t *fields = args + launch->form.n_operands;
  const int32_t stage = i / (1 + pieces->n_joins);
  i %= 1 + pieces->n_joins;
  const uint64_t base = (workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const int to = i & 1; /* nodes go from one place to the other */
  fields[QN_ROW_FLAGS] |= QN_ROW_OWN;
  fields[QN_ROW_STAGE] = (uint64_t)stage + 1;
  fields[QN_ROW_STEP] = i == 0 ? 0 : i == pieces->n_joins ? 2 : 1;
  if (i == 0)
    set_fold(pieces, fields);
  else
    set_join(pieces, i - 1, fields);
  fields[QN_ROW_VALUES] = base;
  fields[QN_ROW_NODES] = base + pieces->at_nodes[!to];
  fields[QN_ROW_ROOM] = (uint64_t)pieces->room[!to];
  fields[QN_ROW_JOINED_NODES] = base + pieces->at_nodes[to];
  fields[QN_ROW_JOINED_ROOM] = (uint64_t)pieces->room[to];
  *n_items = fields[QN_ROW_ITEMS];
}
