/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.c: runs jobs. See engine.h.
 *
 * A job over blocks handles one tile at a time: load the inputs into blocks, compute, store the outputs. The kernel runs on
 * blocks, or on a tensor in place where its layout fits. All loads of a tile come before its first store, and kernels load an
 * element before they store it, so an output may be the same tensor as an input. */
#include "core/cpu/engine.h"

#include "core/cpu/tiles.h"

/* The data that all slices of a run share. */
typedef struct engine_run {
  qn_tiles tiles; /* DIRECT: job and ref */
  qn_kernel *kernel;
  const void *params;
  int32_t n_slices;
  int32_t cut;     /* DIRECT: the dimension of the nest that is cut into slices */
  int64_t n_tiles; /* BLOCKS */
} engine_run;

/* ---- Direct ---- */

#define FETCHED_AHEAD 8192 /* bytes */

/* Orders non-temporal stores before the slice's completion is published; nothing else does. As q_stream_end() of kernel_pack.h. */
static void fence_streams(void) {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#elif defined(__aarch64__)
  __asm__ volatile("dmb ishst" ::: "memory");
#endif
}

/* Copies the items that a streamed run has in blocks past the cache: `count`, of piece->n[0] that a block has room for, to cursor->ptr. */
static void store_piece(const qn_job *job, qn_tile_cursor *cursor, qn_tile *piece) {
  for (int32_t k = job->n_in; k < job->n_operands && piece->count; k++) qn_pack_store(&job->operand[k], NULL, piece, cursor->scratch, cursor->ptr[k]);
  piece->count = 0;
}

/* Runs the kernel over a row of n items, piece by piece: it writes to blocks, which are copied past the cache when they are full, or
 * where the next row's outputs are elsewhere. A block ends where a cache line of the first output does. Prefetches what is read, since reads
 * by a mask come late. */
static void stream_row(const engine_run *run, char *const *row, const int64_t (*stride)[2], int64_t n, qn_tile_cursor *cursor, qn_tile *piece) {
  const qn_job *job = run->tiles.job;
  const int is_fetched = job->fetched && run->n_slices == 1; /* several threads keep memory busy with results, too, and further reads delay those */
  const int64_t most = is_fetched ? 2 * job->chunk[0] : job->chunk[0];
  const uintptr_t of_inputs = job->n_in > 3 ? 12288 / (uintptr_t)job->n_in : 4096;
  const uintptr_t ahead = is_fetched ? FETCHED_AHEAD : of_inputs; /* past an operand's end a prefetch is harmless */
  int64_t extent[3] = {0, 1, 0};
  char *ptr[QN_MAX_OPERANDS];
  for (int32_t k = job->n_in; k < job->n_operands; k++)
    if (piece->count && row[k] != cursor->ptr[k] + piece->count * job->operand[k].size) store_piece(job, cursor, piece);
  for (int64_t i = 0; i < n; i += extent[0]) {
    if (!piece->count) {
      for (int32_t k = job->n_in; k < job->n_operands; k++) cursor->ptr[k] = row[k] + i * job->operand[k].size;
      const int64_t head = (int64_t)((0 - (uintptr_t)cursor->ptr[job->n_in]) % 64) / job->operand[job->n_in].size; /* up to a cache line */
      piece->n[0] = head > 0 && head < most ? head : most;
    }
    extent[0] = n - i < piece->n[0] - piece->count ? n - i : piece->n[0] - piece->count;
    for (int32_t k = 0; k < job->n_in; k++) {
      const int64_t bytes = job->nest->rank > 1 && !stride[k][1] ? 0 : extent[0] * stride[k][0]; /* not those of a row that is repeated */
      ptr[k] = row[k] + i * stride[k][0];
      for (int64_t b = 0; b < bytes; b += 64) __builtin_prefetch((const char *)((uintptr_t)ptr[k] + ahead) + b, 0, 2);
    }
    for (int32_t k = job->n_in; k < job->n_operands; k++) ptr[k] = cursor->scratch + job->operand[k].block + piece->count * job->operand[k].size;
    run->kernel(ptr, stride, extent, run->params);
    if ((piece->count += extent[0]) == piece->n[0]) store_piece(job, cursor, piece);
  }
}

/* Runs the kernel over a row of n items, piece by piece; before each it fetches what the input has further on. */
static void fetch_row(const engine_run *run, char *const *row, const int64_t (*stride)[2], int64_t n) {
  int64_t extent[3] = {0, 1, 0};
  for (int64_t i = 0; i < n; i += extent[0]) {
    char *const ptr[2] = {row[0] + i * stride[0][0], row[1] + i * stride[1][0]};
    extent[0] = n - i < run->tiles.job->chunk[0] ? n - i : run->tiles.job->chunk[0];
    for (int64_t b = 0; b < extent[0] * stride[0][0]; b += 64) __builtin_prefetch((const char *)((uintptr_t)ptr[0] + FETCHED_AHEAD) + b, 0, 2);
    run->kernel(ptr, stride, extent, run->params);
  }
}

