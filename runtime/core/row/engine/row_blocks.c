/* SPDX-License-Identifier: Apache-2.0
 *
 * row_blocks.c: see row_blocks.h. */
#include "core/row/engine/row_blocks.h"

#include <string.h>

#include "core/row/engine/row_scans.h"

/* Whether the new top node of a stage's only reduction decides the result; then it becomes the only node. there: its accumulators. */
static int is_decided(const qn_row_stage *stage, node_stack *stack, int64_t there) {
  const qn_reducer *by = stack->by;
  if (!by->has_absorbing || stage->n_reduces > 1) return 0;
  if (!memchr(stack->nodes + (stack->n - 1) * stack->bytes, by->absorbing, (size_t)there)) return 0;
  memset(stack->nodes, by->absorbing, (size_t)stack->bytes);
  stack->n = 1;
  return 1;
}

/* Reduces elements [range.begin, range.end) of a segment. Their node becomes the top of each reduction's stack. A segment is the joined
 * axes at one index of the further axes. Returns whether the node decides the result. */
static int run_segment(row_frame *frame, int32_t at, int32_t first_reduction, node_stack *stacks, const int64_t *offset, int64_t place,
                        qn_row_range range) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const int64_t n_blocks = qn_ceil_div(range.end - range.begin, job->block);
  for (int64_t b = 0; b < n_blocks; b++) {
    char *const before = frame->top;
    qn_stage_part part = {.offset = offset, .first = range.begin + b * job->block, .count = job->block, .place = place};
    if (part.first + part.count > range.end) part.count = range.end - part.first;
    if (stage->is_reverse) part.first = range.end - part.first - part.count;
    qn_row_scans(frame, stage, &part, b * job->block);
    if (stage->variant && !job->fused[at]) qn_row_compute(frame, at, &part);
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      node_stack *stack = &stacks[r];
      value_place from[QN_ROW_MAX_PARTS];
      char *node[QN_ROW_MAX_PARTS];
      qn_row_node_parts(stack->by, stack->nodes + stack->n++ * stack->bytes, node);
      if (job->fused[at]) {
        qn_row_fused(frame, at, &part, 1, node[0]);
      } else {
        qn_row_reduced_places(frame, first_reduction + r, &stage->reduces[r], &part, from);
        qn_row_inner(qn_row_elements_kernel(job, first_reduction + r), stack->by, from, part.count, frame->rows, node, 0);
      }
      if (frame->rows == 1 && is_decided(stage, stack, qn_row_lanes_of(part.count))) {
        frame->top = before;
        return 1;
      }
      qn_row_settle(stack, b, n_blocks, qn_row_lanes_of(part.count) * frame->rows);
    }
    frame->top = before;
  }
  return 0;
}

/* The segments along the first further axis that one call reduces: a power of two. */
#define BATCH 16

/* That number for a stage that has one reduction, which reads a tensor directly; else 1. */
static int64_t batch_of(const qn_row_job *job, int32_t at, int32_t first_reduction) {
  const qn_row_stage *stage = &job->program->stages[at];
  if (stage->variant || job->n_further == 1 || job->block != job->row || job->row < QN_ROW_LANES || stage->n_reduces != 1) return 1;
  const qn_row_reduce *reduce = &stage->reduces[0];
  if (reduce->by->n_parts != 1 || reduce->from >= job->n_in) return 1;
  if (!job->narrow[first_reduction] && !qn_row_is_direct(job, reduce->from, reduce->by->dtype)) return 1;
  return reduce->by->joins ? QN_ROW_JOINED_AT_ONCE : BATCH;
}

/* Reduces `count` segments, at most those of a batch. Their node becomes the top of the stack. The first one's index is a multiple of that
 * number. */
static void run_batch(row_frame *frame, int32_t at, int32_t first_reduction, node_stack *stack, const int64_t *offset, int64_t count) {
  const qn_row_job *job = frame->job;
  const qn_nest *nest = job->nest;
  const int32_t k = job->program->stages[at].reduces[0].from;
  const int64_t size = qn_dtype_infos[stack->by->dtype].size;
  const qn_row_reducing params = {stack->by->joins ? QN_ROW_AS_ONE : 0, stack->by};
  char *const before = frame->top, *const node = stack->nodes + stack->n++ * stack->bytes;
  char *const nodes = stack->by->joins ? node : qn_row_take(frame, BATCH * stack->bytes);
  char *const ptr[2] = {qn_row_moved(frame->ptr[k], offset[k]), nodes};
  const int64_t stride[2][2] = {{job->size[k], nest->stride[k][nest->n_joined]}, {size, stack->bytes}}, extent[3] = {job->row, count, 0};
  qn_row_elements_kernel(job, first_reduction)(ptr, stride, extent, &params);
  if (stack->by->joins) return;
  for (int64_t apart = 1; apart < count; apart *= 2) {
    char *const pair[3] = {nodes, nodes + apart * stack->bytes, nodes};
    const int64_t step = 2 * apart * stack->bytes, steps[3][2] = {{size, step}, {size, step}, {size, step}};
    const int64_t pairs[3] = {QN_ROW_LANES, (count + apart - 1) / (2 * apart), 0};
    stack->both(pair, steps, pairs, &params);
  }
  memcpy(node, nodes, (size_t)stack->bytes);
  frame->top = before;
}

