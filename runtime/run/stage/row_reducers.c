/* SPDX-License-Identifier: Apache-2.0
 *
 * row_reducers.c: see row_reducers.h. A combine is one kernel of two states, element by element. It combines the 16 lanes of a node at
 * once, in the order of docs/internals/reductions.md; of a scan, one lane of many segments. */
#include "run/stage/row_reducers.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpu/job.h"
#include "core/kinds/kind_scan.h"
#include "core/row/engine/row_frame.h"

typedef struct spec_reducer {
  qn_reducer reducer; /* first: the engine's view */
  struct spec_reducer *next;
  const char *combine; /* its name: that of the spec's program */
  qn_stage_code code;
  qn_variant inner, both, scan, program;
  uint8_t dtypes[3 * QN_ROW_MAX_PARTS];
} spec_reducer;

#define SCRATCH 4096 /* room for one element of any program: MAX_BYTES_AT_ONCE of interpreter.c */
#define MOST_AT_ONCE 64

static const spec_reducer *reducer_of(const void *params) {
  const qn_row_reducing *reducing = params;
  return (const spec_reducer *)reducing->by;
}

/* The size of a part of a state. */
static int64_t part_size(const qn_reducer *by, int32_t part) { return qn_dtype_infos[qn_reducer_dtype(by, part)].size; }

typedef struct steps_room {
  _Alignas(64) char scratch[SCRATCH], results[QN_ROW_MAX_PARTS][8 * MOST_AT_ONCE];
} steps_room;

/* Combines `count` pairs of states by the interpreter. ptr: the parts of the left states, of the right ones, and of the results, which may
 * be the left ones. All are contiguous. */
static void interpret(const spec_reducer *of, char *const *ptr, int64_t count) {
  const qn_reducer *by = &of->reducer;
  const qn_row_steps *steps = &of->code.steps;
  const int32_t n = by->n_parts;
  QN_IN_SCRATCH(steps_room, room);
  int64_t most = steps->temp_bytes ? (SCRATCH - 8 * steps->n_ones) / steps->temp_bytes : MOST_AT_ONCE;
  if (most > MOST_AT_ONCE) most = MOST_AT_ONCE;
  for (int64_t begin = 0, items; begin < count; begin += items) {
    char *at[3 * QN_ROW_MAX_PARTS];
    items = count - begin < most ? count - begin : most;
    for (int32_t p = 0; p < n; p++) {
      at[p] = ptr[p] + begin * part_size(by, p);
      at[n + p] = ptr[n + p] + begin * part_size(by, p);
      at[2 * n + p] = room->results[p];
    }
    steps->compute(steps, at, NULL, items, room->scratch, NULL);
    for (int32_t p = 0; p < n; p++) memcpy(ptr[2 * n + p] + begin * part_size(by, p), room->results[p], (size_t)(items * part_size(by, p)));
  }
}

/* The same over `rows` rows of states; step: bytes from row to row of each operand. */
static void combine_rows(const spec_reducer *of, char *const *ptr, const int64_t *step, int64_t count, int64_t rows) {
  const int32_t n = of->reducer.n_parts;
  qn_kernel *kernel = qn_stage_code_kernel(&of->code);
  if (kernel) {
    int64_t stride[3 * QN_ROW_MAX_PARTS][2];
    const int64_t extent[3] = {count, rows, 0};
    for (int32_t k = 0; k < 3 * n; k++) {
      stride[k][0] = part_size(&of->reducer, k % n);
      stride[k][1] = step[k];
    }
    kernel(ptr, (const int64_t(*)[2])stride, extent, NULL);
    return;
  }
  for (int64_t j = 0; j < rows; j++) {
    char *at[3 * QN_ROW_MAX_PARTS];
    for (int32_t k = 0; k < 3 * n; k++) at[k] = ptr[k] + j * step[k];
    interpret(of, at, count);
  }
}

/* left = left combined with right. */
static void combine_onto(const spec_reducer *of, char *const *left, char *const *right, const int64_t *left_step, const int64_t *right_step,
                         int64_t count, int64_t rows) {
  const int32_t n = of->reducer.n_parts;
  char *ptr[3 * QN_ROW_MAX_PARTS];
  int64_t step[3 * QN_ROW_MAX_PARTS];
  for (int32_t p = 0; p < n; p++) {
    ptr[p] = ptr[2 * n + p] = left[p];
    ptr[n + p] = right[p];
    step[p] = step[2 * n + p] = left_step[p];
    step[n + p] = right_step[p];
  }
  combine_rows(of, ptr, step, count, rows);
}

