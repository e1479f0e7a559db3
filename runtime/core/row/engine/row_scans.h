/* SPDX-License-Identifier: Apache-2.0
 *
 * row_scans.h: the scans that a stage of elements reads: stages that run on each block before it, in order. */
#ifndef QN_ROW_SCANS_H
#define QN_ROW_SCANS_H

#include "core/row/engine/row_stage.h"

/* Takes room for the carries of the scans before a stage. */
void qn_row_scans_begin(row_frame *frame, const qn_row_stage *stage);

/* Runs them over the next part of their walk. place: of its first element there. */
void qn_row_scans(row_frame *frame, const qn_row_stage *stage, const qn_stage_part *part, int64_t place);

#endif
