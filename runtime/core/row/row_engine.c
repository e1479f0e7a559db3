/* SPDX-License-Identifier: Apache-2.0
 *
 * row_engine.c: see row_engine.h. */
#include "core/row/row_engine.h"

#include <string.h>

#include "core/base/status.h"
#include "core/cpu/tiles.h"
#include "core/row/row_columns.h"
#include "core/row/row_load.h"
#include "core/row/scan_op.h"

static char *moved(char *at, int64_t bytes) { return qn_row_moved(at, bytes); }

/* The stride of operand k from row to row of a tile. */
static int64_t row_step(const qn_row_job *job, int32_t k) {
  const qn_nest *nest = job->nest;
  return nest->rank > nest->n_reduced ? nest->stride[k][nest->n_reduced] : 0;
}

static int is_skipped(const qn_row_job *job, int32_t i) {
  const qn_row_program *program = job->program;
  if (!program->kept || i + 2 < program->n_stages) return 0;
  return program->stages[i].is_again ? job->is_kept != 0 : job->is_kept == 0;
}

/* ---- A stage of elements ---- */

/* The elements [first, first + count) of one segment, in each row of a tile. */
typedef struct stage_part {
  const int64_t *offset; /* [operands], in bytes: from a row's beginning to the segment; NULL: 0 */
  int64_t first, count;
  int64_t place; /* of the segment's first element in the row */
} stage_part;

static qn_row_part part_of(const row_frame *frame, int32_t k, const stage_part *part) {
  return (qn_row_part){.at = moved(frame->ptr[k], part->offset ? part->offset[k] : 0), .step = row_step(frame->job, k),
                       .first = part->first, .count = part->count, .rows = frame->rows};
}

/* The places of a part's first elements, alike in all rows. */
static value_place load_index(row_frame *frame, const stage_part *part, int64_t count) {
  const int64_t first = part->place + part->first;
  char *block = qn_row_take(frame, count * 8);
  int64_t *place = (int64_t *)(void *)block;
  for (int64_t i = 0; i < count; i++) place[i] = first + i;
  return (value_place){block, 0};
}

/* An input as elements of a dtype. */
static value_place load(row_frame *frame, int32_t k, uint8_t dtype, const stage_part *part) {
  const qn_row_job *job = frame->job;
  if (k == QN_ROW_INDEX) return load_index(frame, part, part->count);
  const qn_row_part rows = part_of(frame, k, part);
  const uint8_t size = qn_dtype_infos[dtype].size;
  if (qn_row_is_direct(job, k, dtype)) return (value_place){moved(rows.at, part->first * size), rows.step};
  const int64_t items = part->count * frame->rows;
  char *block = qn_row_take(frame, items * size), *staging = job->dtype[k] == dtype ? NULL : qn_row_take(frame, items * job->size[k]);
  qn_row_load(job, k, dtype, &rows, block, staging);
  return (value_place){block, part->count * size};
}

static value_place output_place(row_frame *frame, int32_t k, uint8_t dtype, const stage_part *part) {
  const qn_row_part rows = part_of(frame, k, part);
  const uint8_t size = qn_dtype_infos[dtype].size;
  if (qn_row_is_direct(frame->job, k, dtype)) return (value_place){moved(rows.at, part->first * size), rows.step};
  return (value_place){qn_row_take(frame, part->count * frame->rows * size), part->count * size};
}

/* Stores a block in the output. If the output is direct, the results are there already, unless is_forced: then `from` is a block, too. */
static void store_part(row_frame *frame, int32_t k, uint8_t dtype, value_place from, const stage_part *part, int is_forced) {
  const qn_row_job *job = frame->job;
  const qn_row_part rows = part_of(frame, k, part);
  if (qn_row_is_direct(job, k, dtype) && !is_forced) return;
  char *staging = job->dtype[k] == dtype ? NULL : qn_row_take(frame, part->count * frame->rows * job->size[k]);
  qn_row_store(job, k, dtype, &rows, from.ptr, staging);
}

/* Runs the steps of an interpreted stage, row by row. */
static void run_steps(row_frame *frame, const qn_row_stage *stage, char *const *ptr, const int64_t (*stride)[2], int64_t count,
                      int64_t rows) {
  const qn_row_steps *steps = stage->steps;
  char *const before = frame->top, *scratch = qn_row_take(frame, 8 * steps->n_ones + steps->temp_bytes * count);
  const int32_t n = stage->n_in + stage->n_out;
  char *at[QN_MAX_OPERANDS];
  for (int64_t j = 0; j < rows; j++) {
    for (int32_t i = 0; i < n; i++) at[i] = moved(ptr[i], j * stride[i][1]);
    steps->compute(steps, at, NULL, count, scratch, frame->params);
  }
  frame->top = before;
}

