/* SPDX-License-Identifier: Apache-2.0
 *
 * row_columns.c: see row_columns.h.
 *
 * The columns of a tile are reduced together, lane by lane: the elements of a lane's run are in 16 rows, every 16th of a chunk. Narrow
 * rows without gaps between them are read 2, 4, 8 or 16 at a time as one row, which then has as many lanes of each column. FOLD: no
 * kept dimension is contiguous, but the outermost further axis is. The columns of a tile are then the indices of this axis, and at the end
 * each lane's columns are combined by the tree over it. Where a tile has several slices to itself, they reduce parts of its rows, or of
 * a further axis. */
#include "core/row/engine/row_columns.h"

#include <string.h>

#include "core/row/engine/row_load.h"

static int32_t levels_of(int64_t n) {
  int32_t bits = 0;
  while (bits < 62 && (INT64_C(1) << bits) < n) bits++;
  return bits;
}

#define FAR_BYTES (1 << 20) /* of what is beyond a cache that is quick enough without prefetching */
#define FAR_ROW 256         /* the fewest bytes of a row that is prefetched */

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- Runs of rows ---- */

/* A reduction of columns under way. */
typedef struct column_run {
  row_frame *frame;
  const qn_row_stage *stage;
  qn_kernel *columns, *kernel; /* kernel: of the stage; NULL: none */
  char *at;           /* column 0 of row 0 */
  int64_t step;       /* from row to row */
  uint8_t in_dtype;   /* what elements are converted to */
  char *block, *temp; /* of job->piece rows */
  node_stack stack;
  int64_t n_columns;
  qn_row_range range; /* what is reduced: indices of the outermost further axis, without one chunks */
} column_run;

/* What there is to reduce, as a range: last: behind the further axes that are reduced by rows. */
static qn_row_range whole_range(const qn_row_job *job, int32_t last) {
  return (qn_row_range){0, last > job->nest->n_joined ? job->nest->n[last - 1] : qn_ceil_div(job->row, QN_ROW_CHUNK)};
}

/* ahead: bytes to the rows that are combined next; 0: they are not prefetched. */
static void run_columns(qn_kernel *kernel, uint8_t size, char *from, int64_t step, int64_t columns, int64_t rows, char *to, int64_t form,
                        int64_t ahead) {
  char *const ptr[2] = {from, to};
  const int64_t stride[2][2] = {{size, step}, {size, 0}}, extent[3] = {columns, rows, 0}, params[2] = {form, ahead};
  kernel(ptr, stride, extent, params);
}

/* Runs a stage's kernel of a job that goes across on n rows of the tile, the first of them `row`, `apart` rows from each other. temp: for
 * elements that are not kept; NULL: each value has its own place. Returns where the first output is. Not inlined: its stack is for jobs that go across. */
static __attribute__((noinline)) value_place compute_rows(row_frame *frame, const qn_row_stage *stage, qn_kernel *kernel, int64_t row, int64_t apart, int64_t n,
                                                           char *temp) {
  const qn_row_job *job = frame->job;
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
  for (int32_t i = 0; i < stage->n_in + stage->n_out; i++) {
    const uint8_t value = stage->values[i], size = qn_dtype_infos[stage->variant->dtypes[i]].size;
    stride[i][0] = size;
    stride[i][1] = 0;
    if (value < QN_ROW_VALUE || value == job->program->kept) {
      const int32_t k = value < QN_ROW_OUTPUT ? value : value < QN_ROW_VALUE ? job->n_in + value - QN_ROW_OUTPUT : job->n_in;
      ptr[i] = qn_row_moved(frame->across[k].ptr, row * frame->across[k].step);
      stride[i][1] = apart * frame->across[k].step;
    } else if (value < QN_ROW_TEMP) {
      ptr[i] = frame->row_value[value - QN_ROW_VALUE];
    } else {
      ptr[i] = temp ? temp : frame->temp[value - QN_ROW_TEMP].ptr;
      stride[i][1] = frame->rows * size;
    }
  }
  const int64_t extent[3] = {frame->rows, n, 0};
  kernel(ptr, (const int64_t(*)[2])stride, extent, frame->params);
  return (value_place){ptr[stage->n_in], stride[stage->n_in][1]};
}

