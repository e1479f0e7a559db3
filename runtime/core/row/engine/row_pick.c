/* SPDX-License-Identifier: Apache-2.0
 *
 * row_pick.c: see row_pick.h. */
#include "core/row/engine/row_pick.h"

#include <string.h>

#include "core/row/engine/row_load.h"
#include "core/row/engine/row_tiles.h"

/* The bytes from a row's beginning to its element `place`. */
static int64_t offset_of(const qn_row_job *job, int32_t k, int64_t place) {
  const qn_nest *nest = job->nest;
  int64_t bytes = 0;
  for (int32_t d = 0; d + 1 < nest->n_reduced; d++) {
    const int64_t rest = place / nest->n[d];
    bytes += (place - rest * nest->n[d]) * nest->stride[k][d];
    place = rest;
  }
  return nest->n_reduced ? bytes + place * nest->stride[k][nest->n_reduced - 1] : 0;
}

/* Copies an item. size: of a dtype, so at most QN_DTYPE_MAX_BYTES */
static void copy_item(uint8_t size, char *to, const char *from) {
  if (size == 4)
    memcpy(to, from, 4);
  else if (size == 8)
    memcpy(to, from, 8);
  else
    memcpy(to, from, size < QN_DTYPE_MAX_BYTES ? size : QN_DTYPE_MAX_BYTES);
}

/* items[j] = item places[j] of row j of input k, or 0 if it has none; rows along one dimension. size: a constant, at most 8. */
static inline __attribute__((always_inline)) void pick_items(const row_frame *frame, int32_t k, size_t size, const int64_t *places,
                                                             char *items) {
  const qn_row_job *job = frame->job;
  const int64_t step = qn_row_step(job, k), inner = job->nest->stride[k][0];
  for (int64_t j = 0; j < frame->rows; j++) {
    const int is_there = (uint64_t)places[j] < (uint64_t)job->count;
    uint64_t bits = 0;
    memcpy(&bits, qn_row_moved(frame->ptr[k], j * step + (is_there ? places[j] * inner : 0)), size);
    bits = is_there ? bits : 0;
    memcpy(items + j * (int64_t)size, &bits, size);
  }
}

void qn_row_pick(row_frame *frame, const qn_row_stage *stage) {
  const qn_row_job *job = frame->job;
  const int32_t from = stage->values[0], at = stage->values[1], to = stage->values[2] - QN_ROW_VALUE;
  const uint8_t dtype = job->program->row_types[to], size = qn_dtype_infos[dtype].size;
  const int64_t step = qn_row_step(job, at), rows = frame->rows;
  char *const before = frame->top, *row_value = frame->row_value[to], *items = row_value;
  int64_t *places = (int64_t *)(void *)qn_row_take(frame, rows * 8);
  const int is_one = from == QN_ROW_INDEX, is_converted = !is_one && job->dtype[from] != dtype;
  const uint8_t item = is_one ? size : job->size[from];
  if (job->count == 0)
    for (int64_t j = 0; j < rows; j++) places[j] = -1;
  else if (job->dtype[at] != QN_I64)
    qn_row_convert(job->dtype[at], QN_I64, frame->ptr[at], step, (char *)places, 8, 1, rows);
  else
    for (int64_t j = 0; j < rows; j++) memcpy(&places[j], qn_row_moved(frame->ptr[at], j * step), 8);
  if (is_converted) items = qn_row_take(frame, rows * item);
  const int64_t one = 1, from_step = is_one ? 0 : qn_row_step(job, from);
  const int is_simple = job->count > 0 && (is_one ? item == 8 : job->nest->n_reduced == 1 && (item == 4 || item == 8));
  if (is_simple && is_one)
    for (int64_t j = 0; j < rows; j++) memcpy(items + j * 8, &(const int64_t){(uint64_t)places[j] < (uint64_t)job->count}, 8);
  else if (is_simple && item == 4)
    pick_items(frame, from, 4, places, items);
  else if (is_simple)
    pick_items(frame, from, 8, places, items);
  for (int64_t j = 0; j < rows && !is_simple; j++) {
    uint64_t bits[QN_DTYPE_MAX_WORDS] = {0};
    if (places[j] >= 0 && places[j] < job->count) {
      const char *element = is_one ? (const char *)&one : qn_row_moved(frame->ptr[from], j * from_step + offset_of(job, from, places[j]));
      copy_item(item, (char *)bits, element);
    }
    copy_item(item, items + j * item, (const char *)bits);
  }
  if (is_converted) qn_row_convert(job->dtype[from], dtype, items, item, row_value, qn_dtype_infos[dtype].size, 1, rows);
  frame->top = before;
}
