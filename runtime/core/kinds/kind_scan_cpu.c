/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_scan_cpu.c: scans on the CPU, as a backend. Rows are cut in blocks, which a kernel scans one after the other; or neighbouring scans
 * run side by side. See kind_scan.c. */
#include <stdlib.h>

#include "core/base/status.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/tiles.h"
#include "core/kinds/kind_scan.h"
#include "core/row/engine/row_load.h"
#include "core/row/engine/row_tiles.h"
#include "core/row/row_nest.h"

#define COLUMNS 256 /* of a tile */
#define DIRECT_TILE 4096 /* elements of a tile of rows that take no block, of at most QN_ROW_SCANNED rows */

/* The work of all slices. A tile is some rows, or some columns of neighbouring scans. */
typedef struct scan_run {
  const qn_scan *scan;
  const qn_variant *variant; /* of scan: for rows, or for columns */
  qn_row_job job; /* for row_load.h */
  const qn_ref *ref;
  uint8_t by_columns, is_direct, has_states;
  uint8_t direct[QN_SCAN_MAX_OPERANDS]; /* a kernel takes the operand as it lies; is_direct: each of them */
  int64_t n_tiles, turn; /* turn: the last place of the axis, if it is scanned from the end; else -1 */
  int32_t n_slices;
} scan_run;

/* The operand of a kernel that is operand k of a scan: behind the elements it has the carries. */
static int32_t at_kernel(int32_t k) { return k ? k + 1 : 0; }

static int64_t kernel_size(const scan_run *run, int32_t k) { return qn_dtype_infos[run->variant->dtypes[at_kernel(k)]].size; }

/* Runs the kernel on `rows` rows of `count` elements, one dimension being the axis, from its place `from` on. */
static void scan_piece(const scan_run *run, char **at, int64_t (*stride)[2], char *carries, int64_t a_row, int64_t count, int64_t rows, int64_t from) {
  const qn_scan_place place = {from, run->turn, run->scan->by};
  const int64_t n[3] = {count, rows, 0};
  at[1] = carries;
  stride[1][0] = kernel_size(run, 0);
  stride[1][1] = a_row;
  qn_job_kernel(run->variant, NULL)(at, (const int64_t(*)[2])stride, n, &place);
}

typedef struct columns_room {
  _Alignas(64) char carries[4 * COLUMNS * QN_DTYPE_MAX_BYTES];
  qn_row_scanned block[3];
} columns_room;

static void scan_by_columns(const scan_run *run, char *const *ptr, int64_t count) {
  const qn_row_job *job = &run->job;
  const int32_t n_operands = job->nest->n_operands;
  const int64_t most = run->is_direct ? job->row : (int64_t)sizeof(qn_row_scanned) / (count * QN_DTYPE_MAX_BYTES);
  QN_IN_SCRATCH(columns_room, room);
  for (int64_t from = 0, rows; from < job->row; from += rows) {
    char *at[QN_SCAN_MAX_OPERANDS + 1];
    int64_t stride[QN_SCAN_MAX_OPERANDS + 1][2];
    rows = job->row - from < most ? job->row - from : most;
    for (int32_t k = 0; k < n_operands; k++) {
      const int64_t size = kernel_size(run, k), step = job->nest->stride[k][0];
      char *const lies = qn_row_moved(ptr[k], from * step);
      if (k == 0 && !run->direct[k]) qn_row_convert(job->dtype[k], run->scan->dtype, lies, step, room->block[k], count * size, count, rows);
      at[at_kernel(k)] = run->direct[k] ? lies : room->block[k];
      stride[at_kernel(k)][0] = size;
      stride[at_kernel(k)][1] = run->direct[k] ? step : count * size;
    }
    scan_piece(run, at, stride, room->carries, 0, count, rows, from);
    for (int32_t k = 1; k < n_operands; k++) {
      if (run->direct[k]) continue;
      const int64_t step = job->nest->stride[k][0];
      qn_row_convert(run->variant->dtypes[at_kernel(k)], job->dtype[k], room->block[k], count * kernel_size(run, k), qn_row_moved(ptr[k], from * step),
                     step, count, rows);
    }
  }
}

/* Of the rows of a tile. Where no operand takes a block, more rows have their carries in the blocks. */
typedef struct scan_room {
  _Alignas(64) char carries[QN_ROW_SCANNED_ROWS * QN_SCAN_CARRIES];
  qn_row_scanned block[3], staging;
} scan_room;

