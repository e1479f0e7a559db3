/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_scans.c: see spec_scans.h. A block of elements is lifted, scanned in the order of docs/internals/reductions.md, and finished. */
#include "run/stage/spec_scans.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/status.h"
#include "core/cpu/job.h"
#include "core/row/scan_op.h"

#define MOST_IN QN_SPEC_MAX_SCANNED
#define BLOCK QN_ROW_REDUCERS_SCANNED
#define BLOCK_BYTES (BLOCK * QN_DTYPE_MAX_BYTES)
#define SCRATCH 4096 /* room for one element of any program: MAX_BYTES_AT_ONCE of interpreter.c */

/* A program, and what it is compiled to. */
typedef struct spec_body {
  qn_stage_code code;
  qn_variant program; /* its name: that of the spec's program */
  uint8_t dtypes[QN_MAX_OPERANDS];
} spec_body;

typedef struct spec_scan {
  qn_scan_states states; /* first: the engine's view */
  struct spec_scan *next;
  const qn_reducer *reducer;
  spec_body lift, finish;
  qn_variant rows;
  uint8_t dtypes[MOST_IN + 1 + QN_SCAN_MAX_OUTPUTS]; /* of `rows`: inputs, carries, results */
  int32_t n_in, n_out, before;
  uint64_t initial[QN_DTYPE_MAX_WORDS];
} spec_scan;

static int64_t size_of(uint8_t dtype) { return qn_dtype_infos[dtype].size; }

static uint8_t out_dtype(const spec_scan *of, int32_t k) { return of->dtypes[of->n_in + 1 + k]; }

/* Runs a body over contiguous elements. ptr: its inputs, then its outputs, which are none of the inputs */
static void run_body(const spec_body *of, char *const *ptr, int64_t count) {
  const qn_stage_code *code = &of->code;
  const qn_row_steps *steps = &code->steps;
  const int32_t n = code->n_in + code->n_out;
  qn_kernel *kernel = qn_stage_code_kernel(code);
  int64_t stride[QN_MAX_OPERANDS][2];
  for (int32_t k = 0; k < n; k++) {
    stride[k][0] = size_of(code->dtypes[k]);
    stride[k][1] = 0;
  }
  if (kernel) {
    const int64_t extent[3] = {count, 1, 0};
    kernel(ptr, (const int64_t(*)[2])stride, extent, NULL);
    return;
  }
  typedef char body_room[SCRATCH];
  QN_IN_SCRATCH(body_room, room);
  char *const scratch = *room;
  int64_t most = steps->temp_bytes ? (SCRATCH - 8 * steps->n_ones) / steps->temp_bytes : BLOCK;
  for (int64_t begin = 0, items; begin < count; begin += items) {
    char *at[QN_MAX_OPERANDS];
    items = count - begin < most ? count - begin : most;
    for (int32_t k = 0; k < n; k++) at[k] = ptr[k] + begin * stride[k][0];
    steps->compute(steps, at, NULL, items, scratch, NULL);
  }
}

typedef struct block_room {
  _Alignas(64) char state[QN_ROW_MAX_PARTS][BLOCK_BYTES], before[BLOCK_BYTES], result[QN_SCAN_MAX_OUTPUTS][BLOCK_BYTES];
  _Alignas(64) int64_t index[BLOCK];
} block_room;

