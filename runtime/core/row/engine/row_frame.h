/* SPDX-License-Identifier: Apache-2.0
 *
 * row_frame.h: a slice's state while it runs a job of rows. */
#ifndef QN_ROW_FRAME_H
#define QN_ROW_FRAME_H

#include "core/base/slices.h"
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
  value_place across[QN_ROW_MAX_VALUES]; /* the operands' elements, of a job that goes across */
  value_place temp[QN_ROW_MAX_VALUES];
  char *carries[QN_ROW_MAX_STAGES];   /* of stages that scan, for each row: QN_ROW_CARRIES */
  int64_t rows;
  qn_slices *slices; /* that a tile may be cut for; n_slices 0: for none */
  int32_t n_slices;
  quern_status status; /* of these slices */
  char *top, *end; /* of the scratch: `scratch`, or what is behind the frame */
  _Alignas(64) char scratch[QN_ROW_SCRATCH];
} row_frame;

/* A frame for a wide tile of columns: its scratch is behind it. */
typedef struct wide_frame {
  row_frame frame;
  _Alignas(64) char scratch[QN_ROW_WIDE_SCRATCH];
} wide_frame;

_Static_assert(sizeof(row_frame) <= 32000 && sizeof(wide_frame) <= 280000, "blocks of runtime/base/memory/scratch.c hold them");

/* Part of a row: elements of the joined axes, or, if there are further axes, indices of the outermost one. */
typedef struct qn_row_range {
  int64_t begin, end;
} qn_row_range;

static inline qn_row_range qn_row_whole(const qn_row_job *job) {
  return (qn_row_range){0, job->n_further > 1 ? job->nest->n[job->nest->n_reduced - 1] : job->row};
}

/* The least part of `whole`, `unit` times a power of two, of which there are at most `most`: such parts are aligned subtrees. */
static inline int64_t qn_row_subtree(int64_t whole, int64_t unit, int64_t most) {
  while (qn_ceil_div(whole, unit) > most) unit *= 2;
  return unit;
}

/* The memory of a wide frame, which qn_give_scratch takes back; NULL: there is none. */
static inline void *qn_row_take_wide(void) { return qn_above.take ? qn_above.take(sizeof(wide_frame)) : NULL; }

/* Begins a frame with `bytes` of scratch, for tiles of which no slices run parts. */
static inline void qn_row_begin(row_frame *frame, const qn_row_job *job, const void *params, char *scratch, int64_t bytes) {
  frame->job = job;
  frame->params = params;
  frame->top = scratch;
  frame->end = scratch + bytes;
  frame->n_slices = 0;
  frame->status = QUERN_OK;
}

static inline char *qn_row_take(row_frame *frame, int64_t bytes) {
  char *made = frame->top;
  frame->top += (bytes + 15) / 16 * 16;
  qn_assert(frame->top <= frame->end);
  return made;
}

/* The nodes that wait for their right neighbours, innermost last; nodes of one level follow one another. A node is an array of
 * accumulators: the lanes of a row, or as many for each of some columns. */
typedef struct node_stack {
  qn_kernel *both;
  const qn_reducer *by; /* NULL: accumulators have one part */
  char *nodes;   /* the lowest */
  int64_t bytes; /* of a node */
  int64_t width; /* accumulators of one that has all its lanes */
  uint8_t size;  /* of an accumulator */
  int32_t n;
} node_stack;

/* to = a combined with b, `count` accumulators each; to may be a. */
static inline void qn_row_both(qn_kernel *both, const qn_reducer *by, uint8_t size, char *a, char *b, char *to, int64_t count) {
  char *const ptr[3] = {a, b, to};
  const int64_t stride[3][2] = {{size, 0}, {size, 0}, {size, 0}}, extent[3] = {count, 1, 0};
  both(ptr, stride, extent, &(const qn_row_reducing){0, by});
}

/* The accumulators of each part of a node of a row. */
static inline void qn_row_node_parts(const qn_reducer *by, char *node, char **parts) {
  for (int32_t p = 0; p < by->n_parts; p++) {
    parts[p] = node;
    node += QN_ROW_LANES * qn_dtype_infos[qn_reducer_dtype(by, p)].size;
  }
}

/* left = left combined with right, of several parts. */
static inline void qn_row_both_parts(qn_kernel *both, const qn_reducer *by, char *left, char *right, int64_t count) {
  char *ptr[3 * QN_ROW_MAX_PARTS];
  int64_t stride[3 * QN_ROW_MAX_PARTS][2];
  const int64_t extent[3] = {count, 1, 0};
  const int32_t n = by->n_parts;
  qn_row_node_parts(by, left, ptr);
  qn_row_node_parts(by, right, ptr + n);
  qn_row_node_parts(by, left, ptr + 2 * n);
  for (int32_t k = 0; k < 3 * n; k++) {
    stride[k][0] = qn_dtype_infos[qn_reducer_dtype(by, k % n)].size;
    stride[k][1] = 0;
  }
  both(ptr, (const int64_t(*)[2])stride, extent, &(const qn_row_reducing){0, by});
}

/* Joins the top node with the one below. there: how many accumulators the top one has. */
static inline void qn_row_join(node_stack *stack, int64_t there) {
  char *left = stack->nodes + (stack->n - 2) * stack->bytes;
  if (stack->by && stack->by->n_parts > 1)
    qn_row_both_parts(stack->both, stack->by, left, left + stack->bytes, there);
  else
    qn_row_both(stack->both, stack->by, stack->size, left, left + stack->bytes, left, there);
  stack->n--;
}

/* Joins the top node, number `index` of the `count` of its level, with each waiting node that now has its right side complete. */
static inline void qn_row_settle(node_stack *stack, int64_t index, int64_t count, int64_t there) {
  const int is_last = index + 1 == count;
  for (int64_t bits = index; bits & 1 || (is_last && bits); bits >>= 1)
    if (bits & 1) {
      qn_row_join(stack, there);
      there = stack->width;
    }
}

#endif