/* Whether a stage may write output `index` straight to the tensor, which may also be an input. Interpreted steps may not if they read
 * inputs after that. */
static int is_written_last(const qn_row_job *job, int32_t at, int32_t index) {
  return job->kernel[at] || job->program->stages[at].steps->in_place >> index & 1;
}

/* Runs the kernel of a stage of elements over a portion of a part; element `begin` of the temporaries is the portion's first one. */
static void compute_portion(row_frame *frame, int32_t at, const stage_part *part, int64_t begin) {
  const qn_row_job *job = frame->job;
  const qn_row_program *program = job->program;
  const qn_row_stage *stage = &program->stages[at];
  const uint8_t *dtypes = stage->variant->dtypes;
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
  value_place place[QN_MAX_OPERANDS];
  const int32_t n = stage->n_in + stage->n_out;
  for (int32_t i = 0; i < n; i++) {
    const uint8_t value = stage->values[i], size = qn_dtype_infos[dtypes[i]].size;
    int64_t inner = size;
    if (value < QN_ROW_OUTPUT) {
      place[i] = load(frame, value, dtypes[i], part);
    } else if (value < QN_ROW_VALUE) {
      place[i] = is_written_last(job, at, i - stage->n_in)
                     ? output_place(frame, job->n_in + value - QN_ROW_OUTPUT, dtypes[i], part)
                     : (value_place){qn_row_take(frame, part->count * frame->rows * size), part->count * size};
    } else if (value < QN_ROW_TEMP) {
      place[i] = (value_place){frame->row_value[value - QN_ROW_VALUE], size};
      inner = 0;
    } else if (i >= stage->n_in) {
      place[i] = frame->temp[value - QN_ROW_TEMP];
      place[i].ptr += begin * size;
    } else {
      const int is_in_output = value == program->kept && job->is_kept == 1;
      place[i] = is_in_output ? output_place(frame, job->n_in, dtypes[i], part) : frame->temp[value - QN_ROW_TEMP];
    }
    ptr[i] = place[i].ptr;
    stride[i][0] = inner;
    stride[i][1] = place[i].step;
  }
  const int64_t extent[3] = {part->count, frame->rows, 0};
  if (!job->kernel[at])
    run_steps(frame, stage, ptr, (const int64_t(*)[2])stride, part->count, frame->rows);
  else
    job->kernel[at](ptr, (const int64_t(*)[2])stride, extent, frame->params);
  for (int32_t i = stage->n_in; i < n; i++) {
    const uint8_t value = stage->values[i];
    if (value >= QN_ROW_OUTPUT && value < QN_ROW_VALUE)
      store_part(frame, job->n_in + value - QN_ROW_OUTPUT, dtypes[i], place[i], part, !is_written_last(job, at, i - stage->n_in));
  }
}

/* Runs the kernel of a stage of elements over a part. Its temporaries stay in scratch. */
static void compute_part(row_frame *frame, int32_t at, const stage_part *part) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  for (int32_t i = stage->n_in; i < stage->n_in + stage->n_out; i++) {
    const uint8_t value = stage->values[i], dtype = stage->variant->dtypes[i], size = qn_dtype_infos[dtype].size;
    if (value < QN_ROW_TEMP) continue;
    const int is_in_output = value == job->program->kept && job->is_kept == 1;
    frame->temp[value - QN_ROW_TEMP] =
        is_in_output ? output_place(frame, job->n_in, dtype, part)
                     : (value_place){qn_row_take(frame, part->count * frame->rows * size), part->count * size};
  }
  if (!job->portion) {
    compute_portion(frame, at, part, 0);
    return;
  }
  char *const before = frame->top;
  for (int64_t begin = 0; begin < part->count; begin += job->portion) {
    stage_part portion = *part;
    portion.first += begin;
    portion.count = part->count - begin < job->portion ? part->count - begin : job->portion;
    compute_portion(frame, at, &portion, begin);
    frame->top = before;
  }
}

/* ---- Scans before a stage ---- */

#define CARRIES 32 /* bytes of a scan for each row */

/* Turns the items of a row around. */
static void turn_row(char *row, int64_t count, int64_t size) {
  char item[8];
  for (int64_t i = 0, j = count - 1; i < j; i++, j--) {
    memcpy(item, row + i * size, (size_t)size);
    memcpy(row + i * size, row + j * size, (size_t)size);
    memcpy(row + j * size, item, (size_t)size);
  }
}

