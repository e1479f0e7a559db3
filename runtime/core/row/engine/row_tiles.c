/* SPDX-License-Identifier: Apache-2.0
 *
 * row_tiles.c: see row_tiles.h. */
#include "core/row/engine/row_tiles.h"

#define SLICE_ELEMENTS 8192 /* the least work of scans that is worth a slice where threads are awake */
#define SLICES_TO_WAKE 4    /* slices of awake threads that equal the least work for which a thread is woken */

/* The rows along the first kept dimension. */
static int64_t rows_along(const qn_nest *nest) { return nest->rank > nest->n_reduced ? nest->n[nest->n_reduced] : 1; }

static int64_t tiles_along(const qn_row_job *job) { return qn_ceil_div(rows_along(job->nest), job->rows); }

int64_t qn_row_step(const qn_row_job *job, int32_t k) {
  const qn_nest *nest = job->nest;
  return nest->rank > nest->n_reduced ? nest->stride[k][nest->n_reduced] : 0;
}

int64_t qn_row_tiles(const qn_row_job *job) {
  const qn_nest *nest = job->nest;
  int64_t n = tiles_along(job);
  for (int32_t d = nest->n_reduced + 1; d < nest->rank; d++) n *= nest->n[d];
  return n;
}

int64_t qn_row_tile(const qn_row_job *job, const qn_ref *ref, int64_t tile, char **ptr) {
  const qn_nest *nest = job->nest;
  const int64_t along = tiles_along(job), begin = tile % along * job->rows, rest = rows_along(nest) - begin;
  for (int32_t k = 0; k < nest->n_operands; k++) ptr[k] = qn_row_moved(qn_ref_address(ref[k]), begin * qn_row_step(job, k));
  tile /= along;
  for (int32_t d = nest->n_reduced + 1; d < nest->rank; tile /= nest->n[d++])
    for (int32_t k = 0; k < nest->n_operands; k++) ptr[k] = qn_row_moved(ptr[k], tile % nest->n[d] * nest->stride[k][d]);
  return rest < job->rows ? rest : job->rows;
}

int32_t qn_row_slices(const qn_row_job *job, const qn_slices *slices) { return qn_slices_worth(slices, job->most_slices / SLICES_TO_WAKE); }

int32_t qn_row_slices_now(const qn_row_job *job, const qn_slices *slices) {
  return qn_slices_now(slices, job->most_slices / SLICES_TO_WAKE, job->most_slices);
}

void qn_row_cut_scans(qn_row_job *job, int64_t columns) {
  const int64_t segments = qn_ceil_div(job->row, QN_ROW_LANES);
  job->rows = columns ? columns : job->row >= QN_ROW_SCANNED / 2 ? 1 : QN_ROW_SCANNED_ROWS / segments;
  const int64_t n_tiles = qn_row_tiles(job), worth = 1 + job->row * job->rows * n_tiles / SLICE_ELEMENTS;
  const int64_t most = n_tiles == 1 ? 1 : worth < SLICES_TO_WAKE * n_tiles ? worth : SLICES_TO_WAKE * n_tiles; /* there may be more than tiles: some are empty then */
  job->most_slices = most < INT32_MAX ? (int32_t)most : INT32_MAX;
}