/* Combines `rows` rows of `columns` columns, `step` bytes apart, one row after the other. ahead: as in run_columns */
static void combine_rows(const column_run *run, char *from, int64_t step, int64_t rows, int64_t columns, char *to, int64_t ahead) {
  const qn_row_job *job = run->frame->job;
  const uint8_t size = run->stack.size, in_size = qn_dtype_infos[run->in_dtype].size;
  for (int64_t first = 0; first < rows; first += job->piece) {
    const int64_t n = least(rows - first, job->piece);
    char *piece = qn_row_moved(from, first * step);
    int64_t piece_step = step;
    if (run->block) {
      if (ahead) qn_row_prefetch((const char *)((uintptr_t)piece + (uintptr_t)ahead), step, columns * job->size[0], n);
      qn_row_convert(job->dtype[0], run->in_dtype, piece, step, run->block, columns * in_size, columns, n);
      piece = run->block;
      piece_step = columns * in_size;
    }
    if (run->kernel && job->is_across) {
      const int64_t row = (piece - run->at) / run->step, apart = n > 1 ? step / run->step : 1;
      const value_place place = compute_rows(run->frame, run->stage, run->kernel, row, apart, n, run->temp);
      piece = place.ptr;
      piece_step = place.step;
    } else if (run->kernel) {
      char *ptr[2] = {piece, run->temp};
      const int64_t stride[2][2] = {{in_size, piece_step}, {size, columns * size}}, as_one = piece_step == columns * in_size ? n : 1;
      const int64_t extent[3] = {columns * as_one, n / as_one, 0};
      run->kernel(ptr, stride, extent, run->frame->params);
      piece = run->temp;
      piece_step = columns * size;
    }
    const int64_t form = job->is_at_once ? QN_ROW_AT_ONCE : first > 0;
    run_columns(run->columns, size, piece, piece_step, columns, n, to, form, run->block || run->kernel ? 0 : ahead);
  }
}

/* Steps to the next index of the further axes [n_joined, last) and joins the nodes that are complete. Returns 0 after the last index of
 * the range. */
static int next_segment(column_run *run, int32_t last, int64_t *index, int64_t there) {
  const qn_nest *nest = run->frame->job->nest;
  for (int32_t d = nest->n_joined; d < last; d++) {
    const int64_t n = d + 1 < last ? nest->n[d] : run->range.end - run->range.begin;
    qn_row_settle(&run->stack, index[d], n, there);
    const int wraps = ++index[d] == n;
    run->at = qn_row_moved(run->at, (wraps ? 1 - n : 1) * nest->stride[0][d]);
    if (!wraps) return 1;
    index[d] = 0;
  }
  return 0;
}

/* ---- Lanes ---- */

/* Pushes the node of a chunk: of n rows at `from`, lanes [first, first + lanes). Returns the number of accumulators it has. */
static int64_t push_chunk(column_run *run, char *from, int64_t n, int64_t first, int64_t lanes, int64_t ahead) {
  const int64_t width = lanes * run->n_columns, rest = n % QN_ROW_LANES - first, step = QN_ROW_LANES * run->step;
  const int64_t whole = n / QN_ROW_LANES + (rest >= lanes), there = rest > 0 && rest < lanes ? rest * run->n_columns : 0;
  char *node = run->stack.nodes + run->stack.n * run->stack.bytes;
  from = qn_row_moved(from, first * run->step);
  if (whole) combine_rows(run, from, step, whole, width, node, ahead);
  if (whole && there) {
    char *tail = qn_row_moved(from, whole * step);
    if (run->block || run->kernel) {
      combine_rows(run, tail, 0, 1, there, node + run->stack.bytes, 0);
      tail = node + run->stack.bytes;
    }
    qn_row_both(run->stack.both, NULL, run->stack.size, node, tail, node, there);
  } else if (there) {
    combine_rows(run, from, 0, 1, there, node, 0);
  }
  return whole ? width : there;
}

