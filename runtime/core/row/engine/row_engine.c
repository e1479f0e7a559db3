/* SPDX-License-Identifier: Apache-2.0
 *
 * row_engine.c: see row_engine.h. */
#include "core/row/engine/row_engine.h"

#include <string.h>

#include "core/cpu/tiles.h"
#include "core/row/engine/row_blocks.h"
#include "core/row/engine/row_columns.h"
#include "core/row/engine/row_load.h"
#include "core/row/engine/row_scans.h"
#include "core/row/engine/row_split.h"

/* ---- Tiles of whole rows ---- */

static void run_whole(row_frame *frame) {
  const qn_row_job *job = frame->job;
  const qn_stage_part part = {.count = job->row};
  char *const before = frame->top;
  int32_t reduction = 0;
  for (int32_t s = 0; s < job->program->n_stages; s++) {
    const qn_row_stage *stage = &job->program->stages[s];
    if (qn_row_is_skipped(job, s) || stage->scan) continue;
    if (stage->is_row) {
      qn_row_compute_values(frame, s);
      continue;
    }
    if (job->program->n_scans) frame->top = before;
    qn_row_scans_begin(frame, stage);
    qn_row_scans(frame, stage, &part, 0);
    if (job->fused[s]) {
      qn_row_fused(frame, s, &part, 2, frame->row_value[stage->reduces[0].to]);
      reduction++;
      continue;
    }
    if (stage->variant) qn_row_compute(frame, s, &part);
    for (int32_t r = 0; r < stage->n_reduces; r++, reduction++) {
      const qn_row_reduce *reduce = &stage->reduces[r];
      value_place from[QN_ROW_MAX_PARTS];
      qn_row_reduced_places(frame, reduction, reduce, &part, from);
      if (reduce->by->n_parts == 1 && !reduce->by->steps && !job->narrow[reduction] && qn_row_are_short(job))
        qn_row_reduce_short(frame, reduce->by, job->both[reduction], from[0], frame->row_value[reduce->to]);
      else
        qn_row_inner(qn_row_elements_kernel(job, reduction), reduce->by, from, job->row, frame->rows, &frame->row_value[reduce->to], 1);
    }
  }
  frame->top = before;
}

/* Runs all stages on a tile of the paths BLOCKS and COLUMNS. */
static void run_stages(row_frame *frame) {
  const qn_row_job *job = frame->job;
  char *const before = frame->top;
  int32_t reduction = 0;
  if (job->is_across) qn_row_begin_across(frame);
  for (int32_t s = 0; s < job->program->n_stages; s++) {
    const qn_row_stage *stage = &job->program->stages[s];
    if (qn_row_is_skipped(job, s) || stage->scan) continue;
    if (stage->is_row)
      qn_row_compute_values(frame, s);
    else if (job->path == QN_ROW_COLUMNS && stage->n_reduces)
      qn_row_columns(frame, s, reduction);
    else if (job->path == QN_ROW_COLUMNS)
      qn_row_elements_across(frame, s);
    else
      qn_row_blocks(frame, s, reduction, qn_row_whole(job), NULL);
    reduction += stage->n_reduces;
  }
  if (job->is_across) qn_row_end_across(frame);
  frame->top = before;
}

/* ---- No elements ---- */

