/* SPDX-License-Identifier: Apache-2.0
 *
 * launcher.h: how the kernels of a kind of op are launched: over items (cuda.c), rows (rows/row_launcher.c) or scans
 * (scans/scan_launcher.c). A generated tree has the launchers of its own kinds. Knows no driver. */
#ifndef QN_LAUNCHER_H
#define QN_LAUNCHER_H

#include "core/op/kind.h"
#include "core/simt/launch.h"

#define QN_PIECES_WORDS 80

/* The launches of one call. */
typedef struct qn_cuda_pieces {
  const struct qn_launcher *launcher; /* sets the arguments of each; NULL: there is one, with the arguments that were packed */
  size_t bytes; /* of workspace; 0: there is one launch */
  int32_t n_launches;
  uint32_t shared_bytes; /* that each launch asks for */
  int64_t n_pieces; /* of all rows, where bytes is not 0 */
  uint64_t state[QN_PIECES_WORDS]; /* the launcher's own */
} qn_cuda_pieces;

typedef struct qn_launcher {
  /* The form of the kernel to be compiled for a decision; the best of the kernels built ahead for its dtypes (NULL: none), and its
   * form; the launch of a kernel of such a form, without addresses and parameters. */
  void (*choose)(const qn_decision *decision, qn_launch_form *form);
  const qn_cuda_variant *(*pick)(const qn_decision *decision, const qn_cuda_variant *variants, int32_t n_variants,
                                 qn_launch_form *form);
  void (*pack)(const qn_decision *decision, const qn_launch_form *form, qn_launch *launch);
  /* Cuts the work into several launches, whatever workspace there is: sets bytes, n_launches, n_pieces and state. bytes stays 0: it is
   * not cut. NULL: it never is. items: the number that came with the kernel; 0: not known, since it is not made yet. */
  void (*cut)(const qn_decision *decision, const qn_launch *launch, int32_t items, qn_cuda_pieces *pieces);
  /* Sets shared_bytes, at most `most_shared`, and state for one launch. NULL, or returns 0: it is launched as packed. */
  int (*keep)(const qn_decision *decision, const qn_launch *launch, int32_t items, uint32_t most_shared, qn_cuda_pieces *pieces);
  /* Sets the arguments of launch i, and *n_items. workspace: its address. */
  void (*set_piece)(const qn_cuda_pieces *pieces, int32_t i, uint64_t workspace, const qn_launch *launch, uint64_t *args,
                    uint64_t *n_items);
} qn_launcher;

extern const qn_launcher qn_launcher_items, qn_launcher_rows, qn_launcher_scans;

/* Generated: [qn_launched]; NULL where no kind of op in this library or tree is launched so. */
extern const qn_launcher *const qn_launchers[QN_LAUNCHED_COUNT];

static inline const qn_launcher *qn_launcher_of(const qn_decision *decision) {
  return qn_launchers[qn_kind_of(decision->called)->launched];
}

#endif
