/* SPDX-License-Identifier: Apache-2.0
 *
 * row_scans.c: see row_scans.h. */
#include "core/row/engine/row_scans.h"

#include <string.h>

#include "core/row/scan_op.h"

/* Turns the items of a row around. */
static void turn_row(char *row, int64_t count, int64_t size) {
  char item[QN_DTYPE_MAX_BYTES];
  for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
    memcpy(item, row + i * size, (size_t)size);
    memcpy(row + i * size, row + j * size, (size_t)size);
    memcpy(row + j * size, item, (size_t)size);
  }
}

/* Moves results one place on; `last` has the one before the first, and is set to the one behind the last. */
static void shift_row(char *row, int64_t count, int64_t size, char *last) {
  char next[QN_DTYPE_MAX_BYTES];
  memcpy(next, row + (count - 1) * size, (size_t)size);
  memmove(row + size, row, (size_t)((count - 1) * size));
  memcpy(row, last, (size_t)size);
  memcpy(last, next, (size_t)size);
}

/* Runs a stage that scans over a part, the next one of its walk: `place` is that of its first element there. */
static void scan_part(row_frame *frame, int32_t at, const qn_stage_part *part, int64_t place, int is_reverse) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const qn_row_scan *scan = stage->scan;
  const uint8_t dtype = scan->scan->dtype;
  const int64_t size = qn_dtype_infos[dtype].size;
  if (stage->variant) qn_row_compute(frame, at, part);
  value_place from = stage->variant ? frame->temp[scan->from - QN_ROW_TEMP] : qn_row_load_value(frame, scan->from, dtype, part);
  value_place *to = &frame->temp[scan->to - QN_ROW_TEMP];
  if (!stage->variant) *to = (value_place){qn_row_take(frame, part->count * frame->rows * size), part->count * size};
  for (int64_t j = 0; j < frame->rows && is_reverse; j++) {
    char *row = to->ptr + j * to->step;
    if (row != from.ptr + j * from.step) memcpy(row, from.ptr + j * from.step, (size_t)(part->count * size));
    turn_row(row, part->count, size);
  }
  if (is_reverse) from = *to;
  char *const ptr[3] = {from.ptr, frame->carries[at], to->ptr};
  const int64_t stride[3][2] = {{size, from.step}, {size, QN_ROW_CARRIES}, {size, to->step}}, extent[3] = {part->count, frame->rows, 0};
  const qn_scan_place params = {place, -1, scan->scan->by};
  job->scan[at](ptr, stride, extent, &params);
  for (int64_t j = 0; j < frame->rows; j++) {
    char *row = to->ptr + j * to->step, *last = frame->carries[at] + j * QN_ROW_CARRIES + QN_SCAN_CARRIES;
    if (scan->is_exclusive && place == 0) memcpy(last, scan->initial, (size_t)size);
    if (scan->is_exclusive) shift_row(row, part->count, size, last);
    if (is_reverse) turn_row(row, part->count, size);
  }
}

void qn_row_scans_begin(row_frame *frame, const qn_row_stage *stage) {
  for (int32_t s = 0; stage->feeders >> s; s++)
    if (stage->feeders >> s & 1) frame->carries[s] = qn_row_take(frame, frame->rows * QN_ROW_CARRIES);
}

void qn_row_scans(row_frame *frame, const qn_row_stage *stage, const qn_stage_part *part, int64_t place) {
  for (int32_t s = 0; stage->feeders >> s; s++)
    if (stage->feeders >> s & 1) scan_part(frame, s, part, place, stage->is_reverse);
}