static void fill_outputs(row_frame *frame, double value) {
  const qn_row_job *job = frame->job;
  char *const before = frame->top, *values = qn_row_take(frame, frame->rows * QN_DTYPE_MAX_BYTES);
  uint64_t bits[QN_DTYPE_MAX_WORDS];
  const quern_scalar scalar = {.kind = QUERN_F64, .v = {.f = {value, 0}}};
  for (int32_t k = job->n_in; k < job->n_in + job->n_out; k++) {
    qn_params_number(&scalar, job->dtype[k], bits);
    for (int64_t j = 0; j < frame->rows; j++) memcpy(values + j * job->size[k], bits, job->size[k]);
    qn_row_store_values(job, k, job->dtype[k], frame->ptr[k], qn_row_step(job, k), frame->rows, values, NULL);
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
      for (int64_t j = 0; j < frame->rows; j++) memcpy(frame->row_value[stage->reduces[r].to] + j * size, by->empty, size);
    }
    if (stage->is_row) qn_row_compute_values(frame, s);
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

static void begin_frame(row_frame *frame, const qn_row_job *job, const void *params, char *scratch, int64_t bytes) {
  qn_row_begin(frame, job, params, scratch, bytes);
  for (int32_t r = 0; r < job->program->n_rows; r++) frame->row_value[r] = qn_row_take(frame, job->rows * QN_DTYPE_MAX_BYTES);
}

static void run_row_tile(row_frame *frame) {
  const qn_row_job *job = frame->job;
  if (job->count == 0)
    run_empty(frame);
  else if (job->path == QN_ROW_WHOLE)
    run_whole(frame);
  else
    run_stages(frame);
}

static void run_row_slice(void *arg, int64_t i) {
  const row_run *run = arg;
  const int64_t end = qn_tiles_part(run->n_tiles, i + 1, run->n_slices, 1);
  QN_IN_SCRATCH(row_frame, frame);
  begin_frame(frame, run->job, run->params, frame->scratch, sizeof frame->scratch);
  for (int64_t tile = qn_tiles_part(run->n_tiles, i, run->n_slices, 1); tile < end; tile++) {
    frame->rows = qn_row_tile(run->job, run->ref, tile, frame->ptr);
    run_row_tile(frame);
  }
}

/* ---- Wide tiles of columns ---- */

typedef struct wide_run {
  row_run run;
  const qn_row_job *narrow; /* the same with less scratch */
  qn_row_job job;
  qn_slices *slices; /* that run parts of tiles; n_parts 0: none do */
  int32_t n_parts;
  quern_status status;
} wide_run;

/* Runs a wide tile where there is no memory for its scratch. */
__attribute__((noinline)) static void run_narrow(const wide_run *wide, int64_t tile) {
  const qn_row_job *job = wide->narrow;
  QN_IN_SCRATCH(row_frame, frame);
  begin_frame(frame, job, wide->run.params, frame->scratch, sizeof frame->scratch);
  for (int64_t left = qn_row_tile(&wide->job, wide->run.ref, tile, frame->ptr); left > 0; left -= job->rows) {
    frame->rows = left < job->rows ? left : job->rows;
    run_row_tile(frame);
    for (int32_t k = 0; k < job->nest->n_operands; k++) frame->ptr[k] = qn_row_moved(frame->ptr[k], job->rows * qn_row_step(job, k));
  }
}

static void run_wide_slice(void *arg, int64_t i) {
  wide_run *wide = arg;
  const row_run *run = &wide->run;
  const int64_t end = qn_tiles_part(run->n_tiles, i + 1, run->n_slices, 1);
  __attribute__((cleanup(qn_give_scratch))) void *const taken = qn_row_take_wide();
  wide_frame *const room = taken;
  if (room) {
    begin_frame(&room->frame, run->job, run->params, room->scratch, sizeof room->scratch);
    room->frame.slices = wide->slices;
    room->frame.n_slices = wide->n_parts;
  }
  for (int64_t tile = qn_tiles_part(run->n_tiles, i, run->n_slices, 1); tile < end; tile++) {
    if (!room) {
      run_narrow(wide, tile);
      continue;
    }
    room->frame.rows = qn_row_tile(run->job, run->ref, tile, room->frame.ptr);
    run_row_tile(&room->frame);
  }
  if (room && room->frame.status) wide->status = room->frame.status; /* there are parts: then this is the only slice */
}

__attribute__((noinline)) static quern_status run_wide(const row_run *run, qn_slices *slices) {
  QN_IN_SCRATCH(wide_run, wide);
  wide->run = *run;
  wide->run.job = &wide->job;
  wide->narrow = run->job;
  wide->job = *run->job;
  qn_row_widen(&wide->job, run->n_slices);
  wide->run.n_tiles = qn_row_tiles(&wide->job);
  wide->slices = slices;
  wide->n_parts = 0;
  wide->status = QUERN_OK;
  if (run->n_slices > 1 && run->n_slices < 2 * wide->run.n_tiles) { /* else a tile is cut */
    if (wide->run.n_slices > wide->run.n_tiles) wide->run.n_slices = (int32_t)wide->run.n_tiles;
    return qn_slices_run(slices, wide->run.n_slices, run_wide_slice, wide);
  }
  wide->run.n_slices = 1;
  if (run->n_slices > 1) wide->n_parts = run->n_slices;
  run_wide_slice(wide, 0);
  return wide->status;
}

quern_status qn_row_run(const qn_row_job *job, const qn_ref *ref, const void *params, qn_slices *slices) {
  row_run run = {.job = job, .ref = ref, .params = params, .n_tiles = qn_row_tiles(job), .n_slices = qn_row_slices_now(job, slices)};
  quern_status status = QUERN_OK;
  if (job->may_widen) return run_wide(&run, slices);
  if (run.n_slices > 1 && qn_row_split(job, ref, params, run.n_tiles, run.n_slices, slices, &status)) return status;
  if (run.n_slices > run.n_tiles) run.n_slices = (int32_t)run.n_tiles;
  if (run.n_slices > 1) return qn_slices_run(slices, run.n_slices, run_row_slice, &run);
  run.n_slices = 1;
  run_row_slice(&run, 0);
  return QUERN_OK;
}
