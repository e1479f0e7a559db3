/* SPDX-License-Identifier: Apache-2.0
 *
 * row_pick.h: a stage that loads one element of each row, in place of a sum of that element and zeros. */
#ifndef QN_ROW_PICK_H
#define QN_ROW_PICK_H

#include "core/row/engine/row_frame.h"

/* Runs a stage of qn_row_picks: stores each row's element at a place, row-major over the axes (QN_ROW_INDEX: 1); 0: no such place. */
void qn_row_pick(row_frame *frame, const qn_row_stage *stage);

#endif
