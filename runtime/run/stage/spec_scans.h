/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_scans.h: scans, and derivatives of scans, of specs: kernels that run the programs of their bodies, or what is compiled of them. */
#ifndef QN_SPEC_SCANS_H
#define QN_SPEC_SCANS_H

#include "run/stage/row_reducers.h"

/* Those of a context. */
typedef struct qn_spec_scans {
  struct spec_scan *first;
} qn_spec_scans;

/* Makes the kernels of an op that scans, or of an adjoint; of other ops none. Errors: those of qn_stage_code_make. */
quern_status qn_spec_scans_make(qn_spec_scans *all, qn_row_reducers *reducers, qn_spec_op *spec, const quern_op *op, const qn_stage_maker *by);

/* Frees those that were made since. */
void qn_spec_scans_cut(qn_spec_scans *all, qn_spec_scans before);

#endif