/* As qn_reducer.both: contiguous states. */
static void both_kernel(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  const spec_reducer *of = reducer_of(params);
  int64_t step[3 * QN_ROW_MAX_PARTS];
  for (int32_t k = 0; k < 3 * of->reducer.n_parts; k++) step[k] = stride[k][1];
  combine_rows(of, ptr, step, n[0], n[1]);
}

/* ---- Rows ---- */

#define CHUNKS_AT_ONCE 8  /* a power of two: a subtree */
#define MOST_LEVELS 30    /* 2^35 elements; of several parts 2^20: longest_row of row_job.c */
#define NODES_BYTES (1024 * QN_DTYPE_MAX_BYTES)
_Static_assert(MOST_LEVELS * QN_ROW_LANES * QN_DTYPE_MAX_BYTES <= NODES_BYTES / 2, "nodes that wait, of one part");
_Static_assert((20 - 8 + 2) * QN_ROW_LANES * QN_DTYPE_MAX_BYTES * QN_ROW_MAX_PARTS <= NODES_BYTES, "nodes that wait, of several parts");

/* The nodes of `chunks` chunks of elements, all of them whole, or of one, of `count` elements. x: the elements of each part */
static void chunk_nodes(const spec_reducer *of, char *const *x, int64_t chunks, int64_t count, char *nodes, int64_t node_bytes) {
  const qn_reducer *by = &of->reducer;
  char *lane[QN_ROW_MAX_PARTS], *from[QN_ROW_MAX_PARTS];
  int64_t node_step[QN_ROW_MAX_PARTS], x_step[QN_ROW_MAX_PARTS];
  qn_row_node_parts(by, nodes, lane);
  const int64_t first = count < QN_ROW_LANES ? count : QN_ROW_LANES;
  for (int32_t p = 0; p < by->n_parts; p++) {
    const int64_t size = part_size(by, p);
    node_step[p] = node_bytes;
    x_step[p] = QN_ROW_CHUNK * size;
    for (int64_t c = 0; c < chunks; c++) memcpy(lane[p] + c * node_bytes, x[p] + c * x_step[p], (size_t)(first * size));
  }
  for (int64_t k = QN_ROW_LANES; k < count; k += QN_ROW_LANES) {
    for (int32_t p = 0; p < by->n_parts; p++) from[p] = x[p] + k * part_size(by, p);
    combine_onto(of, lane, from, node_step, x_step, count - k < QN_ROW_LANES ? count - k : QN_ROW_LANES, chunks);
  }
}

/* Joins successive nodes, pair by pair, until the first one is the node of all. Each of them has all lanes. */
static void join_nodes(const spec_reducer *of, char *nodes, int64_t n, int64_t node_bytes) {
  for (int64_t apart = 1; apart < n; apart *= 2) {
    char *left[QN_ROW_MAX_PARTS], *right[QN_ROW_MAX_PARTS];
    int64_t step[QN_ROW_MAX_PARTS];
    for (int32_t p = 0; p < of->reducer.n_parts; p++) step[p] = 2 * apart * node_bytes;
    qn_row_node_parts(&of->reducer, nodes, left);
    qn_row_node_parts(&of->reducer, nodes + apart * node_bytes, right);
    combine_onto(of, left, right, step, step, QN_ROW_LANES, (n + apart - 1) / (2 * apart));
  }
}

/* Combines the lanes of a node; the result is in its first lane. */
static void join_lanes(const spec_reducer *of, char *node, int64_t lanes) {
  const int64_t none[QN_ROW_MAX_PARTS] = {0};
  for (int64_t half = QN_ROW_LANES / 2; half > 0; half /= 2) {
    char *left[QN_ROW_MAX_PARTS], *right[QN_ROW_MAX_PARTS];
    if (lanes <= half) continue;
    qn_row_node_parts(&of->reducer, node, left);
    for (int32_t p = 0; p < of->reducer.n_parts; p++) right[p] = left[p] + half * part_size(&of->reducer, p);
    combine_onto(of, left, right, none, none, lanes - half, 1);
    lanes = half;
  }
}