/* The lanes that follow [first, first + lanes) in the order of push_groups; 0: there are none. */
static int64_t lanes_after(int64_t first, int64_t lanes) {
  int64_t bit = QN_ROW_LANES / 2;
  for (; bit >= lanes && first & bit; bit /= 2) first -= bit;
  return bit >= lanes ? first + bit : 0;
}

/* Bytes from chunk m of the lanes [first, first + lanes) to what is read next, if that is worth prefetching; else 0: rows are short, or
 * in the cache, or all that is done is an addition: then enough lines are on their way. */
static int64_t bytes_ahead(const column_run *run, int64_t m, int64_t n_nodes, int64_t first, int64_t lanes) {
  const qn_row_job *job = run->frame->job;
  const int64_t last = (n_nodes - 1) * QN_ROW_CHUNK, next = lanes_after(first, lanes);
  if (run->stage->reduces[0].by->joins && !run->block && !run->kernel) return 0;
  if (job->row * qn_tensor_magnitude(run->step) < FAR_BYTES || run->n_columns * lanes * job->size[0] < FAR_ROW) return 0;
  if (m + 1 < n_nodes) return QN_ROW_CHUNK * run->step;
  return next && job->n_further == 1 ? (next - first - last) * run->step : 0;
}

/* The elements of the joined axes in the range. */
static int64_t row_of(const column_run *run, int32_t last) {
  const qn_row_job *job = run->frame->job;
  if (last > job->nest->n_joined) return job->row;
  const int64_t end = run->range.end * QN_ROW_CHUNK;
  return (job->row < end ? job->row : end) - run->range.begin * QN_ROW_CHUNK;
}

/* Pushes the lanes [first, first + lanes) of each column, over all segments of the range: of the further axes [n_joined, last). */
static void push_lanes(column_run *run, int32_t last, int64_t first, int64_t lanes) {
  const qn_row_job *job = run->frame->job;
  const int64_t row = row_of(run, last), n_chunks = qn_ceil_div(row, QN_ROW_CHUNK), in_last = row - (n_chunks - 1) * QN_ROW_CHUNK;
  const int64_t n_nodes = n_chunks - (in_last <= first), there = least(row - first, lanes) * run->n_columns;
  int64_t index[QUERN_MAX_NDIM];
  for (int32_t d = job->nest->n_joined; d < last; d++) index[d] = 0;
  do {
    for (int64_t m = 0; m < n_nodes; m++) {
      char *from = qn_row_moved(run->at, m * QN_ROW_CHUNK * run->step);
      const int64_t n = push_chunk(run, from, least(row - m * QN_ROW_CHUNK, QN_ROW_CHUNK), first, lanes, bytes_ahead(run, m, n_nodes, first, lanes));
      run->stack.n++;
      qn_row_settle(&run->stack, m, n_nodes, n);
    }
  } while (next_segment(run, last, index, there));
}

/* Pushes one node: the groups of lanes `group`, group + step, group + 2 step ... combined. */
static void push_groups(column_run *run, int64_t group, int64_t step) {
  const qn_row_job *job = run->frame->job;
  const int64_t lanes = job->lanes, right = job->row - (group + step) * lanes;
  if (step * lanes == QN_ROW_LANES) {
    push_lanes(run, job->nest->n_reduced, group * lanes, lanes);
    return;
  }
  push_groups(run, group, 2 * step);
  if (right <= 0) return;
  push_groups(run, group + step, 2 * step);
  qn_row_join(&run->stack, least(right, lanes) * run->n_columns);
}

/* Combines the lanes of each of n_columns columns; the results are at the beginning of the node. */
static void across(qn_kernel *both, uint8_t size, char *node, int64_t lanes, int64_t n_columns) {
  for (int64_t half = QN_ROW_LANES / 2; half; half /= 2) {
    const int64_t pairs = least(half, lanes - half);
    if (pairs <= 0) continue;
    qn_row_both(both, NULL, size, node, node + half * n_columns * size, node, pairs * n_columns);
    lanes = half;
  }
}

/* ---- A contiguous further axis ---- */

