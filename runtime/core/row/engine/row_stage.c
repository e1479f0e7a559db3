/* SPDX-License-Identifier: Apache-2.0
 *
 * row_stage.c: see row_stage.h. */
#include "core/row/engine/row_stage.h"

#include "core/row/engine/row_load.h"
#include "core/row/engine/row_pick.h"

int qn_row_is_skipped(const qn_row_job *job, int32_t i) {
  const qn_row_program *program = job->program;
  if (!program->kept || i + 2 < program->n_stages) return 0;
  return program->stages[i].is_again ? job->is_kept != 0 : job->is_kept == 0;
}

/* ---- A stage of elements ---- */

static qn_row_part part_of(const row_frame *frame, int32_t k, const qn_stage_part *part) {
  return (qn_row_part){.at = qn_row_moved(frame->ptr[k], part->offset ? part->offset[k] : 0), .step = qn_row_step(frame->job, k),
                       .first = part->first, .count = part->count, .rows = frame->rows};
}

/* The places of a part's first elements, alike in all rows. */
static value_place load_index(row_frame *frame, const qn_stage_part *part, int64_t count) {
  const int64_t first = part->place + part->first;
  char *block = qn_row_take(frame, count * 8);
  int64_t *place = (int64_t *)(void *)block;
  for (int64_t i = 0; i < count; i++) place[i] = first + i;
  return (value_place){block, 0};
}

value_place qn_row_load_value(row_frame *frame, int32_t k, uint8_t dtype, const qn_stage_part *part) {
  const qn_row_job *job = frame->job;
  if (k == QN_ROW_INDEX) return load_index(frame, part, part->count);
  const qn_row_part rows = part_of(frame, k, part);
  const uint8_t size = qn_dtype_infos[dtype].size;
  if (qn_row_is_direct(job, k, dtype)) return (value_place){qn_row_moved(rows.at, part->first * size), rows.step};
  const int64_t items = part->count * frame->rows;
  char *block = qn_row_take(frame, items * size), *staging = job->dtype[k] == dtype ? NULL : qn_row_take(frame, items * job->size[k]);
  qn_row_load(job, k, dtype, &rows, block, staging);
  return (value_place){block, part->count * size};
}

static value_place output_place(row_frame *frame, int32_t k, uint8_t dtype, const qn_stage_part *part) {
  const qn_row_part rows = part_of(frame, k, part);
  const uint8_t size = qn_dtype_infos[dtype].size;
  if (qn_row_is_direct(frame->job, k, dtype)) return (value_place){qn_row_moved(rows.at, part->first * size), rows.step};
  return (value_place){qn_row_take(frame, part->count * frame->rows * size), part->count * size};
}

/* Stores a block in the output. If the output is direct, the results are there already, unless is_forced: then `from` is a block, too. */
static void store_part(row_frame *frame, int32_t k, uint8_t dtype, value_place from, const qn_stage_part *part, int is_forced) {
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
    for (int32_t i = 0; i < n; i++) at[i] = qn_row_moved(ptr[i], j * stride[i][1]);
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
static void compute_portion(row_frame *frame, int32_t at, const qn_stage_part *part, int64_t begin) {
  const qn_row_job *job = frame->job;
  const qn_row_program *program = job->program;
  const qn_row_stage *stage = &program->stages[at];
  const uint8_t *dtypes = stage->variant->dtypes;
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
  value_place place[QN_MAX_OPERANDS];
  const int32_t n = stage->n_in + stage->n_out;
  int is_dense = job->kernel[at] != NULL;
  for (int32_t i = 0; i < n; i++) {
    const uint8_t value = stage->values[i], size = qn_dtype_infos[dtypes[i]].size;
    int64_t inner = size;
    if (value < QN_ROW_OUTPUT) {
      place[i] = qn_row_load_value(frame, value, dtypes[i], part);
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
      if (!is_in_output) place[i].ptr += begin * size;
    }
    ptr[i] = place[i].ptr;
    stride[i][0] = inner;
    stride[i][1] = place[i].step;
    is_dense &= place[i].step == inner * part->count;
  }
  const int64_t rows = is_dense ? 1 : frame->rows, extent[3] = {part->count * (frame->rows / rows), rows, 0}; /* dense: as one row */
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

void qn_row_compute(row_frame *frame, int32_t at, const qn_stage_part *part) {
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
    qn_stage_part piece = *part;
    piece.first += begin;
    piece.count = part->count - begin < job->portion ? part->count - begin : job->portion;
    compute_portion(frame, at, &piece, begin);
    frame->top = before;
  }
}

void qn_row_fused(row_frame *frame, int32_t at, const qn_stage_part *part, int64_t form, char *to) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const int64_t extent[3] = {part->count, frame->rows, form}, out_size = qn_dtype_infos[stage->variant->dtypes[stage->n_in]].size;
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
  for (int32_t i = 0; i < stage->n_in; i++) {
    const uint8_t value = stage->values[i], size = qn_dtype_infos[stage->variant->dtypes[i]].size;
    const int is_element = value < QN_ROW_OUTPUT;
    const qn_row_part rows = is_element ? part_of(frame, value, part) : (qn_row_part){.at = frame->row_value[value - QN_ROW_VALUE], .step = size};
    ptr[i] = qn_row_moved(rows.at, rows.first * size);
    stride[i][0] = is_element ? size : 0;
    stride[i][1] = rows.step;
  }
  ptr[stage->n_in] = to;
  stride[stage->n_in][0] = out_size;
  stride[stage->n_in][1] = form == 1 ? QN_ROW_LANES * out_size : out_size;
  job->kernel[at](ptr, (const int64_t(*)[2])stride, extent, frame->params);
}