/* Reduces a row of `count` elements; its node is the first of `nodes`. */
static void reduce_row(const spec_reducer *of, char *const *x, int64_t count, char *nodes) {
  const qn_reducer *by = &of->reducer;
  int64_t bytes = 0;
  for (int32_t p = 0; p < by->n_parts; p++) bytes += QN_ROW_LANES * part_size(by, p);
  node_stack stack = {.both = both_kernel, .by = by, .nodes = nodes, .bytes = bytes, .width = QN_ROW_LANES,
                      .size = qn_dtype_infos[by->dtype].size};
  _Alignas(64) char together[CHUNKS_AT_ONCE * QN_ROW_LANES * 8 * QN_ROW_MAX_PARTS];
  const int64_t whole = count / QN_ROW_CHUNK, groups = whole / CHUNKS_AT_ONCE, chunks = (count + QN_ROW_CHUNK - 1) / QN_ROW_CHUNK;
  char *at[QN_ROW_MAX_PARTS];
  for (int32_t p = 0; p < by->n_parts; p++) at[p] = x[p];
  for (int64_t i = 0, n; i < chunks; i += n) {
    n = i / CHUNKS_AT_ONCE < groups ? CHUNKS_AT_ONCE : 1;
    const int64_t left = count - i * QN_ROW_CHUNK, in_chunk = left < QN_ROW_CHUNK ? left : QN_ROW_CHUNK;
    chunk_nodes(of, at, n, in_chunk, together, bytes);
    join_nodes(of, together, n, bytes);
    memcpy(stack.nodes + stack.n++ * bytes, together, (size_t)bytes);
    /* groups are nodes of a higher level, the last of them only if nothing follows */
    const int64_t lanes = in_chunk < QN_ROW_LANES ? in_chunk : QN_ROW_LANES;
    if (n > 1 && i + n == chunks)
      qn_row_settle(&stack, i / CHUNKS_AT_ONCE, groups, lanes);
    else if (n > 1)
      qn_row_settle(&stack, i / CHUNKS_AT_ONCE, groups + 1, lanes);
    else
      qn_row_settle(&stack, i, chunks, lanes);
    for (int32_t p = 0; p < by->n_parts; p++) at[p] += n * QN_ROW_CHUNK * part_size(by, p);
  }
}

/* As qn_reducer.inner. */
static void inner_kernel(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  const spec_reducer *of = reducer_of(params);
  const qn_reducer *by = &of->reducer;
  const int64_t is_whole = ((const qn_row_reducing *)params)->is_whole, lanes = n[0] < QN_ROW_LANES ? n[0] : QN_ROW_LANES;
  typedef char all_nodes[NODES_BYTES];
  QN_IN_SCRATCH(all_nodes, room);
  for (int64_t j = 0; j < n[1]; j++) {
    char *const nodes = *room;
    char *x[QN_ROW_MAX_PARTS], *node[QN_ROW_MAX_PARTS];
    for (int32_t p = 0; p < by->n_parts; p++) x[p] = ptr[p] + j * stride[p][1];
    reduce_row(of, x, n[0], nodes);
    if (is_whole) join_lanes(of, nodes, lanes);
    qn_row_node_parts(by, nodes, node);
    for (int32_t p = 0; p < by->n_parts; p++)
      memcpy(ptr[by->n_parts + p] + j * stride[by->n_parts + p][1], node[p], (size_t)((is_whole ? 1 : lanes) * part_size(by, p)));
  }
}

/* ---- Scans ---- */

#define SEGMENTS_BYTES (QN_ROW_REDUCERS_SCANNED / QN_ROW_LANES * QN_DTYPE_MAX_BYTES) /* of an element of each */

/* x = carry combined with each of `n` elements, of at most a segment. */
static void carried(const spec_reducer *of, char *const *carry, char *const *x, int64_t n) {
  const int32_t parts = of->reducer.n_parts;
  const int64_t none[3 * QN_ROW_MAX_PARTS] = {0};
  char before[QN_ROW_MAX_PARTS][QN_ROW_LANES * QN_DTYPE_MAX_BYTES], *ptr[3 * QN_ROW_MAX_PARTS];
  for (int32_t p = 0; p < parts; p++) {
    const int64_t size = part_size(&of->reducer, p);
    for (int64_t l = 0; l < n; l++) memcpy(before[p] + l * size, carry[p], (size_t)size);
    ptr[p] = before[p];
    ptr[parts + p] = ptr[2 * parts + p] = x[p];
  }
  combine_rows(of, ptr, none, n, 1);
}

