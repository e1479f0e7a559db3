/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_adjoint_cpu.c: derivatives of scans on the CPU, as a backend. Rows are walked in blocks, by one kernel. See kind_adjoint.c. */
#include <string.h>

#include "core/base/status.h"
#include "core/cpu/cpu_backend.h"
#include "core/cpu/tiles.h"
#include "core/kinds/kind_adjoint.h"
#include "core/row/engine/row_load.h"
#include "core/row/engine/row_tiles.h"
#include "core/row/scan_launch.h"

/* The work of all slices. A tile is some rows. */
typedef struct adjoint_run {
  qn_row_job job; /* for row_load.h */
  qn_kernel *kernel;
  uint8_t dtype[QN_ADJOINT_MOST_IN + 1]; /* of the kernel's elements */
  int32_t before;
  qn_state_place place;
  int64_t n_tiles;
  int32_t n_slices;
} adjoint_run;

static void plan_adjoint(const qn_decision *decision, adjoint_run *run) {
  const int32_t n_in = decision->n_in;
  const qn_nest *nest = &decision->nest;
  const qn_adjoint_walk *walk = decision->of_kind;
  qn_scan_launch launch;
  memcpy(&launch, decision->launch, sizeof launch);
  run->job = (qn_row_job){.nest = nest, .n_in = n_in, .n_out = 1, .count = decision->count, .row = nest->n_joined ? nest->n[0] : 1};
  for (int32_t k = 0; k <= n_in; k++) {
    run->job.dtype[k] = decision->dtypes[k];
    run->job.size[k] = decision->sizes[k];
    run->dtype[k] = walk->rows->dtypes[k < n_in ? k : n_in + 1];
  }
  run->kernel = qn_job_kernel(walk->rows, NULL);
  run->before = ((const qn_adjoint_op *)decision->called->builtin->of_kind)->before;
  run->place = (qn_state_place){.last = (int64_t)launch.more[0], .first = (int64_t)launch.more[1], .step = (int64_t)launch.more[2],
                                .states = walk->states};
  if (walk->states) qn_scan_states_ask(walk->states);
  qn_row_cut_scans(&run->job, 0);
  run->n_tiles = qn_row_tiles(&run->job);
}

typedef struct adjoint_room {
  _Alignas(64) char carries[3 * QN_SCAN_STATE * QN_ROW_SCANNED_ROWS];
  qn_row_scanned block[QN_ADJOINT_MOST_IN + 1], staging;
} adjoint_room;

static void run_tile(const adjoint_run *run, char *const *ptr, int64_t rows) {
  const qn_row_job *job = &run->job;
  const int32_t n_in = job->n_in;
  QN_IN_SCRATCH(adjoint_room, room);
  qn_state_place place = run->place;
  for (int64_t from = 0, count; from < job->row; from += count) {
    char *at[QN_ADJOINT_MOST_IN + 2];
    int64_t stride[QN_ADJOINT_MOST_IN + 2][2];
    count = QN_ROW_SCANNED / rows / QN_ROW_LANES * QN_ROW_LANES;
    if (count > job->row - from) count = job->row - from;
    for (int32_t k = 0; k <= n_in; k++) {
      const int64_t size = qn_dtype_infos[run->dtype[k]].size;
      qn_row_part part = {ptr[k], qn_row_step(job, k), from, count, rows};
      if (k == run->before && from + count > place.last && place.last >= 0) part.count--; /* there is none before the last one */
      if (k < n_in && part.count) qn_row_load(job, k, run->dtype[k], &part, room->block[k], room->staging);
      const int32_t operand = k < n_in ? k : n_in + 1;
      at[operand] = room->block[k];
      stride[operand][0] = size;
      stride[operand][1] = part.count * size;
    }
    at[n_in] = room->carries;
    stride[n_in][0] = stride[n_in][1] = 3 * QN_SCAN_STATE;
    place.from = from;
    const int64_t n[3] = {count, rows, 0};
    run->kernel(at, (const int64_t(*)[2])stride, n, &place);
    const qn_row_part to = {ptr[n_in], qn_row_step(job, n_in), from, count, rows};
    qn_row_store(job, n_in, run->dtype[n_in], &to, room->block[n_in], room->staging);
  }
}

static void adjoint_slice(void *arg, int64_t i) {
  const adjoint_run *run = arg;
  const int64_t end = qn_tiles_part(run->n_tiles, i + 1, run->n_slices, 1);
  for (int64_t tile = qn_tiles_part(run->n_tiles, i, run->n_slices, 1); tile < end; tile++) {
    char *ptr[QN_ADJOINT_MOST_IN + 1];
    const int64_t rows = qn_row_tile(&run->job, run->job.nest->ref, tile, ptr);
    run_tile(run, ptr, rows);
  }
}

static quern_status adjoint_backend_call(const qn_decision *decision, const quern_call *given) {
  qn_slices *slices = qn_registry_slices(decision->called);
  QN_IN_SCRATCH(adjoint_run, run);
  (void)given;
  plan_adjoint(decision, run);
  run->n_slices = qn_row_slices_now(&run->job, slices);
  if (run->n_slices > 1) return qn_slices_run(slices, run->n_slices, adjoint_slice, run);
  run->n_slices = 1;
  adjoint_slice(run, 0);
  return QUERN_OK;
}

static quern_status adjoint_backend_explain(const qn_decision *decision, const quern_call *given, qn_strbuf *buf) {
  QN_IN_SCRATCH(adjoint_run, run);
  (void)given;
  if (decision->nest.n_elements == 0) {
    qn_strbuf_add(buf, "tier: built\nreason: there are no elements\nthreads: 1\n");
    return QUERN_OK;
  }
  plan_adjoint(decision, run);
  if (run->place.states)
    qn_scan_states_explain(run->place.states, buf);
  else
    qn_strbuf_add(buf, "tier: built\nreason: a built kernel walks rows in blocks, from the end of the scan\nvariant: %s\n",
                  ((const qn_adjoint_walk *)decision->of_kind)->rows->name);
  qn_strbuf_add(buf, "threads: %d\n", qn_row_slices(&run->job, qn_registry_slices(decision->called)));
  return QUERN_OK;
}

extern const qn_backend qn_adjoint_cpu; /* op_table.c's */
const qn_backend qn_adjoint_cpu = {.device_name = "the cpu", .device_type = kDLCPU, .check = qn_cpu_check, .call = adjoint_backend_call,
                                   .explain = adjoint_backend_explain};