/* Moves results one place on; `last` has the one before the first, and is set to the one behind the last. */
static void shift_row(char *row, int64_t count, int64_t size, char *last) {
  char next[8];
  memcpy(next, row + (count - 1) * size, (size_t)size);
  memmove(row + size, row, (size_t)((count - 1) * size));
  memcpy(row, last, (size_t)size);
  memcpy(last, next, (size_t)size);
}

/* Runs a stage that scans over a part, the next one of its walk: `place` is that of its first element there. */
static void scan_part(row_frame *frame, int32_t at, const stage_part *part, int64_t place, int is_reverse) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const qn_row_scan *scan = stage->scan;
  const uint8_t dtype = scan->scan->dtype;
  const int64_t size = qn_dtype_infos[dtype].size;
  if (stage->variant) compute_part(frame, at, part);
  value_place from = stage->variant ? frame->temp[scan->from - QN_ROW_TEMP] : load(frame, scan->from, dtype, part);
  value_place *to = &frame->temp[scan->to - QN_ROW_TEMP];
  if (!stage->variant) *to = (value_place){qn_row_take(frame, part->count * frame->rows * size), part->count * size};
  for (int64_t j = 0; j < frame->rows && is_reverse; j++) {
    char *row = to->ptr + j * to->step;
    if (row != from.ptr + j * from.step) memcpy(row, from.ptr + j * from.step, (size_t)(part->count * size));
    turn_row(row, part->count, size);
  }
  if (is_reverse) from = *to;
  char *const ptr[3] = {from.ptr, frame->carries[at], to->ptr};
  const int64_t stride[3][2] = {{size, from.step}, {size, CARRIES}, {size, to->step}}, extent[3] = {part->count, frame->rows, 0};
  const qn_scan_place params = {place, scan->scan->by};
  job->scan[at](ptr, stride, extent, &params);
  for (int64_t j = 0; j < frame->rows; j++) {
    char *row = to->ptr + j * to->step, *last = frame->carries[at] + j * CARRIES + 24;
    if (scan->is_exclusive && place == 0) memcpy(last, &scan->initial, (size_t)size);
    if (scan->is_exclusive) shift_row(row, part->count, size, last);
    if (is_reverse) turn_row(row, part->count, size);
  }
}

/* Takes room for the carries of the scans before a stage. */
static void begin_scans(row_frame *frame, const qn_row_stage *stage) {
  for (int32_t s = 0; stage->feeders >> s; s++)
    if (stage->feeders >> s & 1) frame->carries[s] = qn_row_take(frame, frame->rows * CARRIES);
}

static void run_scans(row_frame *frame, const qn_row_stage *stage, const stage_part *part, int64_t place) {
  for (int32_t s = 0; stage->feeders >> s; s++)
    if (stage->feeders >> s & 1) scan_part(frame, s, part, place, stage->is_reverse);
}

/* Runs a stage whose kernel combines its elements. form: 1, the node of each row is stored at `to`; 2: its result. */
static void run_fused(row_frame *frame, int32_t at, const stage_part *part, int64_t form, char *to) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const int64_t extent[3] = {part->count, frame->rows, form}, out_size = qn_dtype_infos[stage->variant->dtypes[stage->n_in]].size;
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
  for (int32_t i = 0; i < stage->n_in; i++) {
    const uint8_t value = stage->values[i], size = qn_dtype_infos[stage->variant->dtypes[i]].size;
    const int is_element = value < QN_ROW_OUTPUT;
    const qn_row_part rows = is_element ? part_of(frame, value, part) : (qn_row_part){.at = frame->row_value[value - QN_ROW_VALUE], .step = size};
    ptr[i] = moved(rows.at, rows.first * size);
    stride[i][0] = is_element ? size : 0;
    stride[i][1] = rows.step;
  }
  ptr[stage->n_in] = to;
  stride[stage->n_in][0] = out_size;
  stride[stage->n_in][1] = form == 1 ? QN_ROW_LANES * out_size : out_size;
  job->kernel[at](ptr, (const int64_t(*)[2])stride, extent, frame->params);
}

/* Where a reduction reads its elements, after the stage's kernel has run: a place for each part of the state. */
static void reduced_places(row_frame *frame, int32_t reduction, const qn_row_reduce *reduce, const stage_part *part, value_place *from) {
  if (frame->job->narrow[reduction]) {
    const qn_row_part rows = part_of(frame, reduce->from, part);
    from[0] = (value_place){moved(rows.at, part->first * frame->job->size[reduce->from]), rows.step};
    return;
  }
  for (int32_t p = 0; p < reduce->by->n_parts; p++) {
    const uint8_t value = qn_row_from(reduce, p);
    if (value == QN_ROW_INDEX && reduce->by->finds && part->count >= QN_ROW_FOUND)
      from[p] = load_index(frame, part, 1);
    else
      from[p] = value >= QN_ROW_TEMP ? frame->temp[value - QN_ROW_TEMP] : load(frame, value, qn_reducer_dtype(reduce->by, p), part);
  }
}