/* Combines n accumulators by the aligned binary tree, in place. inner: not NULL: a kernel that does so. room: for n accumulators. */
static void fold(qn_kernel *both, qn_kernel *inner, uint8_t size, char *values, int64_t n, char *room) {
  if (inner) {
    char *const ptr[2] = {values, values};
    const int64_t stride[2][2] = {{size, 0}, {size, 0}}, extent[3] = {n, 1, 0};
    inner(ptr, stride, extent, &(const qn_row_reducing){.is_whole = QN_ROW_FOLDED});
    return;
  }
  qn_kernel *gather = qn_job_kernel(qn_packs.gather[__builtin_ctz(size)], NULL);
  for (; n > 1; n = (n + 1) / 2) {
    const int64_t half = n / 2, stride[2][2] = {{2 * size, 0}, {size, 0}}, extent[3] = {half, 1, 0};
    char *odd = room + half * size;
    for (int i = 0; i < 2; i++) {
      char *const ptr[2] = {values + i * size, room + i * half * size};
      gather(ptr, stride, extent, NULL);
    }
    if (n & 1) memmove(values + half * size, values + (n - 1) * size, size);
    qn_row_both(both, NULL, size, room, odd, values, half);
  }
}

/* How the columns of a further axis are combined: the kernels of the reduction. */
typedef struct column_fold {
  qn_kernel *inner, *pairs; /* pairs: as `inner` of fold */
} column_fold;

/* The accumulators of all columns of n_lanes lanes, at `lanes`, folded to one of each lane. */
static void fold_lanes(const column_run *run, const column_fold *by, char *lanes, int64_t n_lanes, char *room, char *node) {
  const uint8_t size = run->stack.size;
  for (int64_t l = 0; l < n_lanes; l++) {
    char *values = lanes + l * run->n_columns * size;
    fold(run->stack.both, by->pairs, size, values, run->n_columns, room);
    memcpy(node + l * size, values, size);
  }
}

/* The node of tiles [tiles.begin, tiles.end), which are job->block columns each. */
static void fold_tiles(column_run *run, const column_fold *by, qn_row_range tiles, char *to) {
  row_frame *frame = run->frame;
  const qn_row_job *job = frame->job;
  const int32_t last = job->nest->n_reduced - 1;
  const int64_t extent = job->nest->n[last], n_tiles = tiles.end - tiles.begin, lanes = least(job->row, QN_ROW_LANES);
  const uint8_t size = run->stack.size;
  char *const begin = run->at, *const before = frame->top, *room = qn_row_take(frame, job->block * size);
  node_stack nodes = {.both = run->stack.both, .bytes = QN_ROW_LANES * size, .width = QN_ROW_LANES, .size = size};
  nodes.nodes = qn_row_take(frame, (levels_of(n_tiles) + 1) * nodes.bytes);
  for (int64_t tile = tiles.begin; tile < tiles.end; tile++) {
    char *node = nodes.nodes + nodes.n++ * nodes.bytes;
    run->at = qn_row_moved(begin, tile * job->block * job->size[0]);
    run->n_columns = least(extent - tile * job->block, job->block);
    run->stack.width = job->folded * run->n_columns;
    for (int64_t lane = 0; lane < lanes; lane += job->folded) {
      push_lanes(run, last, lane, job->folded);
      fold_lanes(run, by, run->stack.nodes, least(job->folded, lanes - lane), room, node + lane * size);
      run->stack.n = 0;
    }
    qn_row_settle(&nodes, tile - tiles.begin, n_tiles, lanes);
  }
  memcpy(to, nodes.nodes, (size_t)(lanes * size));
  frame->top = before;
}

/* The result of a node. */
static void finish_fold(const column_run *run, const column_fold *by, char *node, char *to) {
  const int64_t is_whole = 1, size = run->stack.size, stride[2][2] = {{size, 0}, {size, 0}}, n[3] = {least(run->frame->job->row, QN_ROW_LANES), 1, 0};
  char *const ptr[2] = {node, to};
  by->inner(ptr, stride, n, &is_whole);
}

/* ---- Parts ---- */

#define MOST_COLUMN_PARTS 16