/* The prefixes within segments, and within a last one of `rest` elements: of all segments at once, element by element. */
static void scan_segments(const spec_reducer *of, char *const *x, int64_t whole, int64_t rest) {
  const int32_t parts = of->reducer.n_parts;
  const int64_t n = whole + (rest > 0), none[3 * QN_ROW_MAX_PARTS] = {0};
  char before[QN_ROW_MAX_PARTS][SEGMENTS_BYTES], now[QN_ROW_MAX_PARTS][SEGMENTS_BYTES], *ptr[3 * QN_ROW_MAX_PARTS];
  for (int32_t p = 0; p < parts; p++) {
    ptr[p] = before[p];
    ptr[parts + p] = ptr[2 * parts + p] = now[p];
  }
  for (int64_t l = 1; l < QN_ROW_LANES; l++) {
    const int64_t count = l < rest ? n : whole;
    for (int32_t p = 0; p < parts; p++) {
      const int64_t size = part_size(&of->reducer, p);
      for (int64_t s = 0; s < count; s++) {
        memcpy(before[p] + s * size, x[p] + (s * QN_ROW_LANES + l - 1) * size, (size_t)size);
        memcpy(now[p] + s * size, x[p] + (s * QN_ROW_LANES + l) * size, (size_t)size);
      }
    }
    if (count) combine_rows(of, ptr, none, count, 1);
    for (int32_t p = 0; p < parts; p++) {
      const int64_t size = part_size(&of->reducer, p);
      for (int64_t s = 0; s < count; s++) memcpy(x[p] + (s * QN_ROW_LANES + l) * size, now[p] + s * size, (size_t)size);
    }
  }
}

/* Keeps the last state of a segment as a carry. */
static void keep(const spec_reducer *of, char *const *last, char *const *carry) {
  for (int32_t p = 0; p < of->reducer.n_parts; p++) memcpy(carry[p], last[p], (size_t)part_size(&of->reducer, p));
}

void qn_row_reducers_scan_block(const qn_reducer *reducer, char *const *x, int64_t count, int64_t at, char *carries) {
  const spec_reducer *of = (const spec_reducer *)reducer;
  const int32_t parts = reducer->n_parts;
  char *carry[3][QN_ROW_MAX_PARTS], *segment[QN_ROW_MAX_PARTS], *last[QN_ROW_MAX_PARTS];
  for (int32_t k = 0; k < 3 * parts; k++) carry[k / parts][k % parts] = carries + QN_DTYPE_MAX_BYTES * k;
  scan_segments(of, x, count / QN_ROW_LANES, count % QN_ROW_LANES);
  for (int64_t i = 0; i < count; i += QN_ROW_LANES, at += QN_ROW_LANES) {
    const int64_t n = count - i < QN_ROW_LANES ? count - i : QN_ROW_LANES;
    for (int32_t p = 0; p < parts; p++) {
      segment[p] = x[p] + i * part_size(reducer, p);
      last[p] = segment[p] + (n - 1) * part_size(reducer, p);
    }
    if (at & 255) carried(of, carry[0], segment, n);
    keep(of, last, carry[0]);
    if (at & 65535 & ~INT64_C(255)) carried(of, carry[1], segment, n);
    if ((at & 255) == 240) keep(of, last, carry[1]);
    if (at >> 16) carried(of, carry[2], segment, n);
    if ((at & 65535) == 65520) keep(of, last, carry[2]);
  }
}

void qn_row_reducers_store(uint8_t dtype, char *from, char *to, int64_t count) {
  const int64_t size = qn_dtype_infos[dtype].size;
  const qn_primitive *canon = qn_primitive_find("canon", dtype, dtype);
  char *const ptr[2] = {from, to};
  const int64_t stride[2][2] = {{size, 0}, {size, 0}}, n[3] = {count, 1, 0};
  if (canon)
    qn_job_kernel(&canon->variants[0], NULL)(ptr, stride, n, NULL);
  else
    memcpy(to, from, (size_t)(count * size));
}