/* Elements of one row from a place of the walk on, at most BLOCK. */
static void run_block(const spec_scan *of, char *const *in, char *const *out, int64_t count, int64_t from, const qn_state_place *place,
                      char *carries) {
  const int32_t n_in = of->n_in, n_parts = of->reducer->n_parts;
  QN_IN_SCRATCH(block_room, room);
  char *ptr[QN_MAX_OPERANDS], *x[QN_ROW_MAX_PARTS];
  for (int64_t i = 0; i < count; i++) room->index[i] = place->first + (from + i) * place->step;
  for (int32_t p = 0; p < n_parts; p++) x[p] = room->state[p];
  for (int32_t k = 0; k < n_in; k++) ptr[k] = in[k];
  if (of->before >= 0 && place->last >= from && place->last < from + count) {
    const int64_t size = size_of(of->dtypes[of->before]), at = place->last - from; /* the element there is not to be read */
    memcpy(room->before, in[of->before], (size_t)(at * size));
    memcpy(room->before + at * size, of->initial, (size_t)size);
    ptr[of->before] = room->before;
  }
  char *inputs[MOST_IN + 1];
  for (int32_t k = 0; k < n_in; k++) inputs[k] = ptr[k];
  inputs[n_in] = ptr[n_in] = (char *)room->index;
  if (of->states.steps[0]) {
    for (int32_t p = 0; p < n_parts; p++) ptr[n_in + 1 + p] = x[p];
    run_body(&of->lift, ptr, count);
  } else {
    memcpy(x[0], inputs[0], (size_t)(count * size_of(of->dtypes[0])));
  }
  qn_row_reducers_scan_block(of->reducer, x, count, from, carries);
  for (int32_t k = 0; k < of->n_out; k++) ptr[n_parts + n_in + 1 + k] = room->result[k];
  if (of->states.steps[2]) {
    for (int32_t p = 0; p < n_parts; p++) ptr[p] = x[p];
    for (int32_t k = 0; k <= n_in; k++) ptr[n_parts + k] = inputs[k];
    run_body(&of->finish, ptr, count);
  }
  for (int32_t k = 0; k < of->n_out; k++)
    qn_row_reducers_store(out_dtype(of, k), of->states.steps[2] ? room->result[k] : x[0], out[k], count);
}

/* As the kernel of an adjoint. */
static void rows_kernel(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  const qn_state_place *place = params;
  const spec_scan *of = (const spec_scan *)place->states;
  for (int64_t j = 0; j < n[1]; j++) {
    for (int64_t i = 0, count; i < n[0]; i += count) {
      char *in[MOST_IN], *out[QN_SCAN_MAX_OUTPUTS];
      count = n[0] - i < BLOCK ? n[0] - i : BLOCK;
      for (int32_t k = 0; k < of->n_in; k++) in[k] = ptr[k] + j * stride[k][1] + i * size_of(of->dtypes[k]);
      for (int32_t k = 0; k < of->n_out; k++)
        out[k] = ptr[of->n_in + 1 + k] + j * stride[of->n_in + 1 + k][1] + i * size_of(out_dtype(of, k));
      run_block(of, in, out, count, place->from + i, place, ptr[of->n_in] + j * stride[of->n_in][1]);
    }
  }
}

/* ---- Made ---- */

static void scan_free(spec_scan *made) {
  qn_stage_code_free(&made->lift.code);
  qn_stage_code_free(&made->finish.code);
  free(made);
}

/* Adds dtypes to a body's. */
static void add_dtypes(spec_body *body, int32_t *n, int32_t count, const uint8_t *dtypes) {
  memcpy(body->dtypes + *n, dtypes, (size_t)count);
  *n += count;
}

static quern_status make_body(spec_body *body, const char *name, const quern_op *op, int32_t n, int32_t n_out, const qn_stage_maker *by) {
  body->program = (qn_variant){.name = name, .dtypes = body->dtypes};
  return qn_stage_code_of_program(&body->code, &body->program, op, n - n_out, n_out, by);
}