static qn_kernel *elements_kernel(const qn_row_job *job, int32_t reduction) {
  return job->narrow[reduction] ? job->narrow[reduction] : job->inner[reduction];
}

/* Runs the kernel that reduces contiguous rows. from, to: a place for each part of the state. */
static void run_inner(qn_kernel *kernel, const qn_reducer *by, const value_place *from, int64_t count, int64_t rows, char *const *to,
                      int64_t is_whole) { /* of several rows: nodes of one part */
  char *ptr[2 * QN_ROW_MAX_PARTS];
  int64_t stride[2 * QN_ROW_MAX_PARTS][2];
  const int64_t extent[3] = {count, rows, 0};
  const qn_row_reducing params = {is_whole, by};
  for (int32_t p = 0, n = by->n_parts; p < n; p++) {
    const uint8_t size = qn_dtype_infos[qn_reducer_dtype(by, p)].size;
    ptr[p] = from[p].ptr;
    ptr[n + p] = to[p];
    stride[p][0] = stride[n + p][0] = size;
    stride[n + p][1] = is_whole ? size : QN_ROW_LANES * size;
    stride[p][1] = from[p].step;
  }
  kernel(ptr, (const int64_t(*)[2])stride, extent, &params);
}

static int64_t node_bytes(const qn_reducer *by) {
  int64_t bytes = 0;
  for (int32_t p = 0; p < by->n_parts; p++) bytes += QN_ROW_LANES * qn_dtype_infos[qn_reducer_dtype(by, p)].size;
  return bytes;
}

/* ---- Row values ---- */

/* Runs a stage of row values over the tile's rows. */
static void compute_rows(row_frame *frame, int32_t at) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  char *ptr[QN_MAX_OPERANDS], *const before = frame->top;
  int64_t stride[QN_MAX_OPERANDS][2];
  uint8_t dtypes[QN_MAX_OPERANDS];
  const int32_t n = stage->n_in + stage->n_out;
  for (int32_t i = 0; i < n; i++) {
    const uint8_t value = stage->values[i];
    dtypes[i] = stage->variant ? stage->variant->dtypes[i] : job->program->row_types[stage->values[0] - QN_ROW_VALUE];
    stride[i][0] = qn_dtype_infos[dtypes[i]].size;
    stride[i][1] = 0;
    ptr[i] = value >= QN_ROW_VALUE ? frame->row_value[value - QN_ROW_VALUE] : stage->variant ? qn_row_take(frame, frame->rows * stride[i][0]) : ptr[0];
  }
  const int64_t extent[3] = {frame->rows, 1, 0};
  if (stage->steps && !job->kernel[at])
    run_steps(frame, stage, ptr, (const int64_t(*)[2])stride, frame->rows, 1);
  else if (stage->variant)
    job->kernel[at](ptr, (const int64_t(*)[2])stride, extent, frame->params);
  for (int32_t i = stage->n_in; i < n; i++) {
    if (stage->values[i] >= QN_ROW_VALUE) continue;
    const int32_t k = job->n_in + stage->values[i] - QN_ROW_OUTPUT;
    qn_row_store_values(job, k, dtypes[i], frame->ptr[k], row_step(job, k), frame->rows, ptr[i], qn_row_take(frame, frame->rows * job->size[k]));
  }
  frame->top = before;
}

/* ---- Tiles of whole rows ---- */

static void run_whole(row_frame *frame) {
  const qn_row_job *job = frame->job;
  const stage_part part = {.count = job->row};
  char *const before = frame->top;
  int32_t reduction = 0;
  for (int32_t s = 0; s < job->program->n_stages; s++) {
    const qn_row_stage *stage = &job->program->stages[s];
    if (is_skipped(job, s) || stage->scan) continue;
    if (stage->is_row) {
      compute_rows(frame, s);
      continue;
    }
    if (job->program->n_scans) frame->top = before;
    begin_scans(frame, stage);
    run_scans(frame, stage, &part, 0);
    if (job->fused[s]) {
      run_fused(frame, s, &part, 2, frame->row_value[stage->reduces[0].to]);
      reduction++;
      continue;
    }
    if (stage->variant) compute_part(frame, s, &part);
    for (int32_t r = 0; r < stage->n_reduces; r++, reduction++) {
      const qn_row_reduce *reduce = &stage->reduces[r];
      value_place from[QN_ROW_MAX_PARTS];
      reduced_places(frame, reduction, reduce, &part, from);
      if (reduce->by->n_parts == 1 && !reduce->by->steps && !job->narrow[reduction] && qn_row_are_short(job))
        qn_row_reduce_short(frame, reduce->by, job->both[reduction], from[0], frame->row_value[reduce->to]);
      else
        run_inner(elements_kernel(job, reduction), reduce->by, from, job->row, frame->rows, &frame->row_value[reduce->to], 1);
    }
  }
  frame->top = before;
}