/* The parts of a tile. Each is an aligned subtree, reduced by a slice; their nodes are joined at the end. */
typedef struct column_parts {
  const column_run *run;  /* of the tile */
  const column_fold *by;  /* NULL: columns are kept */
  int is_of_tiles;        /* what is cut are tiles of a further axis, else the range of rows */
  int32_t last;           /* as in push_lanes */
  int64_t whole, part;    /* the tiles, segments or chunks of all parts; of each part but the last */
  int32_t n;              /* parts */
  char *nodes;
  int64_t bytes;          /* of the node of a part: of all lanes */
  uint8_t is_left[MOST_COLUMN_PARTS]; /* parts for which there was no memory */
} column_parts;

static int32_t lanes_at_once(const qn_row_job *job) { return job->lanes ? job->lanes : job->folded; }

static void run_column_part_in(const column_parts *parts, int64_t i, row_frame *frame) {
  const qn_row_job *job = frame->job;
  column_run run = *parts->run;
  const int64_t end = (i + 1) * parts->part;
  const qn_row_range range = {i * parts->part, least(end, parts->whole)};
  char *const before = frame->top, *node = parts->nodes + i * parts->bytes;
  run.frame = frame;
  run.stack.nodes = qn_row_take(frame, job->n_levels * run.stack.bytes);
  if (parts->is_of_tiles) {
    fold_tiles(&run, parts->by, range, node);
  } else {
    const int32_t lanes = lanes_at_once(job), is_further = parts->last > job->nest->n_joined;
    run.range = range;
    run.at = qn_row_moved(run.at, range.begin * (is_further ? job->nest->stride[0][parts->last - 1] : QN_ROW_CHUNK * run.step));
    const int64_t there = least(row_of(&run, parts->last), QN_ROW_LANES), step = run.n_columns * run.stack.size;
    for (int64_t lane = 0; lane < there; lane += lanes) {
      push_lanes(&run, parts->last, lane, lanes);
      memcpy(node + lane * step, run.stack.nodes, (size_t)(least(lanes, there - lane) * step));
      run.stack.n = 0;
    }
  }
  frame->top = before;
}

static void run_column_part(void *arg, int64_t i) {
  column_parts *parts = arg;
  __attribute__((cleanup(qn_give_scratch))) void *const taken = qn_row_take_wide();
  wide_frame *const room = taken;
  parts->is_left[i] = !room;
  if (!room) return;
  qn_row_begin(&room->frame, parts->run->frame->job, parts->run->frame->params, room->scratch, sizeof room->scratch);
  run_column_part_in(parts, i, &room->frame);
}

/* Cuts a tile in parts, for which the frame's slices and scratch suffice. Returns 0 if that is not worth it. */
static int cut_column_parts(const column_run *run, const column_fold *by, column_parts *parts) {
  row_frame *frame = run->frame;
  const qn_row_job *job = frame->job;
  const int64_t n_tiles = by ? qn_ceil_div(job->nest->n[job->nest->n_reduced - 1], job->block) : 1;
  if (frame->n_slices < 2 || run->block || run->kernel) return 0;
  *parts = (column_parts){.run = run, .by = by, .is_of_tiles = n_tiles > 1, .last = job->nest->n_reduced - (by != NULL)};
  parts->whole = n_tiles > 1 ? n_tiles : whole_range(job, parts->last).end;
  parts->bytes = QN_ROW_LANES * (n_tiles > 1 ? 1 : run->n_columns) * run->stack.size;
  const int64_t of_one = job->n_levels * run->stack.bytes + 2 * job->block * run->stack.size + 64 * QN_ROW_LANES * run->stack.size;
  const int64_t most = least((frame->end - frame->top - of_one) / parts->bytes, MOST_COLUMN_PARTS);
  if (most < 2) return 0;
  parts->part = qn_row_subtree(parts->whole, 1, most);
  parts->n = (int32_t)qn_ceil_div(parts->whole, parts->part);
  return parts->n > 1;
}

