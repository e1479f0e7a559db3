/* SPDX-License-Identifier: Apache-2.0
 *
 * scans.h: the launches of the CUDA kernel that scans along the first dimension of a nest. The counterpart of rows.h and
 * row_pieces.h for scans. Results do not depend on how the work is shared out. */
#ifndef QN_SCANS_H
#define QN_SCANS_H

#include "core/row/scan_launch.h"
#include "core/simt/rows/row_pieces.h"

/* The fields of a kernel's arguments behind the addresses. ORDER arguments_text of gen/targets/cuda/scans.lua */
enum {
  QN_SCAN_ITEMS, QN_SCAN_ROWS, QN_SCAN_FLAGS, QN_SCAN_RANK, QN_SCAN_N_AXES, QN_SCAN_ALONG, QN_SCAN_CHUNKS, QN_SCAN_SPANS,
  QN_SCAN_SPREAD_BITS, QN_SCAN_STEP, QN_SCAN_ROW_PIECES, QN_SCAN_PIECE_DIVISOR, QN_SCAN_SPAN_DIVISOR = QN_SCAN_PIECE_DIVISOR + 2,
  QN_SCAN_INITIAL = QN_SCAN_SPAN_DIVISOR + 2, QN_SCAN_INITIAL_OFFSET, QN_SCAN_TOTALS, QN_SCAN_ENDS, QN_SCAN_FIELDS
  /* Then those of qn_scan_launch.more. Of an op that finds: the last place of the axis, if it is scanned from the end, else -1; bytes from a
   * row's first place to that of no elements. Of states: those of qn_state_place from `last` to `step`; for each further output the result of
   * no elements, and where it is. */
};

static inline qn_scan_launch qn_scan_launch_of(const qn_decision *decision) {
  qn_scan_launch scan;
  memcpy(&scan, decision->launch, sizeof scan);
  return scan;
}

/* Packs all but addresses; count: elements along the axis. sizes: of the inputs and of the outputs. */
void qn_scans_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, int64_t count, const qn_scan_launch *scan, const qn_launch_form *form,
                   qn_launch *launch);

/* Sets how the chunks of rows are shared out: 1 << spread_bits of a row at a time. */
void qn_scans_share(int32_t spread_bits, int is_wide, uint64_t *fields);

/* Several launches for rows that are few and long; steps: of the kernel. */
typedef struct qn_scan_steps {
  size_t bytes; /* of workspace; 0: there is one launch */
  int32_t n_launches;
  int64_t rows, chunks, spans, pieces;
  int32_t spread_bits, is_wide, state_bytes;
} qn_scan_steps;

/* At any number of chunks; and where it is faster. */
void qn_scans_set_steps(const qn_launch *launch, int32_t spread_bits, int32_t state_bytes, qn_scan_steps *steps);
void qn_scans_cut(const qn_launch *launch, int32_t state_bytes, qn_scan_steps *steps);

/* Sets the fields of launch i, and *n_items. workspace: its address. */
void qn_scans_set_step(const qn_scan_steps *steps, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                       uint64_t *n_items);

#endif