/* ---- Rows in blocks ---- */

static int64_t lanes_of(int64_t count) { return count < QN_ROW_LANES ? count : QN_ROW_LANES; }

/* Part of a row: elements of the joined axes, or, if there are further axes, indices of the outermost one. */
typedef struct row_range {
  int64_t begin, end;
} row_range;

static row_range whole_row(const qn_row_job *job) {
  return (row_range){0, job->n_further > 1 ? job->nest->n[job->nest->n_reduced - 1] : job->row};
}

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
                        row_range range) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const int64_t n_blocks = (range.end - range.begin + job->block - 1) / job->block;
  for (int64_t b = 0; b < n_blocks; b++) {
    char *const before = frame->top;
    stage_part part = {.offset = offset, .first = range.begin + b * job->block, .count = job->block, .place = place};
    if (part.first + part.count > range.end) part.count = range.end - part.first;
    if (stage->is_reverse) part.first = range.end - part.first - part.count;
    run_scans(frame, stage, &part, b * job->block);
    if (stage->variant && !job->fused[at]) compute_part(frame, at, &part);
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      node_stack *stack = &stacks[r];
      value_place from[QN_ROW_MAX_PARTS];
      char *node[QN_ROW_MAX_PARTS];
      qn_row_node_parts(stack->by, stack->nodes + stack->n++ * stack->bytes, node);
      if (job->fused[at]) {
        run_fused(frame, at, &part, 1, node[0]);
      } else {
        reduced_places(frame, first_reduction + r, &stage->reduces[r], &part, from);
        run_inner(elements_kernel(job, first_reduction + r), stack->by, from, part.count, frame->rows, node, 0);
      }
      if (frame->rows == 1 && is_decided(stage, stack, lanes_of(part.count))) {
        frame->top = before;
        return 1;
      }
      qn_row_settle(stack, b, n_blocks, lanes_of(part.count) * frame->rows);
    }
    frame->top = before;
  }
  return 0;
}

/* The segments along the first further axis that one call reduces: a power of two. */
#define BATCH 16

/* Whether a stage has one reduction that reads a tensor directly: then several segments may be reduced by one call. */
static int may_batch(const qn_row_job *job, int32_t at, int32_t first_reduction) {
  const qn_row_stage *stage = &job->program->stages[at];
  if (stage->variant || job->n_further == 1 || job->block != job->row || job->row < QN_ROW_LANES || stage->n_reduces != 1) return 0;
  const qn_row_reduce *reduce = &stage->reduces[0];
  if (reduce->by->n_parts != 1 || reduce->from >= job->n_in) return 0;
  return job->narrow[first_reduction] || qn_row_is_direct(job, reduce->from, reduce->by->dtype);
}

/* Reduces `count` segments, at most BATCH. Their node becomes the top of the stack. The first one's index is a multiple of BATCH. */
static void run_batch(row_frame *frame, int32_t at, int32_t first_reduction, node_stack *stack, const int64_t *offset, int64_t count) {
  const qn_row_job *job = frame->job;
  const qn_nest *nest = job->nest;
  const int32_t k = job->program->stages[at].reduces[0].from;
  const int64_t size = qn_dtype_infos[stack->by->dtype].size;
  const qn_row_reducing params = {0, stack->by};
  char *const before = frame->top, *nodes = qn_row_take(frame, BATCH * stack->bytes);
  char *const ptr[2] = {qn_row_moved(frame->ptr[k], offset[k]), nodes};
  const int64_t stride[2][2] = {{job->size[k], nest->stride[k][nest->n_joined]}, {size, stack->bytes}}, extent[3] = {job->row, count, 0};
  elements_kernel(job, first_reduction)(ptr, stride, extent, &params);
  for (int64_t apart = 1; apart < count; apart *= 2) {
    char *const pair[3] = {nodes, nodes + apart * stack->bytes, nodes};
    const int64_t step = 2 * apart * stack->bytes, steps[3][2] = {{size, step}, {size, step}, {size, step}};
    const int64_t pairs[3] = {QN_ROW_LANES, (count + apart - 1) / (2 * apart), 0};
    stack->both(pair, steps, pairs, &params);
  }
  memcpy(stack->nodes + stack->n++ * stack->bytes, nodes, (size_t)stack->bytes);
  frame->top = before;
}

