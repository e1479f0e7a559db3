/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_scans.h: scans with states, and derivatives of scans, of specs: kernels that run the programs of lift, combine and finish, or what
 * is compiled of them. */
#ifndef QN_SPEC_SCANS_H
#define QN_SPEC_SCANS_H

#include "run/row_reducers.h"

/* Those of a context. */
typedef struct qn_spec_scans {
  struct spec_scan *first;
} qn_spec_scans;

/* Makes what stands for the kernel of an op for a dtype; reducer: of its combine; before: the input that is read one place earlier, or -1,
 * and what it is at the first place. *rows: as the kernel of an adjoint. Errors: those of qn_stage_code_make. */
quern_status qn_spec_scans_make(qn_spec_scans *all, const qn_spec_states *wanted, const quern_op *op, const qn_reducer *reducer, int32_t before,
                                double initial, const qn_stage_maker *by, const qn_variant **rows, const qn_scan_states **states);

/* Frees those that were made since. */
void qn_spec_scans_cut(qn_spec_scans *all, qn_spec_scans before);

#endif
