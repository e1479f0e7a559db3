/* SPDX-License-Identifier: Apache-2.0
 *
 * row_launcher.c: the launcher of ops that reduce, and of expressions that do. */
#include <string.h>

#include "core/simt/cuda.h"
#include "core/simt/rows/row_pieces.h"
#include "core/simt/rows/rows.h"
#include "core/simt/rows/short_rows.h"

_Static_assert(sizeof(qn_row_pieces) <= QN_PIECES_WORDS * sizeof(uint64_t), "qn_cuda_pieces.state");

/* The program of an op that reduces, which its kernel follows at least in what its states are. NULL: it has none, or it scans. */
static const qn_row_program *program_of(const qn_decision *decision) {
  const qn_row_program *program = decision->of_kind;
  return program && program->n_scans == 0 ? program : NULL;
}

static void choose_rows(const qn_decision *decision, qn_launch_form *form) {
  qn_rows_choose(&decision->nest, decision->sizes, decision->count, program_of(decision), form);
}

static const qn_cuda_variant *pick_rows(const qn_decision *decision, const qn_cuda_variant *variants, int32_t n_variants,
                                        qn_launch_form *form) {
  return qn_rows_pick(variants, n_variants, &decision->nest, decision->sizes, decision->count, program_of(decision), form);
}

static void pack_rows(const qn_decision *decision, const qn_launch_form *form, qn_launch *launch) {
  qn_rows_pack(&decision->nest, decision->sizes, decision->op->info->n_out, qn_cuda_values(decision), decision->count, form,
               decision->n_slots + qn_kind_of(decision->called)->n_own_params, launch);
}

/* What a kernel does of rows. */
static qn_row_work work_of(const qn_decision *decision, int32_t items) {
  const int is_built = decision->called->builtin && !decision->called->fused; /* else its program is not the kernel's */
  qn_row_work work = is_built || !items ? qn_rows_work(decision->of_kind, decision->sizes) : qn_rows_work_of_items(items);
  if (!is_built && !items) work.parts = work.all_parts; /* its kernel may have more of them in one stage */
  return work;
}

static void cut_rows(const qn_decision *decision, const qn_launch *launch, int32_t items, qn_cuda_pieces *pieces) {
  qn_row_pieces rows = {.bytes = 0};
  if (launch->form.rank == QN_SHORT_RANK || !program_of(decision)) return; /* where it scans a block has a row */
  const qn_row_work work = work_of(decision, items);
  qn_rows_cut_pieces(&decision->nest, &work, decision->count, launch, &rows);
  pieces->bytes = rows.bytes;
  pieces->n_launches = rows.n_launches;
  pieces->n_pieces = rows.room[0];
  memcpy(pieces->state, &rows, sizeof rows);
}

static int keep_rows(const qn_decision *decision, const qn_launch *launch, int32_t items, uint32_t most_shared, qn_cuda_pieces *pieces) {
  if (launch->form.rank == QN_SHORT_RANK) return 0;
  const qn_row_work work = work_of(decision, items);
  pieces->shared_bytes = qn_rows_keep(&work, launch, most_shared, &pieces->state[0]);
  return pieces->state[0] != 0;
}

static void set_row_piece(const qn_cuda_pieces *pieces, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                          uint64_t *n_items) {
  qn_row_pieces rows;
  if (!pieces->bytes) {
    args[launch->form.n_operands + QN_ROW_KEPT] = pieces->state[0];
    return;
  }
  memcpy(&rows, pieces->state, sizeof rows);
  qn_rows_set_piece(&rows, i, workspace, launch, args, n_items);
}

const qn_launcher qn_launcher_rows = {choose_rows, pick_rows, pack_rows, cut_rows, keep_rows, set_row_piece};