/* The lanes of a node combined: a row value. Of `rows` nodes of one part: as many. */
static void finish_node(const qn_row_job *job, int32_t reduction, const qn_reducer *by, char *node, int64_t rows, char **to) {
  char *parts[QN_ROW_MAX_PARTS];
  value_place from[QN_ROW_MAX_PARTS];
  qn_row_node_parts(by, node, parts);
  for (int32_t p = 0; p < by->n_parts; p++) from[p] = (value_place){parts[p], QN_ROW_LANES * qn_dtype_infos[by->dtype].size};
  run_inner(job->inner[reduction], by, from, lanes_of(job->row), rows, to, 1);
}

/* Runs a stage of elements and its reductions over part of a row, segment by segment. Sets the row values; or, if `nodes` is not NULL,
 * stores the nodes of the reductions there, one after the other. */
static void run_row_stage(row_frame *frame, int32_t at, int32_t first_reduction, row_range range, char *nodes) {
  const qn_row_job *job = frame->job;
  const qn_nest *nest = job->nest;
  const qn_row_stage *stage = &job->program->stages[at];
  const int32_t last = job->n_further > 1 ? nest->n_reduced - 1 : -1;
  const int64_t inner = last >= 0 ? job->n_further / nest->n[last] : 1, n_segments = last >= 0 ? inner * (range.end - range.begin) : 1;
  const row_range elements = last >= 0 ? (row_range){0, job->row} : range;
  char *const before = frame->top;
  node_stack stacks[QN_ROW_MAX_REDUCES];
  int64_t index[QUERN_MAX_NDIM], offset[QN_ROW_MAX_VALUES] = {0};
  for (int32_t d = nest->n_joined; d < nest->n_reduced; d++) index[d] = 0;
  for (int32_t k = 0; k < nest->n_operands && last >= 0; k++) offset[k] = range.begin * nest->stride[k][last];
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_reducer *by = stage->reduces[r].by;
    stacks[r] = (node_stack){.both = job->both[first_reduction + r], .by = by, .bytes = node_bytes(by) * frame->rows,
                             .width = QN_ROW_LANES * frame->rows, .size = qn_dtype_infos[by->dtype].size};
    stacks[r].nodes = qn_row_take(frame, job->n_levels * stacks[r].bytes);
  }
  begin_scans(frame, stage);
  const int64_t batch = may_batch(job, at, first_reduction) ? BATCH : 1;
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
        qn_row_settle(&stacks[r], index[d] / of_batch, (n + of_batch - 1) / of_batch, lanes_of(job->row));
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
      finish_node(job, first_reduction + r, stacks[r].by, stacks[r].nodes, frame->rows, &frame->row_value[stage->reduces[r].to]);
    }
  }
  frame->top = before;
}

/* Runs all stages on a tile of the paths BLOCKS and COLUMNS. */
static void run_stages(row_frame *frame) {
  const qn_row_job *job = frame->job;
  int32_t reduction = 0;
  for (int32_t s = 0; s < job->program->n_stages; s++) {
    const qn_row_stage *stage = &job->program->stages[s];
    if (is_skipped(job, s) || stage->scan) continue;
    if (stage->is_row)
      compute_rows(frame, s);
    else if (job->path == QN_ROW_COLUMNS)
      qn_row_columns(frame, s);
    else
      run_row_stage(frame, s, reduction, whole_row(job), NULL);
    reduction += stage->n_reduces;
  }
}

/* ---- No elements ---- */

static void fill_outputs(row_frame *frame, double value) {
  const qn_row_job *job = frame->job;
  char *const before = frame->top, *values = qn_row_take(frame, frame->rows * 8);
  uint64_t bits;
  const quern_scalar scalar = {.kind = QUERN_F64, .v = {.f = {value, 0}}};
  for (int32_t k = job->n_in; k < job->n_in + job->n_out; k++) {
    qn_params_number(&scalar, job->dtype[k], &bits);
    for (int64_t j = 0; j < frame->rows; j++) memcpy(values + j * job->size[k], &bits, job->size[k]);
    qn_row_store_values(job, k, job->dtype[k], frame->ptr[k], row_step(job, k), frame->rows, values, NULL);
  }
  frame->top = before;
}

