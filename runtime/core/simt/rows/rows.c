/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.c: see rows.h. A block of 16 groups of 16 threads takes tiles of 16, 8, 4, 2 or 1 rows: a row has 1, 2, ... 16 groups (its
 * spread). A group takes a range of the row's chunks, or repeatedly the next free chunk. If neighbouring rows are adjacent in memory
 * and the elements of a row are not, the threads are turned: neighbouring threads take neighbouring rows. */
#include "core/simt/rows/rows.h"

#include <string.h>

#include "core/simt/rows/row_share.h"
#include "core/simt/rows/short_rows.h"

#define FLAG_STREAMED 1
#define FLAG_VALUES 8
#define STREAMED_BYTES ((int64_t)32 << 20) /* see launch.c */
#define SECTOR 32       /* bytes of memory that are read at once */
#define ENOUGH_TILES 512 /* blocks that keep a large device busy: fewer tiles are cut smaller */

/* Whether 32-bit indices suffice: rows and elements of a row are below 2^31, strides fit an i32. */
static int is_narrow(const qn_nest *nest, const qn_row_cut *c) {
  if (c->rows > INT32_MAX || c->joined > INT32_MAX || c->leaves > INT32_MAX) return 0;
  for (int32_t d = 0; d < c->rank; d++)
    for (int32_t k = 0; k < nest->n_operands; k++)
      if (nest->stride[k][d] != (int32_t)nest->stride[k][d]) return 0;
  return 1;
}

void qn_rows_choose(const qn_nest *nest, const uint8_t *sizes, int64_t count, const qn_row_program *program, qn_launch_form *form) {
  const qn_row_cut c = qn_rows_cut(nest, count);
  const int is_short = program && qn_short_rows_wanted(nest, sizes, count, qn_short_rows_states(program));
  form->rank = is_short ? QN_SHORT_RANK : 0;
  form->n_operands = (uint8_t)nest->n_operands;
  memset(form->classes, QN_CLASS_STRIDED, (size_t)nest->n_operands);
  form->is_wide = (uint8_t)!is_narrow(nest, &c);
}

const qn_cuda_variant *qn_rows_pick(const qn_cuda_variant *variants, int32_t n_variants, const qn_nest *nest, const uint8_t *sizes,
                                    int64_t count, const qn_row_program *program, qn_launch_form *form) {
  const qn_cuda_variant *picked = NULL;
  qn_launch_form best;
  qn_rows_choose(nest, sizes, count, program, &best);
  for (int32_t i = 0; i < n_variants; i++) {
    const qn_cuda_variant *v = &variants[i];
    const int is_exact = v->rank == best.rank && v->is_wide == best.is_wide, is_general = v->rank == 0;
    if (is_exact && (!picked || picked->rank != best.rank || picked->is_wide != best.is_wide)) picked = v;
    if (is_general && v->is_wide == best.is_wide && (!picked || (picked->is_wide && !best.is_wide))) picked = v;
    if (is_general && v->is_wide && !picked) picked = v;
  }
  if (!picked) return NULL;
  *form = best;
  form->rank = picked->rank;
  form->is_wide = picked->is_wide;
  return picked;
}

/* ---- Tiles ---- */

/* The most nodes of a row that wait at a time: of an axis of n as many as a number below n has ones. */
static int32_t most_waiting(const qn_nest *nest, const qn_row_cut *c) {
  int32_t n = qn_log2_down(c->chunks);
  for (int32_t d = nest->n_joined; d < nest->n_reduced; d++) n += qn_log2_down(nest->n[d]);
  return n;
}

/* Whether rows, more than elements of a row, are next to each other in input 0. */
static int is_turned(const qn_nest *nest, const uint8_t *sizes, const qn_row_cut *c) {
  if (nest->rank == nest->n_reduced || nest->n_joined == 0 || c->joined < QN_ROW_LANES) return 0;
  return nest->stride[0][nest->n_reduced] == sizes[0] && nest->stride[0][0] != sizes[0];
}