/* Runs the parts and joins their nodes. The result is the first one. */
static void run_column_parts(column_parts *parts) {
  const column_run *run = parts->run;
  row_frame *frame = run->frame;
  const qn_row_job *job = frame->job;
  const int64_t columns = parts->is_of_tiles ? 1 : run->n_columns, lanes = least(job->row, QN_ROW_LANES);
  const int64_t in_last = parts->is_of_tiles || parts->last > job->nest->n_joined ? job->row : job->row - (parts->n - 1) * parts->part * QN_ROW_CHUNK;
  parts->nodes = qn_row_take(frame, parts->n * parts->bytes);
  const quern_status status = qn_slices_run(frame->slices, parts->n, run_column_part, parts);
  if (status) frame->status = status;
  for (int32_t i = 0; i < parts->n; i++)
    if (parts->is_left[i]) run_column_part_in(parts, i, frame);
  for (int64_t apart = 1; apart < parts->n; apart *= 2)
    for (int64_t i = 0; i + apart < parts->n; i += 2 * apart) {
      char *const left = parts->nodes + i * parts->bytes;
      qn_row_both(run->stack.both, NULL, run->stack.size, left, left + apart * parts->bytes, left,
                  (i + apart + 1 == parts->n ? least(in_last, QN_ROW_LANES) : lanes) * columns);
    }
}

/* ---- The reduction ---- */

static void reduce_columns(row_frame *frame, int32_t at, int32_t reduction) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const qn_row_reduce *reduce = &stage->reduces[0];
  const uint8_t size = qn_dtype_infos[reduce->by->dtype].size;
  const int64_t columns = job->lanes ? frame->rows : job->block, width = lanes_at_once(job) * columns;
  const column_fold fold_by = {job->inner[0], reduce->by->joins ? job->inner[0] : NULL}, *const by = job->lanes ? NULL : &fold_by;
  char *const before = frame->top, *const to = frame->row_value[reduce->to];
  const int32_t k = stage->variant ? 0 : reduce->from;
  column_parts parts;
  column_run run = {.frame = frame, .stage = stage, .columns = qn_job_kernel(reduce->by->columns, NULL), .kernel = job->kernel[at],
                    .at = frame->ptr[k], .step = job->nest->stride[k][0], .n_columns = columns};
  if (job->is_across) run.at = frame->across[k].ptr, run.step = frame->across[k].step;
  run.range = whole_range(job, job->nest->n_reduced - !job->lanes);
  run.in_dtype = stage->variant ? stage->variant->dtypes[0] : reduce->by->dtype;
  run.stack = (node_stack){.both = job->both[reduction], .bytes = width * size, .width = width, .size = size};
  if (job->is_at_once && job->is_narrow)
    run.columns = qn_job_kernel(reduce->by->narrow_columns[job->dtype[0]], NULL);
  else if (!job->is_across && job->dtype[0] != run.in_dtype)
    run.block = qn_row_take(frame, job->piece * width * qn_dtype_infos[run.in_dtype].size);
  if (run.kernel) run.temp = qn_row_take(frame, job->piece * width * size);
  if (job->is_at_once) {
    combine_rows(&run, run.at, run.step, job->row, columns, to, 0);
    frame->top = before;
    return;
  }
  const int is_cut = cut_column_parts(&run, by, &parts);
  if (is_cut)
    run_column_parts(&parts);
  else
    run.stack.nodes = qn_row_take(frame, job->n_levels * run.stack.bytes);
  if (job->lanes) {
    if (!is_cut) push_groups(&run, 0, 1);
    char *const node = is_cut ? parts.nodes : run.stack.nodes;
    across(run.stack.both, size, node, least(job->row, is_cut ? QN_ROW_LANES : job->lanes), columns);
    memcpy(to, node, (size_t)(columns * size));
  } else {
    char *node = is_cut ? parts.nodes : qn_row_take(frame, QN_ROW_LANES * size);
    if (!is_cut)
      fold_tiles(&run, by, (qn_row_range){0, qn_ceil_div(job->nest->n[job->nest->n_reduced - 1], job->block)}, node);
    else if (!parts.is_of_tiles)
      fold_lanes(&run, by, node, least(job->row, QN_ROW_LANES), qn_row_take(frame, columns * size), node);
    finish_fold(&run, by, node, to);
  }
  frame->top = before;
}

