/* SPDX-License-Identifier: Apache-2.0
 *
 * scans.c: see scans.h. A block of 256 threads has 16 chunks at a time. Where the workspace allows it, the chunks of a long row go to many
 * blocks, by several launches: the first computes the total of each chunk, the next ones what comes before each chunk of a span and before
 * each span, the last one the results. The input is read twice. */
#include "core/simt/scans/scans.h"

#include <string.h>

#define SLOTS 16
#define SPAN_CHUNKS 256
#define FLAG_STREAMED 1
#define FLAG_TURNED 2
#define FLAG_INITIAL 8
#define STREAMED_BYTES ((int64_t)32 << 20) /* see launch.c */
#define MOST_TILES 256   /* of more tiles of whole rows a device is busy */
#define FEWEST_CHUNKS 64 /* of a row for which several launches are worthwhile */
#define ALIGNMENT 256

void qn_scans_share(int32_t spread_bits, int is_wide, uint64_t *fields) {
  fields[QN_SCAN_SPREAD_BITS] = (uint64_t)spread_bits;
  fields[QN_SCAN_STEP] = 0;
  fields[QN_SCAN_ITEMS] = (uint64_t)qn_ceil_div((int64_t)fields[QN_SCAN_ROWS], SLOTS >> spread_bits);
  fields[QN_SCAN_ROW_PIECES] = 1;
  qn_launch_divisor(1, is_wide, fields + QN_SCAN_PIECE_DIVISOR);
}

void qn_scans_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, int64_t count, const qn_scan_launch *scan, const qn_launch_form *form,
                   qn_launch *launch) {
  const qn_row_cut c = qn_rows_cut(nest, count);
  const int64_t spans = qn_ceil_div(c.chunks, SPAN_CHUNKS);
  const int32_t n = nest->n_operands;
  const int is_turned = nest->n_reduced == 1 && nest->rank > 1 && nest->stride[0][1] == sizes[0] && nest->stride[0][0] != sizes[0];
  int32_t bits = 0;
  while (!is_turned && 1 << bits < SLOTS && 1 << bits < c.chunks) bits++;
  while (is_turned && SLOTS >> bits > c.rows && 1 << bits < c.chunks && 1 << bits < SLOTS) bits++;
  launch->form = *form;
  launch->is_tiled = 1; /* a block takes an item at a time */
  launch->shared_bytes = 0;
  launch->item_elements = (uint32_t)(SLOTS >> bits);
  launch->repeat_rank = nest->rank - c.rank;
  for (int32_t j = 0; j < launch->repeat_rank; j++) {
    launch->repeat_n[j] = nest->n[c.rank + j];
    for (int32_t k = 0; k < n; k++) launch->repeat_stride[k][j] = nest->stride[k][c.rank + j];
  }
  uint64_t *at = launch->args + n;
  memset(at, 0, QN_SCAN_FIELDS * sizeof *at);
  at[QN_SCAN_ROWS] = (uint64_t)c.rows;
  at[QN_SCAN_FLAGS] = (nest->n_elements >= STREAMED_BYTES / sizes[n - n_out] ? FLAG_STREAMED : 0) | (is_turned ? FLAG_TURNED : 0) |
                      (scan->is_first_stored ? FLAG_INITIAL : 0);
  at[QN_SCAN_RANK] = (uint64_t)c.rank;
  at[QN_SCAN_N_AXES] = nest->n_reduced;
  at[QN_SCAN_ALONG] = (uint64_t)c.joined;
  at[QN_SCAN_CHUNKS] = (uint64_t)c.chunks;
  at[QN_SCAN_SPANS] = (uint64_t)spans;
  qn_launch_divisor(spans ? (uint64_t)spans : 1, form->is_wide, at + QN_SCAN_SPAN_DIVISOR);
  at[QN_SCAN_INITIAL] = scan->first;
  at[QN_SCAN_INITIAL_OFFSET] = (uint64_t)scan->first_offset;
  qn_scans_share(bits, form->is_wide, at);
  launch->n_items = at[QN_SCAN_ITEMS];
  at += QN_SCAN_FIELDS;
  for (int32_t k = 0; k < scan->n_more; k++) *at++ = scan->more[k];
  for (int32_t d = 0; d < c.rank; d++) at[d] = (uint64_t)nest->n[d];
  at += c.room;
  for (int32_t k = 0; k < n; k++, at += c.room)
    for (int32_t d = 0; d < c.rank; d++) at[d] = (uint64_t)nest->stride[k][d];
  for (int32_t d = 0; d < c.rank; d++) qn_launch_divisor((uint64_t)nest->n[d], form->is_wide, at + 2 * d);
  launch->at_params = launch->n_args = (int32_t)(at + 2 * c.room - launch->args);
}

/* ---- Several launches ---- */

void qn_scans_set_steps(const qn_launch *launch, int32_t spread_bits, int32_t state_bytes, qn_scan_steps *steps) {
  const uint64_t *fields = launch->args + launch->form.n_operands;
  *steps = (qn_scan_steps){.rows = (int64_t)fields[QN_SCAN_ROWS], .chunks = (int64_t)fields[QN_SCAN_CHUNKS],
                           .spans = (int64_t)fields[QN_SCAN_SPANS], .spread_bits = spread_bits, .is_wide = launch->form.is_wide,
                           .state_bytes = state_bytes};
  steps->pieces = qn_ceil_div(steps->chunks, (int64_t)1 << spread_bits);
  steps->n_launches = steps->spans > 1 ? 4 : 3; /* nothing comes before a single span */
  steps->bytes = (size_t)(qn_ceil_div(steps->rows * steps->chunks * steps->state_bytes, ALIGNMENT) * ALIGNMENT +
                          steps->rows * steps->spans * steps->state_bytes + ALIGNMENT);
}

void qn_scans_cut(const qn_launch *launch, int32_t state_bytes, qn_scan_steps *steps) {
  const uint64_t *fields = launch->args + launch->form.n_operands;
  steps->bytes = 0;
  if (fields[QN_SCAN_CHUNKS] < FEWEST_CHUNKS || launch->n_items >= MOST_TILES) return;
  qn_scans_set_steps(launch, (int32_t)fields[QN_SCAN_SPREAD_BITS], state_bytes, steps);
}

void qn_scans_set_step(const qn_scan_steps *steps, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                       uint64_t *n_items) {
  uint64_t *fields = args + launch->form.n_operands;
  const uint64_t base = (workspace + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
  const int32_t step = i == steps->n_launches - 1 ? 4 : i + 1;
  const int64_t tiles = qn_ceil_div(steps->rows, SLOTS >> steps->spread_bits);
  fields[QN_SCAN_SPREAD_BITS] = (uint64_t)steps->spread_bits;
  fields[QN_SCAN_STEP] = (uint64_t)step;
  fields[QN_SCAN_ROW_PIECES] = (uint64_t)steps->pieces;
  qn_launch_divisor((uint64_t)steps->pieces, steps->is_wide, fields + QN_SCAN_PIECE_DIVISOR);
  const int64_t items = step == 2 ? qn_ceil_div(steps->rows * steps->spans, SLOTS) : step == 3 ? qn_ceil_div(steps->rows, QN_LAUNCH_THREADS)
                                                                                       : tiles * steps->pieces;
  fields[QN_SCAN_ITEMS] = (uint64_t)items;
  fields[QN_SCAN_TOTALS] = base;
  fields[QN_SCAN_ENDS] = base + (uint64_t)(qn_ceil_div(steps->rows * steps->chunks * steps->state_bytes, ALIGNMENT) * ALIGNMENT);
  *n_items = fields[QN_SCAN_ITEMS];
}