/* log2 of the groups of a row. */
static int32_t spread_bits(const qn_nest *nest, const uint8_t *sizes, const qn_row_cut *c, int turned) {
  const int32_t waiting = most_waiting(nest, c);
  int32_t bits = 0;
  while (!turned && 1 << bits < QN_ROW_GROUPS && 1 << bits < c->leaves) bits++; /* what was loaded stays in registers */
  if (turned)
    while (1 << bits < QN_ROW_GROUPS && 1 << bits < c->leaves && c->rows < ((int64_t)ENOUGH_TILES * QN_ROW_GROUPS >> bits) &&
           (QN_ROW_GROUPS >> (bits + 1)) * sizes[0] >= SECTOR)
      bits++;
  while (1 << bits < QN_ROW_GROUPS && waiting > QN_ROW_SLOTS / (QN_ROW_GROUPS >> bits)) bits++;
  return bits;
}

/* ---- Packing ---- */

static uint64_t flags_of(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, int turned) {
  int64_t item = 0;
  for (int32_t k = nest->n_operands - n_out; k < nest->n_operands; k++) item += sizes[k];
  const int is_streamed = item && nest->n_elements >= STREAMED_BYTES / item;
  return (uint64_t)values << FLAG_VALUES | (turned ? QN_ROW_TURNED : 0) | (is_streamed ? FLAG_STREAMED : 0);
}

void qn_rows_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, int64_t count,
                  const qn_launch_form *form, int32_t n_params, qn_launch *launch) {
  const qn_row_cut c = qn_rows_cut(nest, count);
  if (form->rank == QN_SHORT_RANK) {
    qn_short_rows_pack(nest, sizes, flags_of(nest, sizes, n_out, values, 0), form, n_params, launch);
    return;
  }
  const int32_t n = nest->n_operands, turned = is_turned(nest, sizes, &c), bits = spread_bits(nest, sizes, &c, turned);
  const int64_t tile_rows = QN_ROW_GROUPS >> bits;
  launch->form = *form;
  launch->is_tiled = 1; /* a block takes an item at a time */
  launch->shared_bytes = 0;
  launch->item_elements = (uint32_t)tile_rows;
  launch->n_items = (uint64_t)(qn_ceil_div(c.rows, tile_rows));
  launch->repeat_rank = nest->rank - c.rank;
  for (int32_t j = 0; j < launch->repeat_rank; j++) {
    launch->repeat_n[j] = nest->n[c.rank + j];
    for (int32_t k = 0; k < n; k++) launch->repeat_stride[k][j] = nest->stride[k][c.rank + j];
  }
  uint64_t *at = launch->args + n;
  memset(at, 0, QN_ROW_FIELDS * sizeof *at);
  at[QN_ROW_ITEMS] = launch->n_items;
  at[QN_ROW_ROWS] = (uint64_t)c.rows;
  at[QN_ROW_FLAGS] = flags_of(nest, sizes, n_out, values, turned);
  at[QN_ROW_RANK] = (uint64_t)c.rank;
  at[QN_ROW_N_JOINED] = nest->n_joined;
  at[QN_ROW_N_REDUCED] = nest->n_reduced;
  at[QN_ROW_JOINED] = (uint64_t)c.joined;
  at[QN_ROW_CHUNKS] = (uint64_t)c.chunks;
  at[QN_ROW_LEAVES] = (uint64_t)c.leaves;
  at[QN_ROW_SPREAD_BITS] = (uint64_t)bits;
  qn_launch_divisor(c.chunks ? (uint64_t)c.chunks : 1, form->is_wide, at + QN_ROW_CHUNK_DIVISOR);
  qn_rows_share(nest, &c, form->is_wide, QN_ROW_GROUPS, bits, at);
  at += QN_ROW_FIELDS;
  for (int32_t d = 0; d < c.rank; d++) at[d] = (uint64_t)nest->n[d];
  at += c.room;
  for (int32_t k = 0; k < n; k++, at += c.room)
    for (int32_t d = 0; d < c.rank; d++) at[d] = (uint64_t)nest->stride[k][d];
  for (int32_t d = 0; d < c.rank; d++) qn_launch_divisor((uint64_t)nest->n[d], form->is_wide, at + 2 * d);
  at += 2 * c.room;
  launch->at_params = (int32_t)(at - launch->args);
  launch->n_args = launch->at_params + n_params;
}
