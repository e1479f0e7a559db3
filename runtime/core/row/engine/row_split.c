/* SPDX-License-Identifier: Apache-2.0
 *
 * row_split.c: see row_split.h. */
#include "core/row/engine/row_split.h"

#include <string.h>

#include "core/cpu/tiles.h"
#include "core/row/engine/row_blocks.h"

#define MOST_PARTS 32     /* of a row */
#define PARTS_BYTES 2048  /* of the nodes of all parts */
#define RUNS_A_SLICE 4    /* runs for each slice, if the work is worth that many slices */

/* A row that is run in parts: aligned subtrees of its tree. Their nodes are joined by index. */
typedef struct split_row {
  const qn_row_job *job;
  const qn_ref *ref;
  const void *params;
  int64_t tile, part;       /* part: elements or indices in each but the last */
  int32_t n_parts, n_runs;  /* runs: of successive parts, which a thread takes at a time */
  uint8_t levels[MOST_PARTS]; /* of the node that begins with a part, if one does: it has 2^levels parts, the last one of the row perhaps less */
  int32_t stage, reduction; /* that runs; its first reduction */
  int64_t node_bytes;       /* of the nodes of its reductions */
  uint64_t value[QN_ROW_MAX_VALUES][QN_DTYPE_MAX_WORDS];
  _Alignas(64) char nodes[PARTS_BYTES];
} split_row;

static void begin_split(row_frame *frame, split_row *row) {
  qn_row_begin(frame, row->job, row->params, frame->scratch, sizeof frame->scratch);
  for (int32_t r = 0; r < frame->job->program->n_rows; r++) frame->row_value[r] = (char *)row->value[r];
  frame->rows = qn_row_tile(row->job, row->ref, row->tile, frame->ptr);
}

/* The levels of the largest aligned subtree of parts that begins with `part` and lies within the run that ends before `end`; in the last run it
 * may be incomplete. */
static int32_t levels_at(const split_row *row, int64_t part, int64_t end) {
  int32_t levels = 0;
  while (!(part >> levels & 1) && (part + (INT64_C(2) << levels) <= end || (end == row->n_parts && part + (INT64_C(1) << levels) < end))) levels++;
  return levels;
}

static void run_parts(void *arg, int64_t i) {
  split_row *row = arg;
  const qn_row_range whole = qn_row_whole(row->job);
  const int64_t end = qn_tiles_part(row->n_parts, i + 1, row->n_runs, 1);
  QN_IN_SCRATCH(row_frame, frame);
  begin_split(frame, row);
  for (int64_t part = qn_tiles_part(row->n_parts, i, row->n_runs, 1); part < end; part += INT64_C(1) << row->levels[part]) {
    qn_row_range range = {part * row->part, (part + (INT64_C(1) << row->levels[part])) * row->part};
    if (range.end > whole.end) range.end = whole.end;
    qn_row_blocks(frame, row->stage, row->reduction, range, row->nodes + part * row->node_bytes);
  }
}

__attribute__((noinline)) static void run_values(split_row *row) {
  QN_IN_SCRATCH(row_frame, frame);
  begin_split(frame, row);
  qn_row_compute_values(frame, row->stage);
}