/* The same for a job that goes across, of rows that are reduced at once. */
static void reduce_at_once(row_frame *frame, int32_t at) {
  const qn_row_job *job = frame->job;
  const qn_row_stage *stage = &job->program->stages[at];
  const uint8_t kept = job->program->kept;
  char *const before = frame->top;
  for (int32_t i = stage->n_in; i < stage->n_in + stage->n_out; i++) {
    const uint8_t value = stage->values[i];
    if (value < QN_ROW_TEMP || value == kept) continue;
    const int64_t step = frame->rows * qn_dtype_infos[stage->variant->dtypes[i]].size;
    frame->temp[value - QN_ROW_TEMP] = (value_place){job->lends ? frame->across[job->lends].ptr : qn_row_take(frame, job->row * step), step};
  }
  if (stage->variant) compute_rows(frame, stage, job->kernel[at], 0, 1, job->row, NULL);
  for (int32_t r = 0; r < stage->n_reduces; r++) {
    const qn_row_reduce *reduce = &stage->reduces[r];
    const uint8_t from = reduce->from;
    const value_place place = from < QN_ROW_TEMP ? frame->across[from] : from == kept ? frame->across[job->n_in] : frame->temp[from - QN_ROW_TEMP];
    run_columns(qn_job_kernel(reduce->by->columns, NULL), qn_dtype_infos[reduce->by->dtype].size, place.ptr, place.step, frame->rows, job->row,
                frame->row_value[reduce->to], QN_ROW_AT_ONCE, 0);
  }
  frame->top = before;
}

void qn_row_columns(row_frame *frame, int32_t at, int32_t reduction) {
  if (frame->job->is_across && frame->job->is_at_once)
    reduce_at_once(frame, at);
  else
    reduce_columns(frame, at, reduction);
}

/* ---- Across ---- */

void qn_row_begin_across(row_frame *frame) {
  const qn_row_job *job = frame->job;
  const int64_t dense = frame->rows * qn_dtype_infos[job->as].size;
  for (int32_t k = 0; k < job->n_in + job->n_out; k++) {
    const int64_t step = job->nest->stride[k][0];
    frame->across[k] = (value_place){frame->ptr[k], step};
    if (!(job->converted >> k & 1)) continue;
    frame->across[k] = (value_place){qn_row_take(frame, job->row * dense), dense};
    if (k < job->n_in) qn_row_convert(job->dtype[k], job->as, frame->ptr[k], step, frame->across[k].ptr, dense, frame->rows, job->row);
  }
}

void qn_row_end_across(row_frame *frame) {
  const qn_row_job *job = frame->job;
  for (int32_t k = job->n_in; k < job->n_in + job->n_out; k++)
    if (job->converted >> k & 1)
      qn_row_convert(job->as, job->dtype[k], frame->across[k].ptr, frame->across[k].step, frame->ptr[k], job->nest->stride[k][0], frame->rows, job->row);
}

void qn_row_elements_across(row_frame *frame, int32_t at) {
  const qn_row_job *job = frame->job;
  compute_rows(frame, &job->program->stages[at], job->kernel[at], 0, 1, job->row, NULL);
}

/* ---- Short rows ---- */

void qn_row_reduce_short(row_frame *frame, const qn_reducer *by, qn_kernel *both, value_place from, char *to) {
  const qn_row_job *job = frame->job;
  const uint8_t size = qn_dtype_infos[by->dtype].size;
  const int64_t rows = frame->rows, row = least(job->row, QN_ROW_LANES);
  char *const before = frame->top, *block = qn_row_take(frame, job->row * rows * size);
  qn_kernel *turn = qn_job_kernel(qn_packs.transpose[__builtin_ctz(size)], NULL);
  char *const ptr[2] = {from.ptr, block};
  const int64_t stride[2][2] = {{from.step, size}, {size, rows * size}}, extent[3] = {rows, job->row, 0};
  turn(ptr, stride, extent, NULL);
  across(both, size, block, row, rows);
  memcpy(to, block, (size_t)(rows * size));
  frame->top = before;
}
