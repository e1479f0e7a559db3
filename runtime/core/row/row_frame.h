/* SPDX-License-Identifier: Apache-2.0
 *
 * row_frame.h: a slice's state while it runs a job of rows. */
#ifndef QN_ROW_FRAME_H
#define QN_ROW_FRAME_H

#include "core/base/status.h"
#include "core/row/row_job.h"

/* Where a value is: an element of column i and row j at ptr + i * its size + j * step. */
typedef struct value_place {
  char *ptr;
  int64_t step;
} value_place;

/* A slice's state. */
typedef struct row_frame {
  const qn_row_job *job;
  const void *params;
  char *ptr[QN_ROW_MAX_VALUES];       /* the operands at the tile's first row */
  char *row_value[QN_ROW_MAX_VALUES]; /* an array of the tile's rows */
  value_place temp[QN_ROW_MAX_VALUES];
  int64_t rows;
  char *top; /* of the scratch */
  _Alignas(64) char scratch[QN_ROW_SCRATCH];
} row_frame;

static inline char *qn_row_take(row_frame *frame, int64_t bytes) {
  char *made = frame->top;
  frame->top += (bytes + 15) / 16 * 16;
  qn_assert(frame->top <= frame->scratch + sizeof frame->scratch);
  return made;
}

static inline char *qn_row_moved(char *at, int64_t bytes) { return (char *)((uintptr_t)at + (uintptr_t)bytes); }

#endif