/* The row values of a stage's reductions, from the nodes of its parts. */
static void join_parts(split_row *row) {
  const qn_row_job *job = row->job;
  const qn_row_stage *stage = &job->program->stages[row->stage];
  const int64_t in_last = qn_row_whole(job).end - (row->n_parts - 1) * row->part;
  int64_t at = 0;
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_reducer *by = stage->reduces[r].by;
    _Alignas(64) char waiting[6 * QN_ROW_LANES * QN_DTYPE_MAX_BYTES * QN_ROW_MAX_PARTS];
    node_stack stack = {.both = job->both[row->reduction + r], .by = by, .nodes = waiting, .bytes = qn_row_node_bytes(by), .width = QN_ROW_LANES,
                        .size = qn_dtype_infos[by->dtype].size};
    char *to[QN_ROW_MAX_PARTS];
    for (int64_t i = 0, step; i < row->n_parts; i += step) {
      step = INT64_C(1) << row->levels[i];
      memcpy(stack.nodes + stack.n++ * stack.bytes, row->nodes + i * row->node_bytes + at, (size_t)stack.bytes);
      qn_row_settle(&stack, i / step, qn_ceil_div(row->n_parts, step), qn_row_lanes_of(job->n_further > 1 ? job->row : i + 1 < row->n_parts ? row->part : in_last));
    }
    for (int32_t p = 0; p < by->n_parts; p++) to[p] = (char *)row->value[stage->reduces[r].to + p];
    qn_row_finish(job, row->reduction + r, by, stack.nodes, 1, to);
    at += stack.bytes;
  }
}

/* Cuts rows in parts, as many as there is room for, so that runs of them have nearly equal lengths. Returns 0 if that is not possible, or not worth it. */
static int plan_split(const qn_row_job *job, int64_t n_tiles, int32_t n_slices, split_row *row) {
  const int64_t whole = qn_row_whole(job).end, unit = job->n_further > 1 ? 1 : job->block == job->row ? QN_ROW_CHUNK : job->block;
  int64_t bytes = 1;
  if (job->count == 0 || !job->has_parts || n_slices < 2 * n_tiles) return 0;
  for (int32_t s = 0; s < job->program->n_stages; s++) {
    int64_t of_stage = 0;
    for (int32_t r = 0; r < job->program->stages[s].n_reduces; r++) of_stage += qn_row_node_bytes(job->program->stages[s].reduces[r].by);
    if (of_stage > bytes) bytes = of_stage;
  }
  const int64_t most = PARTS_BYTES / bytes < MOST_PARTS ? PARTS_BYTES / bytes : MOST_PARTS;
  if (most < 2) return 0;
  row->part = qn_row_subtree(whole, unit, most);
  row->n_parts = (int32_t)qn_ceil_div(whole, row->part);
  row->n_runs = job->most_slices < RUNS_A_SLICE * n_slices ? n_slices : RUNS_A_SLICE * n_slices;
  if (row->n_runs > row->n_parts) row->n_runs = row->n_parts;
  for (int32_t i = 0; i < row->n_runs; i++) {
    const int64_t end = qn_tiles_part(row->n_parts, i + 1, row->n_runs, 1);
    for (int64_t part = qn_tiles_part(row->n_parts, i, row->n_runs, 1); part < end; part += INT64_C(1) << row->levels[part])
      row->levels[part] = (uint8_t)levels_at(row, part, end);
  }
  return row->n_parts > 1;
}

int qn_row_split(const qn_row_job *job, const qn_ref *ref, const void *params, int64_t n_tiles, int32_t n_slices, qn_slices *slices,
                 quern_status *status) {
  QN_IN_SCRATCH(split_row, row);
  row->job = job;
  row->ref = ref;
  row->params = params;
  if (!plan_split(job, n_tiles, n_slices, row)) return 0;
  for (row->tile = 0; row->tile < n_tiles; row->tile++) {
    row->reduction = 0;
    for (row->stage = 0; row->stage < job->program->n_stages; row->stage++) {
      const qn_row_stage *stage = &job->program->stages[row->stage];
      if (qn_row_is_skipped(job, row->stage)) continue;
      if (stage->is_row) {
        run_values(row);
        continue;
      }
      row->node_bytes = 0;
      for (int32_t r = 0; r < stage->n_reduces; r++) row->node_bytes += qn_row_node_bytes(stage->reduces[r].by);
      const quern_status of_part = qn_slices_run(slices, row->n_runs, run_parts, row);
      if (of_part) *status = of_part;
      join_parts(row);
      row->reduction += stage->n_reduces;
    }
  }
  return 1;
}