/* Runs the kernel over [begin, end) of dimension `cut` and all of the others. cursor, piece: of a streamed run */
static void walk_rows(const engine_run *run, int64_t begin, int64_t end, qn_tile_cursor *cursor, qn_tile *piece) {
  const qn_job *job = run->tiles.job;
  const qn_nest *nest = job->nest;
  int32_t cut = run->cut, inner = job->streamed || job->fetched ? 1 : job->variant->rank < nest->rank ? job->variant->rank : nest->rank;
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2], at[QUERN_MAX_NDIM];
  int64_t extent[3] = {1, 1, 0};
  for (int32_t d = inner; d < nest->rank; d++) at[d] = 0;
  for (int32_t d = 0; d < inner; d++) extent[d] = d == cut ? end - begin : nest->n[d];
  for (int32_t k = 0; k < job->n_operands; k++) {
    ptr[k] = qn_ref_address(run->tiles.ref[k]) + (begin ? begin * nest->stride[k][cut] : 0);
    stride[k][0] = nest->rank > 0 ? nest->stride[k][0] : 0;
    stride[k][1] = nest->rank > 1 ? nest->stride[k][1] : 0;
  }
  for (;;) {
    if (piece)
      stream_row(run, ptr, (const int64_t(*)[2])stride, extent[0], cursor, piece);
    else if (job->fetched)
      fetch_row(run, ptr, (const int64_t(*)[2])stride, extent[0]);
    else
      run->kernel(ptr, (const int64_t(*)[2])stride, extent, run->params);
    int32_t d = inner;
    for (; d < nest->rank; d++) {
      int64_t n = d == cut ? end - begin : nest->n[d];
      int64_t step = ++at[d] < n ? 1 : 1 - n;
      for (int32_t k = 0; k < job->n_operands; k++) ptr[k] += step * nest->stride[k][d];
      if (step == 1) break;
      at[d] = 0;
    }
    if (d == nest->rank) return;
  }
}

/* Not inlined, for its stack. */
__attribute__((noinline)) static void run_streamed(const engine_run *run, int64_t begin, int64_t end) {
  QN_IN_SCRATCH(qn_tile_cursor, cursor);
  qn_tile piece = {.count = 0};
  walk_rows(run, begin, end, cursor, &piece);
  store_piece(run->tiles.job, cursor, &piece);
  fence_streams();
}

static void run_direct(const engine_run *run, int64_t begin, int64_t end) {
  if (run->tiles.job->streamed)
    run_streamed(run, begin, end);
  else
    walk_rows(run, begin, end, NULL, NULL);
}

/* The dimension to cut into slices: the outermost one that is long enough, else the longest. */
static int32_t cut_dimension(const qn_nest *nest, int32_t n_slices) {
  int32_t longest = 0;
  for (int32_t d = nest->rank - 1; d >= 0; d--) {
    if (nest->n[d] >= 4 * (int64_t)n_slices) return d;
    if (nest->n[d] > nest->n[longest]) longest = d;
  }
  return longest;
}

/* Slices of dimension 0 are multiples of 64 items, so that they share no cache lines of the output. */
static void direct_slice(void *arg, int64_t i) {
  const engine_run *run = arg;
  int64_t n = run->tiles.job->nest->n[run->cut], multiple = run->cut == 0 ? 64 : 1;
  int64_t begin = qn_tiles_part(n, i, run->n_slices, multiple), end = qn_tiles_part(n, i + 1, run->n_slices, multiple);
  if (begin < end) run_direct(run, begin, end);
}

/* ---- Blocks ---- */

/* The pointers and strides of the kernel's operands: blocks, and tensors in place. */
typedef struct kernel_operands {
  char *ptr[QN_MAX_OPERANDS];
  int64_t stride[QN_MAX_OPERANDS][2];
} kernel_operands;

static void kernel_operands_set(const qn_job *job, kernel_operands *operands, char *scratch) {
  for (int32_t k = 0; k < job->n_operands; k++) {
    const qn_operand *operand = &job->operand[k];
    operands->ptr[k] = scratch + operand->block;
    operands->stride[k][0] = operand->broadcast ? 0 : operand->compute_size;
    /* The row stride, where the kernel runs in rows; that of a block depends on the tile and is set by `compute`. */
    operands->stride[k][1] = job->rows && operand->packing == QN_PACKING_IN_PLACE ? job->nest->stride[k][job->tile_dim[1]] : 0;
  }
}

