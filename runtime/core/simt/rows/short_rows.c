/* SPDX-License-Identifier: Apache-2.0
 *
 * short_rows.c: see short_rows.h. The elements of a tile of rows are in shared memory: they are loaded and stored by all threads of a block,
 * neighbours by neighbours. */
#include "core/simt/rows/short_rows.h"

#define FEWEST_ROWS 8192  /* fewer do not keep a large device busy */
#define SHARED_BYTES (40u << 10) /* of a block: 48 KB need no leave */
#define LEAST_TILE 5      /* log2 of the fewest rows of a tile */

static int32_t log2_threads(void) { return qn_log2_down(QN_LAUNCH_THREADS); }

static uint64_t elements_of(const qn_nest *nest) { return nest->n_reduced ? (uint64_t)nest->n[0] : 1; }

static uint64_t shared_bytes(const uint8_t *sizes, int32_t n_operands, uint64_t n, int32_t bits) {
  uint64_t bytes = 0;
  for (int32_t k = 0; k < n_operands; k++) bytes += sizes[k];
  return bytes * (n | 1) << bits;
}

int qn_short_rows_fit(const qn_nest *nest, const uint8_t *sizes, int64_t count) {
  if (nest->n_reduced > 1 || nest->n_joined != nest->n_reduced || nest->rank > nest->n_reduced + 1) return 0;
  if (count < 1 || count > QN_SHORT_ELEMENTS || (nest->rank > nest->n_reduced && nest->n[nest->n_reduced] > INT32_MAX)) return 0;
  for (int32_t d = 0; d < nest->rank; d++)
    for (int32_t k = 0; k < nest->n_operands; k++)
      if (nest->stride[k][d] != (int32_t)nest->stride[k][d]) return 0;
  return shared_bytes(sizes, nest->n_operands, elements_of(nest), LEAST_TILE) <= SHARED_BYTES;
}

int qn_short_rows_wanted(const qn_nest *nest, const uint8_t *sizes, int64_t count, int32_t state_bytes) {
  return state_bytes <= QN_SHORT_STATES && qn_short_rows_fit(nest, sizes, count) && nest->rank > nest->n_reduced &&
         nest->n[nest->n_reduced] >= FEWEST_ROWS;
}

int32_t qn_short_rows_states(const qn_row_program *program) {
  int32_t most = 0;
  for (int32_t i = 0; i < program->n_stages; i++) {
    int32_t bytes = 0;
    for (int32_t r = 0; r < program->stages[i].n_reduces; r++) {
      const qn_reducer *by = program->stages[i].reduces[r].by;
      bytes += by->n_parts > 1 ? 8 * by->n_parts : qn_dtype_infos[by->dtype].size;
    }
    if (bytes > most) most = bytes;
  }
  return most;
}

void qn_short_rows_set_tile(const uint8_t *sizes, int32_t bits, qn_launch *launch) {
  uint64_t *fields = launch->args + launch->form.n_operands;
  fields[QN_SHORT_TILE_BITS] = (uint64_t)bits;
  fields[QN_SHORT_ITEMS] = (fields[QN_SHORT_ROWS] + (1u << bits) - 1) >> bits;
  launch->item_elements = 1u << bits;
  launch->n_items = fields[QN_SHORT_ITEMS];
  launch->shared_bytes = (uint32_t)shared_bytes(sizes, launch->form.n_operands, fields[QN_SHORT_JOINED], bits);
}

void qn_short_rows_pack(const qn_nest *nest, const uint8_t *sizes, uint64_t flags, const qn_launch_form *form, int32_t n_params,
                        qn_launch *launch) {
  const int32_t n = nest->n_operands, across = nest->n_reduced, has_rows = nest->rank > across;
  uint64_t *at = launch->args + n;
  int32_t bits = log2_threads();
  launch->form = *form;
  launch->is_tiled = 1; /* a block takes an item at a time */
  launch->repeat_rank = 0;
  at[QN_SHORT_ROWS] = has_rows ? (uint64_t)nest->n[across] : 1;
  at[QN_SHORT_FLAGS] = flags;
  at[QN_SHORT_JOINED] = elements_of(nest);
  qn_launch_divisor(at[QN_SHORT_JOINED], 0, at + QN_SHORT_DIVISOR);
  while (bits > LEAST_TILE && shared_bytes(sizes, n, at[QN_SHORT_JOINED], bits) > SHARED_BYTES) bits--;
  at += QN_SHORT_FIELDS;
  for (int32_t k = 0; k < n; k++, at += 2) {
    at[0] = across ? (uint64_t)nest->stride[k][0] : 0;
    at[1] = has_rows ? (uint64_t)nest->stride[k][across] : 0;
  }
  launch->at_params = (int32_t)(at - launch->args);
  launch->n_args = launch->at_params + n_params;
  qn_short_rows_set_tile(sizes, bits, launch);
}