void qn_row_reduced_places(row_frame *frame, int32_t reduction, const qn_row_reduce *reduce, const qn_stage_part *part, value_place *from) {
  if (frame->job->narrow[reduction]) {
    const qn_row_part rows = part_of(frame, reduce->from, part);
    from[0] = (value_place){qn_row_moved(rows.at, part->first * frame->job->size[reduce->from]), rows.step};
    return;
  }
  for (int32_t p = 0; p < reduce->by->n_parts; p++) {
    const uint8_t value = qn_row_from(reduce, p);
    if (value == QN_ROW_INDEX && reduce->by->finds && part->count >= QN_ROW_FOUND)
      from[p] = load_index(frame, part, 1);
    else
      from[p] = value >= QN_ROW_TEMP ? frame->temp[value - QN_ROW_TEMP] : qn_row_load_value(frame, value, qn_reducer_dtype(reduce->by, p), part);
  }
}

qn_kernel *qn_row_elements_kernel(const qn_row_job *job, int32_t reduction) {
  return job->narrow[reduction] ? job->narrow[reduction] : job->inner[reduction];
}

void qn_row_inner(qn_kernel *kernel, const qn_reducer *by, const value_place *from, int64_t count, int64_t rows, char *const *to,
                      int64_t is_whole) {
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

int64_t qn_row_node_bytes(const qn_reducer *by) {
  int64_t bytes = 0;
  for (int32_t p = 0; p < by->n_parts; p++) bytes += QN_ROW_LANES * qn_dtype_infos[qn_reducer_dtype(by, p)].size;
  return bytes;
}

/* ---- Row values ---- */

void qn_row_compute_values(row_frame *frame, int32_t at) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  char *ptr[QN_MAX_OPERANDS], *const before = frame->top;
  int64_t stride[QN_MAX_OPERANDS][2];
  uint8_t dtypes[QN_MAX_OPERANDS], is_stored[QN_MAX_OPERANDS];
  const int32_t n = stage->n_in + stage->n_out;
  if (qn_row_picks(stage)) {
    qn_row_pick(frame, stage);
    return;
  }
  for (int32_t i = 0; i < n; i++) {
    const uint8_t value = stage->values[i];
    dtypes[i] = stage->variant ? stage->variant->dtypes[i] : job->program->row_types[stage->values[0] - QN_ROW_VALUE];
    stride[i][0] = qn_dtype_infos[dtypes[i]].size;
    stride[i][1] = 0;
    const int32_t k = job->n_in + value - QN_ROW_OUTPUT;
    is_stored[i] = value >= QN_ROW_VALUE || (stage->variant && job->dtype[k] == dtypes[i] && (frame->rows == 1 || qn_row_step(job, k) == stride[i][0]));
    if (value >= QN_ROW_VALUE) ptr[i] = frame->row_value[value - QN_ROW_VALUE];
    else if (is_stored[i]) ptr[i] = frame->ptr[k];
    else ptr[i] = stage->variant ? qn_row_take(frame, frame->rows * stride[i][0]) : ptr[0];
  }
  const int64_t extent[3] = {frame->rows, 1, 0};
  if (stage->steps && !job->kernel[at])
    run_steps(frame, stage, ptr, (const int64_t(*)[2])stride, frame->rows, 1);
  else if (stage->variant)
    job->kernel[at](ptr, (const int64_t(*)[2])stride, extent, frame->params);
  for (int32_t i = stage->n_in; i < n; i++) {
    if (is_stored[i]) continue;
    const int32_t k = job->n_in + stage->values[i] - QN_ROW_OUTPUT;
    qn_row_store_values(job, k, dtypes[i], frame->ptr[k], qn_row_step(job, k), frame->rows, ptr[i], qn_row_take(frame, frame->rows * job->size[k]));
  }
  frame->top = before;
}