static void compute(const engine_run *run, const qn_tile_cursor *cursor, const qn_tile *tile, kernel_operands *operands) {
  const qn_job *job = run->tiles.job;
  const int64_t extent[3] = {job->rows ? tile->row : tile->count, job->rows ? tile->n[1] : 1, 0};
  for (int32_t k = 0; k < job->n_operands; k++) {
    if (job->operand[k].packing == QN_PACKING_IN_PLACE)
      operands->ptr[k] = cursor->ptr[k];
    else if (job->rows)
      operands->stride[k][1] = extent[0] * operands->stride[k][0];
  }
  if (job->variant->rank > 1 || extent[1] == 1) {
    run->kernel(operands->ptr, (const int64_t(*)[2])operands->stride, extent, run->params);
    return;
  }
  char *ptr[QN_MAX_OPERANDS]; /* a kernel of rank 1 runs over the rows one by one */
  for (int32_t k = 0; k < job->n_operands; k++) ptr[k] = operands->ptr[k];
  const int64_t one_row[3] = {extent[0], 1, 0};
  for (int64_t i = 0; i < extent[1]; i++) {
    run->kernel(ptr, (const int64_t(*)[2])operands->stride, one_row, run->params);
    for (int32_t k = 0; k < job->n_operands; k++) ptr[k] += operands->stride[k][1];
  }
}

static void run_tiles(const engine_run *run, int64_t first, int64_t end) {
  const qn_job *job = run->tiles.job;
  QN_IN_SCRATCH(qn_tile_cursor, cursor);
  char *const scratch = cursor->scratch;
  kernel_operands operands;
  qn_tile tile;
  qn_tiles_start(job, &tile, cursor->held, scratch);
  kernel_operands_set(job, &operands, scratch);
  qn_tiles_set(&run->tiles, cursor, first);
  for (int64_t i = first;;) {
    qn_tiles_measure(&run->tiles, cursor, &tile);
    qn_tiles_load(&run->tiles, job->n_in, cursor, &tile, cursor->held, scratch);
    if (job->program)
      job->program->compute(job, cursor->ptr, tile.count, scratch, run->params);
    else
      compute(run, cursor, &tile, &operands);
    for (int32_t k = job->n_in; k < job->n_operands; k++)
      if (job->operand[k].packing != QN_PACKING_IN_PLACE)
        qn_pack_store(&job->operand[k], job->nest->stride[k], &tile, scratch, cursor->ptr[k]);
    if (++i == end) break;
    qn_tiles_next(&run->tiles, cursor);
  }
  if (job->streamed) fence_streams();
}

static void blocks_slice(void *arg, int64_t i) {
  const engine_run *run = arg;
  int64_t n = run->n_slices, first = qn_tiles_part(run->n_tiles, i, n, 1), end = qn_tiles_part(run->n_tiles, i + 1, n, 1);
  if (first < end) run_tiles(run, first, end);
}

/* The skew (qn_tiles) that aligns the tiles of a streamed output to cache lines; 0 if none does. */
static int64_t stream_skew(const qn_job *job, const qn_ref *ref) {
  uintptr_t misaligned = (uintptr_t)qn_ref_address(ref[job->n_in]) % 64;
  int64_t size = job->operand[job->n_in].size;
  if (!job->streamed || job->nest->rank != 1 || misaligned % (uintptr_t)size) return 0;
  return (int64_t)misaligned / size % job->chunk[0];
}

/* ---- Either ---- */

int32_t qn_engine_slices(const qn_job *job, const qn_slices *slices) { return qn_slices_worth(slices, job->most_slices / 2); }

quern_status qn_engine_run(const qn_job *job, qn_kernel *kernel, const qn_ref *ref, const void *params, qn_slices *slices) {
  const int32_t n_slices = qn_slices_now(slices, job->most_slices / 2, job->most_slices);
  engine_run run = {.tiles = {.job = job, .ref = ref}, .kernel = kernel, .params = params, .n_slices = n_slices};
  if (job->path == QN_PATH_DIRECT) {
    if (n_slices > 1) {
      run.cut = cut_dimension(job->nest, n_slices);
      return qn_slices_run(slices, n_slices, direct_slice, &run);
    }
    run_direct(&run, 0, job->nest->rank ? job->nest->n[0] : 1);
    return QUERN_OK;
  }
  run.tiles.skew = stream_skew(job, ref);
  run.n_tiles = qn_tiles_count(&run.tiles);
  if (n_slices > 1) return qn_slices_run(slices, n_slices, blocks_slice, &run);
  run_tiles(&run, 0, run.n_tiles);
  return QUERN_OK;
}
