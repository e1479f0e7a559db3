/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_launcher.c: the launcher of ops that scan, and of their derivatives. */
#include <string.h>

#include "core/simt/launcher.h"
#include "core/simt/rows/rows.h"
#include "core/simt/scans/scans.h"

_Static_assert(sizeof(qn_scan_steps) <= QN_PIECES_WORDS * sizeof(uint64_t), "qn_cuda_pieces.state");

static void choose_scan(const qn_decision *decision, qn_launch_form *form) {
  qn_rows_choose(&decision->nest, decision->sizes, decision->count, NULL, form);
}

static const qn_cuda_variant *pick_scan(const qn_decision *decision, const qn_cuda_variant *variants, int32_t n_variants,
                                        qn_launch_form *form) {
  return qn_rows_pick(variants, n_variants, &decision->nest, decision->sizes, decision->count, NULL, form);
}

static void pack_scan(const qn_decision *decision, const qn_launch_form *form, qn_launch *launch) {
  const qn_scan_launch scan = qn_scan_launch_of(decision);
  qn_scans_pack(&decision->nest, decision->sizes, decision->op->info->n_out, decision->count, &scan, form, launch);
}

static void cut_scan(const qn_decision *decision, const qn_launch *launch, int32_t items, qn_cuda_pieces *pieces) {
  qn_scan_steps steps;
  (void)items;
  qn_scans_cut(launch, qn_scan_launch_of(decision).state_bytes, &steps);
  pieces->bytes = steps.bytes;
  if (!steps.bytes) return;
  pieces->n_launches = steps.n_launches;
  pieces->n_pieces = steps.rows * steps.pieces;
  memcpy(pieces->state, &steps, sizeof steps);
}

static void set_scan_step(const qn_cuda_pieces *pieces, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                          uint64_t *n_items) {
  qn_scan_steps steps;
  memcpy(&steps, pieces->state, sizeof steps);
  qn_scans_set_step(&steps, i, workspace, launch, args, n_items);
}

const qn_launcher qn_launcher_scans = {choose_scan, pick_scan, pack_scan, cut_scan, NULL, set_scan_step};