static void run_empty(row_frame *frame) {
  const qn_row_program *program = frame->job->program;
  if (program->has_empty) {
    fill_outputs(frame, program->empty);
    return;
  }
  for (int32_t s = 0; s < program->n_stages; s++) {
    const qn_row_stage *stage = &program->stages[s];
    for (int32_t r = 0; r < stage->n_reduces; r++) {
      const qn_reducer *by = stage->reduces[r].by;
      const uint8_t size = qn_dtype_infos[by->dtype].size;
      for (int64_t j = 0; j < frame->rows; j++) memcpy(frame->row_value[stage->reduces[r].to] + j * size, &by->empty, size);
    }
    if (stage->is_row) compute_rows(frame, s);
  }
}

/* ---- Slices ---- */

typedef struct row_run {
  const qn_row_job *job;
  const qn_ref *ref;
  const void *params;
  int64_t n_tiles;
  int32_t n_slices;
} row_run;

static int64_t tiles_along(const qn_row_job *job) {
  const qn_nest *nest = job->nest;
  const int64_t n = nest->rank > nest->n_reduced ? nest->n[nest->n_reduced] : 1;
  return (n + job->rows - 1) / job->rows;
}

/* Sets the frame to a tile. */
static void set_tile(row_frame *frame, const qn_ref *ref, int64_t tile) {
  const qn_row_job *job = frame->job;
  const qn_nest *nest = job->nest;
  const int32_t first = nest->n_reduced;
  const int64_t along = tiles_along(job), n = nest->rank > first ? nest->n[first] : 1, begin = tile % along * job->rows;
  frame->rows = n - begin < job->rows ? n - begin : job->rows;
  for (int32_t k = 0; k < nest->n_operands; k++) frame->ptr[k] = moved(qn_ref_address(ref[k]), begin * row_step(job, k));
  tile /= along;
  for (int32_t d = first + 1; d < nest->rank; d++) {
    const int64_t index = tile % nest->n[d];
    tile /= nest->n[d];
    for (int32_t k = 0; k < nest->n_operands; k++) frame->ptr[k] = moved(frame->ptr[k], index * nest->stride[k][d]);
  }
}

static void run_row_slice(void *arg, int64_t i) {
  const row_run *run = arg;
  const qn_row_job *job = run->job;
  const int64_t end = qn_tiles_part(run->n_tiles, i + 1, run->n_slices, 1);
  row_frame frame;
  frame.job = job;
  frame.params = run->params;
  frame.top = frame.scratch;
  for (int32_t r = 0; r < job->program->n_rows; r++) frame.row_value[r] = qn_row_take(&frame, job->rows * 8);
  for (int64_t tile = qn_tiles_part(run->n_tiles, i, run->n_slices, 1); tile < end; tile++) {
    set_tile(&frame, run->ref, tile);
    if (job->count == 0)
      run_empty(&frame);
    else if (job->path == QN_ROW_WHOLE)
      run_whole(&frame);
    else
      run_stages(&frame);
  }
}

/* ---- Few rows: slices of each ---- */

#define MOST_PARTS 16     /* of a row */
#define PARTS_BYTES 2048  /* of the nodes of all parts */

/* A row that is run in parts: aligned subtrees of its tree. Their nodes are joined by index. */
typedef struct split_row {
  const row_run *run;
  int64_t tile, part;       /* part: elements or indices in each but the last */
  int32_t n_parts;
  int32_t stage, reduction; /* that runs; its first reduction */
  int64_t node_bytes;       /* of the nodes of its reductions */
  uint64_t value[QN_ROW_MAX_VALUES];
  _Alignas(64) char nodes[PARTS_BYTES];
} split_row;

static void begin_split(row_frame *frame, split_row *row) {
  frame->job = row->run->job;
  frame->params = row->run->params;
  frame->top = frame->scratch;
  for (int32_t r = 0; r < frame->job->program->n_rows; r++) frame->row_value[r] = (char *)&row->value[r];
  set_tile(frame, row->run->ref, row->tile);
}

static void run_part(void *arg, int64_t i) {
  split_row *row = arg;
  const row_range whole = whole_row(row->run->job);
  row_range range = {i * row->part, (i + 1) * row->part};
  row_frame frame;
  begin_split(&frame, row);
  if (range.end > whole.end) range.end = whole.end;
  run_row_stage(&frame, row->stage, row->reduction, range, row->nodes + i * row->node_bytes);
}

__attribute__((noinline)) static void run_values(split_row *row) {
  row_frame frame;
  begin_split(&frame, row);
  compute_rows(&frame, row->stage);
}