static void scan_by_rows(const scan_run *run, char *const *ptr, int64_t rows) {
  const qn_row_job *job = &run->job;
  const int32_t n_operands = job->nest->n_operands;
  const int64_t most = run->is_direct ? job->row : QN_ROW_SCANNED / rows / QN_ROW_LANES * QN_ROW_LANES;
  QN_IN_SCRATCH(scan_room, room);
  for (int64_t from = 0, count; from < job->row; from += count) {
    char *at[QN_SCAN_MAX_OPERANDS + 1];
    int64_t stride[QN_SCAN_MAX_OPERANDS + 1][2];
    count = job->row - from < most ? job->row - from : most;
    for (int32_t k = 0; k < n_operands; k++) {
      const int64_t size = kernel_size(run, k);
      const qn_row_part part = {ptr[k], qn_row_step(job, k), from, count, rows};
      if (k == 0 && !run->direct[k]) qn_row_load(job, k, run->scan->dtype, &part, room->block[k], room->staging);
      at[at_kernel(k)] = run->direct[k] ? qn_row_moved(ptr[k], from * size) : room->block[k];
      stride[at_kernel(k)][0] = size;
      stride[at_kernel(k)][1] = run->direct[k] ? part.step : count * size;
    }
    scan_piece(run, at, stride, run->is_direct ? room->block[0] : room->carries, QN_SCAN_CARRIES, count, rows, from);
    for (int32_t k = 1; k < n_operands; k++) {
      const qn_row_part part = {ptr[k], qn_row_step(job, k), from, count, rows};
      if (!run->direct[k]) qn_row_store(job, k, run->variant->dtypes[at_kernel(k)], &part, room->block[k], room->staging);
    }
  }
}

typedef struct states_room {
  _Alignas(64) char carries[3 * QN_SCAN_STATE * QN_ROW_SCANNED_ROWS];
  qn_row_scanned block[QN_SCAN_MAX_OPERANDS], staging;
} states_room;

/* Rows of an op with states. */
static void scan_states(const scan_run *run, char *const *ptr, int64_t rows) {
  const qn_row_job *job = &run->job;
  const qn_variant *variant = run->scan->rows;
  const int64_t step = run->turn < 0 ? 1 : -1;
  qn_kernel *kernel = qn_job_kernel(variant, NULL);
  QN_IN_SCRATCH(states_room, room);
  for (int64_t from = 0, count; from < job->row; from += count) {
    char *at[QN_SCAN_MAX_OPERANDS + 1];
    int64_t stride[QN_SCAN_MAX_OPERANDS + 1][2];
    count = QN_ROW_SCANNED / rows / QN_ROW_LANES * QN_ROW_LANES;
    if (count > job->row - from) count = job->row - from;
    for (int32_t k = 0; k < job->nest->n_operands; k++) {
      const int32_t operand = k ? k + 1 : 0;
      const qn_row_part part = {ptr[k], qn_row_step(job, k), from, count, rows};
      if (k == 0) qn_row_load(job, 0, variant->dtypes[0], &part, room->block[0], room->staging);
      at[operand] = room->block[k];
      stride[operand][0] = qn_dtype_infos[variant->dtypes[operand]].size;
      stride[operand][1] = count * stride[operand][0];
    }
    at[1] = room->carries;
    stride[1][0] = stride[1][1] = 3 * QN_SCAN_STATE;
    const qn_state_place place = {.from = from, .last = -1, .first = run->turn < 0 ? 0 : run->turn, .step = step, .states = run->scan->states};
    const int64_t n[3] = {count, rows, 0};
    kernel(at, (const int64_t(*)[2])stride, n, &place);
    for (int32_t k = 1; k < job->nest->n_operands; k++) {
      const qn_row_part to = {ptr[k], qn_row_step(job, k), from, count, rows};
      qn_row_store(job, k, variant->dtypes[k + 1], &to, room->block[k], room->staging);
    }
  }
}

static void scan_slice(void *arg, int64_t i) {
  const scan_run *run = arg;
  const int64_t end = qn_tiles_part(run->n_tiles, i + 1, run->n_slices, 1);
  for (int64_t tile = qn_tiles_part(run->n_tiles, i, run->n_slices, 1); tile < end; tile++) {
    char *ptr[QN_SCAN_MAX_OPERANDS];
    const int64_t rows = qn_row_tile(&run->job, run->ref, tile, ptr);
    (run->has_states ? scan_states : run->by_columns ? scan_by_columns : scan_by_rows)(run, ptr, rows);
  }
}