/* The bodies that the op has. */
static quern_status make_bodies(spec_scan *made, const qn_spec_states *wanted, const quern_op *op, const qn_stage_maker *by) {
  const int32_t n_parts = made->reducer->n_parts;
  const uint8_t place = QN_I64;
  uint8_t parts[QN_ROW_MAX_PARTS];
  int32_t n_lift = 0, n_finish = 0;
  quern_status status = QUERN_OK;
  for (int32_t p = 0; p < n_parts; p++) parts[p] = qn_reducer_dtype(made->reducer, p);
  add_dtypes(&made->lift, &n_lift, made->n_in, wanted->in);
  add_dtypes(&made->lift, &n_lift, 1, &place);
  add_dtypes(&made->lift, &n_lift, n_parts, parts);
  add_dtypes(&made->finish, &n_finish, n_parts, parts);
  add_dtypes(&made->finish, &n_finish, made->n_in, wanted->in);
  add_dtypes(&made->finish, &n_finish, 1, &place);
  add_dtypes(&made->finish, &n_finish, made->n_out, wanted->out);
  if (*wanted->lift) status = make_body(&made->lift, wanted->lift, op, n_lift, n_parts, by);
  if (status == QUERN_OK && *wanted->finish) status = make_body(&made->finish, wanted->finish, op, n_finish, made->n_out, by);
  return status;
}

/* Makes the kernel of an op for a dtype. reducer: of its combine; before: the input that is read one place earlier, or -1; initial: what
 * that input is at the first place. *rows: a kernel as that of an adjoint. */
static quern_status make(qn_spec_scans *all, const qn_spec_states *wanted, const quern_op *op, const qn_reducer *reducer, int32_t before,
                         double initial, const qn_stage_maker *by, const qn_variant **rows, const qn_scan_states **states) {
  spec_scan *made = calloc(1, sizeof *made);
  if (!made) return qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", op->info->name);
  const quern_scalar number = {.kind = QUERN_F64, .v = {.f = {initial, 0}}};
  made->reducer = reducer;
  made->n_in = wanted->n_in;
  made->n_out = wanted->n_out;
  made->before = before;
  memcpy(made->dtypes, wanted->in, (size_t)made->n_in);
  made->dtypes[made->n_in] = wanted->in[0]; /* carries: states */
  memcpy(made->dtypes + made->n_in + 1, wanted->out, (size_t)made->n_out);
  if (before >= 0) qn_params_number(&number, made->dtypes[before], made->initial);
  const quern_status status = make_bodies(made, wanted, op, by);
  if (status) {
    scan_free(made);
    return status;
  }
  made->states = (qn_scan_states){{*wanted->lift ? &made->lift.code.steps : NULL, reducer->steps, *wanted->finish ? &made->finish.code.steps : NULL}};
  made->rows = (qn_variant){.name = op->info->name, .dtypes = made->dtypes, .rank = 2};
  for (int isa = 0; isa < QN_ISA_COUNT; isa++) made->rows.fn[isa] = rows_kernel;
  made->next = all->first;
  all->first = made;
  *rows = &made->rows;
  *states = &made->states;
  return QUERN_OK;
}

quern_status qn_spec_scans_make(qn_spec_scans *all, qn_row_reducers *reducers, qn_spec_op *spec, const quern_op *op, const qn_stage_maker *by) {
  for (int32_t dtype = 0; dtype < QN_DTYPE_COUNT; dtype++) {
    qn_scan *scan = &spec->scan.scans[dtype];
    if (!spec->scans[dtype].combine) continue;
    quern_status status = qn_row_reducers_find(reducers, &spec->scans[dtype], op, by, &scan->by);
    if (status) return status;
    scan->rows = qn_row_reducers_scan(scan->by);
    if (!spec->states[dtype].lift) continue;
    status = make(all, &spec->states[dtype], op, scan->by, spec->adjoint.before, spec->adjoint.initial, by, &scan->rows, &scan->states);
    if (status) return status;
    spec->adjoint.walks[dtype] = (qn_adjoint_walk){scan->rows, scan->states};
  }
  return QUERN_OK;
}

void qn_spec_scans_cut(qn_spec_scans *all, qn_spec_scans before) {
  while (all->first != before.first) {
    spec_scan *made = all->first;
    all->first = made->next;
    scan_free(made);
  }
}