/* The row values of a stage's reductions, from the nodes of its parts. */
static void join_parts(split_row *row) {
  const qn_row_job *job = row->run->job;
  const qn_row_stage *stage = &job->program->stages[row->stage];
  const int64_t in_last = whole_row(job).end - (row->n_parts - 1) * row->part;
  int64_t at = 0;
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_reducer *by = stage->reduces[r].by;
    _Alignas(64) char waiting[6 * QN_ROW_LANES * 8 * QN_ROW_MAX_PARTS];
    node_stack stack = {.both = job->both[row->reduction + r], .by = by, .nodes = waiting, .bytes = node_bytes(by), .width = QN_ROW_LANES,
                        .size = qn_dtype_infos[by->dtype].size};
    char *to[QN_ROW_MAX_PARTS];
    for (int32_t i = 0; i < row->n_parts; i++) {
      memcpy(stack.nodes + stack.n++ * stack.bytes, row->nodes + i * row->node_bytes + at, (size_t)stack.bytes);
      qn_row_settle(&stack, i, row->n_parts, lanes_of(job->n_further > 1 ? job->row : i + 1 < row->n_parts ? row->part : in_last));
    }
    for (int32_t p = 0; p < by->n_parts; p++) to[p] = (char *)&row->value[stage->reduces[r].to + p];
    finish_node(job, row->reduction + r, by, stack.nodes, 1, to);
    at += stack.bytes;
  }
}

/* Cuts rows in parts. Returns 0 if that is not possible, or not worth it. */
static int plan_split(const qn_row_job *job, int32_t n_slices, split_row *row) {
  const int64_t whole = whole_row(job).end, unit = job->n_further > 1 ? 1 : job->block == job->row ? QN_ROW_CHUNK : job->block;
  int64_t bytes = 1;
  if (job->count == 0 || !job->has_parts || n_slices < 2 * row->run->n_tiles) return 0;
  for (int32_t s = 0; s < job->program->n_stages; s++) {
    int64_t of_stage = 0;
    for (int32_t r = 0; r < job->program->stages[s].n_reduces; r++) of_stage += node_bytes(job->program->stages[s].reduces[r].by);
    if (of_stage > bytes) bytes = of_stage;
  }
  const int64_t most = PARTS_BYTES / bytes < MOST_PARTS ? PARTS_BYTES / bytes : MOST_PARTS;
  row->part = unit;
  while (most > 0 && (whole + row->part - 1) / row->part > most) row->part *= 2;
  row->n_parts = (int32_t)((whole + row->part - 1) / row->part);
  return most > 1 && row->n_parts > 1;
}

/* Runs all tiles in parts. Returns 0 if that is not possible. Not inlined, so that its stack is free when they are not. */
__attribute__((noinline)) static int run_split(const row_run *run, qn_slices *slices) {
  const qn_row_job *job = run->job;
  split_row row;
  row.run = run;
  if (!plan_split(job, run->n_slices, &row)) return 0;
  for (row.tile = 0; row.tile < run->n_tiles; row.tile++) {
    row.reduction = 0;
    for (row.stage = 0; row.stage < job->program->n_stages; row.stage++) {
      const qn_row_stage *stage = &job->program->stages[row.stage];
      if (is_skipped(job, row.stage)) continue;
      if (stage->is_row) {
        run_values(&row);
        continue;
      }
      row.node_bytes = 0;
      for (int32_t r = 0; r < stage->n_reduces; r++) row.node_bytes += node_bytes(stage->reduces[r].by);
      qn_slices_run(slices, row.n_parts, run_part, &row);
      join_parts(&row);
      row.reduction += stage->n_reduces;
    }
  }
  return 1;
}

int32_t qn_row_slices(const qn_row_job *job, const qn_slices *slices) {
  const int32_t limit = qn_slices_limit(slices);
  return job->most_slices < limit ? job->most_slices : limit;
}

void qn_row_run(const qn_row_job *job, const qn_ref *ref, const void *params, qn_slices *slices) {
  const qn_nest *nest = job->nest;
  row_run run = {.job = job, .ref = ref, .params = params, .n_tiles = tiles_along(job)};
  for (int32_t d = nest->n_reduced + 1; d < nest->rank; d++) run.n_tiles *= nest->n[d];
  run.n_slices = qn_row_slices(job, slices);
  if (run.n_slices > 1 && run_split(&run, slices)) return;
  if (run.n_slices > run.n_tiles) run.n_slices = (int32_t)run.n_tiles;
  if (run.n_slices > 1)
    qn_slices_run(slices, run.n_slices, run_row_slice, &run);
  else {
    run.n_slices = 1;
    run_row_slice(&run, 0);
  }
}
