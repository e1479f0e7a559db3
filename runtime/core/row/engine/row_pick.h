/* SPDX-License-Identifier: Apache-2.0
 *
 * row_pick.h: a stage that takes an element of each row from its place, in place of a sum over all elements of which one is not 0. */
#ifndef QN_ROW_PICK_H
#define QN_ROW_PICK_H

#include "core/row/engine/row_frame.h"

/* Runs a stage of qn_row_picks: each row's element at its place in row-major order of the axes; of QN_ROW_INDEX 1. Where there is no such place: 0. */
void qn_row_pick(row_frame *frame, const qn_row_stage *stage);

#endif