/* Sets a run from a decision. */
static void plan_scan(const qn_decision *decision, scan_run *run) {
  const qn_nest *nest = &decision->nest;
  const qn_scan *scan = decision->of_kind;
  const int32_t first = nest->n_reduced;
  const int has_states = ((const qn_scan_op *)decision->called->builtin->of_kind)->has_states;
  int is_row = 1, is_same = 1, are_columns = !has_states && nest->rank > first && nest->n_joined == 1 && scan->columns;
  *run = (scan_run){.scan = scan, .variant = scan->rows, .turn = decision->shape_params[2], .has_states = (uint8_t)has_states};
  if (scan->states) qn_scan_states_ask(scan->states);
  else if (scan->by) scan->by->steps->kernel(scan->by->steps); /* requests it */
  run->job = (qn_row_job){.nest = nest, .n_in = 1, .n_out = nest->n_operands - 1, .count = decision->count, .row = nest->n_joined ? nest->n[0] : 1};
  for (int32_t k = 0; k < nest->n_operands; k++) {
    run->job.dtype[k] = decision->dtypes[k];
    run->job.size[k] = qn_dtype_infos[decision->dtypes[k]].size;
    run->job.direct[k] = nest->n_joined == 0 || nest->stride[k][0] == run->job.size[k];
    const int is_kernels = !has_states && decision->dtypes[k] == scan->rows->dtypes[at_kernel(k)];
    is_same &= is_kernels;
    is_row &= run->job.direct[k];
    are_columns &= nest->rank > first && nest->stride[k][first] == run->job.size[k];
    run->direct[k] = (uint8_t)(is_kernels && run->job.direct[k]);
  }
  run->by_columns = (uint8_t)(are_columns && !is_row);
  run->is_direct = (uint8_t)(is_same && (is_row || run->by_columns));
  for (int32_t k = 0; k < nest->n_operands && run->by_columns; k++) run->direct[k] = decision->dtypes[k] == scan->rows->dtypes[at_kernel(k)];
  if (run->by_columns) run->variant = scan->columns;
  const int64_t most = DIRECT_TILE / run->job.row < QN_ROW_SCANNED ? DIRECT_TILE / run->job.row : QN_ROW_SCANNED;
  qn_row_cut_scans(&run->job, run->by_columns ? COLUMNS : run->is_direct ? most + (most == 0) : 0);
  run->n_tiles = qn_row_tiles(&run->job);
}

static quern_status run_scan(const qn_decision *decision, const qn_ref *ref) {
  qn_slices *slices = qn_registry_slices(decision->called);
  scan_run run;
  if (decision->count == 0) return QUERN_OK;
  plan_scan(decision, &run);
  run.ref = ref;
  run.n_slices = qn_row_slices_now(&run.job, slices);
  if (run.n_slices > 1) return qn_slices_run(slices, run.n_slices, scan_slice, &run);
  run.n_slices = 1;
  scan_slice(&run, 0);
  return QUERN_OK;
}

static quern_status scan_backend_call(const qn_decision *decision, const quern_call *given) {
  (void)given;
  return run_scan(decision, decision->nest.ref);
}

static quern_status scan_prepare(const qn_decision *decision, const quern_call *given, qn_run **made) {
  (void)given;
  if (decision->shape_params[1] & 3)
    return qn_status_fail(QUERN_E_UNSUPPORTED, "%s: with include_initial or exclusive it cannot be prepared; call it with "
                          QN_SPELLED(quern_op_call), decision->op->info->name);
  char *none = malloc(1);
  if (!none) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory for a plan", decision->op->info->name);
  *made = (qn_run *)(void *)none;
  return QUERN_OK;
}

static quern_status scan_launch(const qn_decision *decision, const qn_run *prepared, const qn_ref *ref, const qn_params *params,
                                const quern_call *given) {
  (void)prepared, (void)params, (void)given;
  return run_scan(decision, ref);
}

static quern_status scan_explain(const qn_decision *decision, const quern_call *given, qn_strbuf *buf) {
  const qn_slices *slices = qn_registry_slices(decision->op);
  scan_run run;
  (void)given;
  if (decision->count == 0 || decision->nest.n_elements == 0) {
    qn_strbuf_add(buf, "tier: built\nreason: there are no elements\nthreads: 1\n");
    return QUERN_OK;
  }
  plan_scan(decision, &run);
  if (run.scan->states) {
    qn_scan_states_explain(run.scan->states, buf);
    qn_strbuf_add(buf, "threads: %d\n", qn_row_slices(&run.job, slices));
    return QUERN_OK;
  }
  const qn_row_steps *steps = run.scan->by ? run.scan->by->steps : NULL;
  if (steps) {
    char reason[256];
    const char *tier = steps->tier(steps, reason);
    qn_strbuf_add(buf, "tier: %s\nreason: %s\n", tier[0] ? tier : "interpreter", reason);
    steps->explain(steps, buf);
    qn_strbuf_add(buf, "threads: %d\n", qn_row_slices(&run.job, slices));
    return QUERN_OK;
  }
  qn_strbuf_add(buf, "tier: built\nreason: a built kernel scans %s\nvariant: %s\nthreads: %d\n",
                run.by_columns ? run.is_direct ? "columns as they lie" : "columns in blocks" : run.is_direct ? "rows as they lie" : "rows in blocks",
                run.variant->name, qn_row_slices(&run.job, slices));
  return QUERN_OK;
}

extern const qn_backend qn_scan_cpu; /* op_table.c's */
const qn_backend qn_scan_cpu = {.device_name = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = scan_backend_call,
                                .prepare = scan_prepare, .launch = scan_launch, .explain = scan_explain};