void qn_row_finish(const qn_row_job *job, int32_t reduction, const qn_reducer *by, char *node, int64_t rows, char **to) {
  char *parts[QN_ROW_MAX_PARTS];
  value_place from[QN_ROW_MAX_PARTS];
  qn_row_node_parts(by, node, parts);
  for (int32_t p = 0; p < by->n_parts; p++) from[p] = (value_place){parts[p], QN_ROW_LANES * qn_dtype_infos[by->dtype].size};
  qn_row_inner(job->inner[reduction], by, from, qn_row_lanes_of(job->row), rows, to, 1);
}

void qn_row_blocks(row_frame *frame, int32_t at, int32_t first_reduction, qn_row_range range, char *nodes) {
  const qn_row_job *job = frame->job;
  const qn_nest *nest = job->nest;
  const qn_row_stage *stage = &job->program->stages[at];
  const int32_t last = job->n_further > 1 ? nest->n_reduced - 1 : -1;
  const int64_t inner = last >= 0 ? job->n_further / nest->n[last] : 1, n_segments = last >= 0 ? inner * (range.end - range.begin) : 1;
  const qn_row_range elements = last >= 0 ? (qn_row_range){0, job->row} : range;
  char *const before = frame->top;
  node_stack stacks[QN_ROW_MAX_REDUCES];
  int64_t index[QUERN_MAX_NDIM], offset[QN_ROW_MAX_VALUES] = {0};
  for (int32_t d = nest->n_joined; d < nest->n_reduced; d++) index[d] = 0;
  for (int32_t k = 0; k < nest->n_operands && last >= 0; k++) offset[k] = range.begin * nest->stride[k][last];
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_reducer *by = stage->reduces[r].by;
    stacks[r] = (node_stack){.both = job->both[first_reduction + r], .by = by, .bytes = qn_row_node_bytes(by) * frame->rows,
                             .width = QN_ROW_LANES * frame->rows, .size = qn_dtype_infos[by->dtype].size};
    stacks[r].nodes = qn_row_take(frame, job->n_levels * stacks[r].bytes);
  }
  qn_row_scans_begin(frame, stage);
  const int64_t batch = batch_of(job, at, first_reduction);
  for (int64_t segment = 0, count; segment < n_segments; segment += count) {
    const int64_t place = last >= 0 ? (range.begin * inner + segment) * job->row : 0;
    count = 1;
    if (batch > 1) {
      const int64_t n = nest->n_joined == last ? range.end - range.begin : nest->n[nest->n_joined];
      count = n - index[nest->n_joined] < batch ? n - index[nest->n_joined] : batch;
      run_batch(frame, at, first_reduction, stacks, offset, count);
      if (is_decided(stage, stacks, QN_ROW_LANES)) break;
    } else if (run_segment(frame, at, first_reduction, stacks, offset, place, elements)) {
      break;
    }
    for (int32_t d = nest->n_joined; d < nest->n_reduced; d++) {
      const int64_t n = d == last ? range.end - range.begin : nest->n[d], of_batch = d == nest->n_joined ? batch : 1;
      const int64_t more = d == nest->n_joined ? count : 1;
      for (int32_t r = 0; r < stage->n_reduces; r++)
        qn_row_settle(&stacks[r], index[d] / of_batch, qn_ceil_div(n, of_batch), qn_row_lanes_of(job->row));
      const int wraps = (index[d] += more) == n;
      for (int32_t k = 0; k < nest->n_operands; k++) offset[k] += (wraps ? more - n : more) * nest->stride[k][d];
      if (!wraps) break;
      index[d] = 0;
    }
  }
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    if (nodes) {
      memcpy(nodes, stacks[r].nodes, (size_t)stacks[r].bytes);
      nodes += stacks[r].bytes;
    } else {
      qn_row_finish(job, first_reduction + r, stacks[r].by, stacks[r].nodes, frame->rows, &frame->row_value[stage->reduces[r].to]);
    }
  }
  frame->top = before;
}