/* As qn_scan.rows. A carry after a segment that is not whole is not read. */
static void scan_kernel(char *const *ptr, const int64_t (*stride)[2], const int64_t n[2], const void *params) {
  const qn_scan_place *place = params;
  const int64_t size = part_size(place->by, 0), most = QN_ROW_REDUCERS_SCANNED;
  for (int64_t j = 0; j < n[1]; j++) {
    char *carry = ptr[1] + j * stride[1][1], block[QN_ROW_REDUCERS_SCANNED * QN_DTYPE_MAX_BYTES], *const x[1] = {block};
    for (int64_t i = 0, count; i < n[0]; i += count) {
      count = n[0] - i < most ? n[0] - i : most;
      memcpy(block, ptr[0] + j * stride[0][1] + i * size, (size_t)(count * size));
      qn_row_reducers_scan_block(place->by, x, count, place->from + i, carry);
      qn_row_reducers_store(place->by->dtype, block, ptr[2] + j * stride[2][1] + i * size, count);
    }
  }
}

const qn_variant *qn_row_reducers_scan(const qn_reducer *reducer) { return &((const spec_reducer *)reducer)->scan; }

/* ---- Made ---- */

static quern_status make(const qn_spec_reducer *wanted, const quern_op *op, const qn_stage_maker *by, spec_reducer *made) {
  const int32_t n = wanted->n_parts;
  made->reducer = (qn_reducer){.name = wanted->op, .empty = {wanted->empty}, .has_empty = wanted->has_empty, .dtype = wanted->parts[0],
                               .n_parts = wanted->n_parts};
  memcpy(made->reducer.others, wanted->parts + 1, sizeof made->reducer.others);
  made->combine = wanted->combine;
  for (int32_t k = 0; k < 3 * n; k++) made->dtypes[k] = wanted->parts[k % n];
  made->program = (qn_variant){.name = wanted->combine, .dtypes = made->dtypes};
  const quern_status status = qn_stage_code_of_program(&made->code, &made->program, op, 2 * n, n, by);
  if (status) return status;
  made->inner = made->both = made->scan = (qn_variant){.name = wanted->combine, .dtypes = made->dtypes, .classes = made->code.classes, .rank = 2};
  for (int isa = 0; isa < QN_ISA_COUNT; isa++) {
    made->inner.fn[isa] = inner_kernel;
    made->both.fn[isa] = both_kernel;
    made->scan.fn[isa] = scan_kernel;
  }
  made->reducer.inner = &made->inner;
  made->reducer.both = &made->both;
  made->reducer.steps = &made->code.steps;
  return QUERN_OK;
}

static void reducer_free(spec_reducer *made) {
  qn_stage_code_free(&made->code);
  free(made);
}

/* The built reducer of that name and dtype; NULL: there is none. */
static const qn_reducer *built_reducer(const char *name, uint8_t dtype) {
  for (int32_t k = 0; k < qn_n_reducers; k++)
    if (strcmp(qn_reducers[k].name, name) == 0 && qn_reducers[k].dtype == dtype) return &qn_reducers[k];
  return NULL;
}

/* The same by the kernels of a built one. */
static void make_twin(const qn_spec_reducer *wanted, const qn_reducer *built, spec_reducer *made) {
  made->reducer = *built;
  made->reducer.name = wanted->op;
  made->reducer.fuses = 0;
  made->reducer.empty[0] = wanted->empty;
  made->reducer.has_empty = wanted->has_empty;
  made->combine = wanted->combine;
}

quern_status qn_row_reducers_find(qn_row_reducers *all, const qn_spec_reducer *wanted, const quern_op *op, const qn_stage_maker *by,
                                  const qn_reducer **found) {
  if ((*found = built_reducer(wanted->op, wanted->parts[0]))) return QUERN_OK;
  for (spec_reducer *at = all->first; at; at = at->next) {
    *found = &at->reducer;
    if (strcmp(at->combine, wanted->combine) == 0) return QUERN_OK;
  }
  spec_reducer *made = calloc(1, sizeof *made);
  const qn_reducer *twin = wanted->twin && *wanted->twin ? built_reducer(wanted->twin, wanted->parts[0]) : NULL;
  if (made && twin) make_twin(wanted, twin, made);
  quern_status status = made ? twin ? QUERN_OK : make(wanted, op, by, made) : qn_status_fail(QUERN_E_MEMORY, "%s: out of memory", wanted->op);
  if (status) {
    if (made) reducer_free(made);
    return status;
  }
  made->next = all->first;
  all->first = made;
  *found = &made->reducer;
  return QUERN_OK;
}

void qn_row_reducers_cut(qn_row_reducers *all, qn_row_reducers before) {
  while (all->first != before.first) {
    spec_reducer *made = all->first;
    all->first = made->next;
    reducer_free(made);
  }
}
