/* SPDX-License-Identifier: Apache-2.0
 *
 * job.c: the choice of a path, kernel and packing for one loop nest. See job.h. */
#include "core/cpu/job.h"

#include "core/base/isa.h"

/* From this many bytes of operands on, outputs are written past the cache, except where computation hides the reads of their lines: fewer than
 * three inputs, outputs counted four times, for each heavy operation (10^7 f32, Zen 5, a thread, in place of the cache: add 0.75 of the time, exp
 * 1.0, sin 1.2, tanh(a * b + c) 0.72). It is 1.5 times the L3 of the processor measured: an L3 keeps a part of what is a little larger. Calls on the same
 * operands in place of the cache, Zen 5, 32 MB of L3, on one thread and two: relu f32 40 MB 1.19, 1.09; 48 MB 1.11, 0.84; 64 MB 1.0, 0.81; add f32
 * 32 MB 1.16, 1.15; 40 MB 1.0, 0.93; 48 MB 0.93, 0.87. An interpreted expression's outputs come from blocks anyway. */
#ifndef QN_STREAM_BYTES
#define QN_STREAM_BYTES (48 << 20)
#endif

/* Elements of the shortest row that is streamed, of a nest of several: at each end a line of the output is written in parts. Of the shortest where a
 * direct kernel's outputs go on from row to row; then an input may repeat a row up to MOST_REPEATED, which L1 keeps (10^7 f32, Zen 5, x + row:
 * of 1000 0.8 of the time, of 20,000 1.1). */
#define STREAM_ROW (1 << 18)
#define STREAM_JOINED 256
#define MOST_REPEATED 4096

/* Bytes of the widest operand in a piece of a row, where a direct kernel is streamed: reads and writes alternate and keep memory busy both
 * ways, at little overhead (add of 10^7 f32, Zen 5: 1.9 ms; with 256 bytes 2.1, with 1024 2.2). Twice as many in short rows of one input that repeats none. */
#define PIECE_BYTES 512
/* Elements of a streamed tile; its overhead is above a piece's (f16 + f32 of 10^7: 3.1 ms; 3.3 with 256, 3.6 with QN_BLOCK). */
#define STREAM_BLOCK 512

/* Bytes of a row of an op's only input from which on it is fetched further ahead, if results have half of its bytes or less. Kernels then read some
 * hundred bytes at a time, and processors do not foresee these (Zen 5, a thread: bitwise_count of 5 * 10^6 u64 0.45 of the time, isnan f64 0.82,
 * 2 * 10^7 f32 to f16 0.75; less f64, which has two inputs, 1.2). Inputs of 2 to 16 MB, which an L3 holds, took 1.1 to 1.5. */
#define FETCHED_ROW (24 << 20)
/* Bytes of a piece of such a row, if it is not streamed. */
#define FETCHED_PIECE 2048

/* The least work of a slice that is worth a thread that is awake. */
#ifndef QN_SLICE_NANOSECONDS
#define QN_SLICE_NANOSECONDS 4000
#endif

/* Up to this many elements, blocks cost more than they gain. */
#define FEW_ELEMENTS 64

#define CACHE_LINE 64

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t inner_stride(const qn_nest *nest, int32_t k) { return nest->rank ? nest->stride[k][0] : 0; }
static int has_outputs(const qn_job *job) { return job->n_in < job->n_operands; }

qn_kernel *qn_job_kernel(const qn_variant *variant, qn_isa *isa) {
  unsigned level = (unsigned)qn_isa_detect();
  while (level > 0 && !variant->fn[level]) level--;
  if (!variant->fn[level]) { /* QUERN_ISA is below all built levels: the lowest built one that this machine runs */
    unsigned machine = (unsigned)qn_isa_machine();
    while (level < machine && level + 1 < QN_ISA_COUNT && !variant->fn[level]) level++;
  }
  if (isa) *isa = (qn_isa)level;
  return variant->fn[level];
}

/* ---- Direct ---- */

/* The variant of these dtypes that accepts the operands' layout along the inner dimension: the one with the fewest strided
 * operands, then one of rank 2; NULL if there is none. */
static const qn_variant *direct_variant(const qn_signature *signature, const uint8_t *dtypes, const qn_job *job, int *n_strided) {
  const qn_nest *nest = job->nest;
  const int32_t n_operands = job->n_operands;
  const int single = nest->rank == 0; /* one element: every stride fits every class */
  const qn_variant *best = NULL;
  for (int32_t i = 0; i < signature->n_variants; i++) {
    const qn_variant *variant = &signature->variants[i];
    int strided = 0, fits = variant->rank == 1 || variant->rank == 2;
    for (int32_t k = 0; k < n_operands && fits; k++) {
      const uint8_t class = variant->classes[k];
      fits = variant->dtypes[k] == dtypes[k];
      if (class == QN_CLASS_STRIDED)
        strided++;
      else
        fits &= single || nest->stride[k][0] == (class == QN_CLASS_BROADCAST ? 0 : job->operand[k].size);
    }
    if (!fits || (best && (strided > *n_strided || (strided == *n_strided && variant->rank <= best->rank)))) continue;
    best = variant;
    *n_strided = strided;
    if (strided == 0 && variant->rank == 2) break; /* the best possible */
  }
  return best;
}

/* The outer dimension along which operand k's items share cache lines, if they do not along the inner one; 0: none. */
static int32_t transposed_dim(const qn_nest *nest, int32_t k) {
  if (nest->rank < 2 || qn_tensor_magnitude(nest->stride[k][0]) < CACHE_LINE || nest->n[0] < 8) return 0;
  int32_t best = 0;
  for (int32_t d = 1; d < nest->rank; d++) {
    int64_t stride = qn_tensor_magnitude(nest->stride[k][d]);
    int shares = stride && stride < CACHE_LINE && nest->n[d] >= 8;
    if (shares && (!best || stride < qn_tensor_magnitude(nest->stride[k][best]))) best = d;
  }
  return best;
}

static int32_t any_transposed_dim(const qn_job *job) {
  for (int32_t k = 0; k < job->n_operands; k++) {
    int32_t d = k < job->nest->n_positions ? 0 : transposed_dim(job->nest, k);
    if (d) return d;
  }
  return 0;
}

/* Whether some operand is neither contiguous nor broadcast along the inner dimension. */
static int has_strided_operand(const qn_job *job) {
  for (int32_t k = 0; k < job->n_operands; k++) {
    int64_t stride = inner_stride(job->nest, k);
    if (stride && stride != job->operand[k].size) return 1;
  }
  return 0;
}

static int is_direct_worthwhile(const qn_job *job, const qn_variant *variant, int n_strided) {
  const qn_nest *nest = job->nest;
  if (nest->n_elements <= FEW_ELEMENTS) return 1;
  /* A strided variant in place of a missing broadcast one: a block filled once is faster. */
  if (n_strided && !has_strided_operand(job)) return 0;
  if (nest->rank <= 1) return 1;
  if (nest->n[0] < (variant->rank >= 2 ? QN_ROW_WORTHWHILE : QN_CALL_WORTHWHILE)) return 0;
  return !n_strided || !any_transposed_dim(job);
}

/* ---- Tiles ---- */

/* The size of nearly equal pieces of n, each at most `most`, so that no short piece is last. A multiple of `multiple` where
 * `most` allows that. */
static int64_t even_chunk(int64_t n, int64_t most, int64_t multiple) {
  if (n <= most) return n;
  if (most >= multiple) most -= most % multiple;
  int64_t pieces = (n - 1) / most + 1, chunk = (n - 1) / pieces + 1;
  if (most >= multiple) chunk = (chunk + multiple - 1) / multiple * multiple;
  return chunk;
}

static void choose_linear_tiles(qn_job *job, int64_t block) {
  const qn_nest *nest = job->nest;
  int64_t room = block;
  job->tile_rank = 0;
  for (int32_t d = 0; d < nest->rank; d++) {
    int64_t chunk = 1;
    if (room > 1) chunk = even_chunk(nest->n[d], room, d == 0 || job->streamed ? CACHE_LINE : 1);
    job->chunk[d] = chunk;
    job->order[d] = d;
    if (chunk > 1) job->tile_dim[job->tile_rank++] = d;
    room = chunk == nest->n[d] ? room / chunk : 1;
  }
}

/* Items in a row of a transposed tile. */
#define TRANSPOSED_ROW 64
/* Its number of rows: the items in two cache lines of the first output, since lines are fetched in pairs. */
static int64_t transposed_rows(const qn_job *job) { return 2 * CACHE_LINE / job->operand[job->n_in].size; }

/* Tiles of two dimensions use a transposed operand's cache lines, along `other`, in full. They are walked along `other`, so
 * that the next tile reuses the pages and half-used lines of that operand's many short rows
 * (3000 x 3000 f32: 0.8 ns an element against 1.6 the other way or with tiles one line high). */
static void choose_transposed_tiles(qn_job *job, int32_t other, int64_t block) {
  const qn_nest *nest = job->nest;
  int64_t rows = min_i64(nest->n[other], min_i64(transposed_rows(job), block));
  int32_t at = 0;
  for (int32_t d = 0; d < nest->rank; d++) job->chunk[d] = 1;
  job->chunk[other] = rows;
  job->chunk[0] = even_chunk(nest->n[0], min_i64(TRANSPOSED_ROW, block / rows), 1);
  job->order[at++] = other;
  for (int32_t d = 0; d < nest->rank; d++)
    if (d != other) job->order[at++] = d;
  job->tile_rank = 0;
  if (job->chunk[0] > 1) job->tile_dim[job->tile_rank++] = 0;
  if (rows > 1) job->tile_dim[job->tile_rank++] = other;
}

/* Whether the operand's items are adjacent over a whole tile; is_uniform: whether they are all the same item. */
static int is_linear(const qn_job *job, int32_t k) {
  int64_t expected = job->operand[k].size;
  for (int32_t j = 0; j < job->tile_rank; j++) {
    int32_t d = job->tile_dim[j];
    if (job->nest->stride[k][d] != expected) return 0;
    /* The last tile of a cut dimension is shorter than the chunk; then the next dimension's items are not adjacent. */
    if (j + 1 < job->tile_rank && job->chunk[d] != job->nest->n[d]) return 0;
    expected *= job->chunk[d];
  }
  return 1;
}

static int is_uniform(const qn_job *job, int32_t k) {
  for (int32_t j = 0; j < job->tile_rank; j++)
    if (job->nest->stride[k][job->tile_dim[j]]) return 0;
  return job->tile_rank > 0;
}

static int64_t tile_stride(const qn_job *job, int32_t k, int32_t j) { return j < job->tile_rank ? job->nest->stride[k][job->tile_dim[j]] : 0; }
static int64_t tile_extent(const qn_job *job, int32_t j) { return j < job->tile_rank ? job->chunk[job->tile_dim[j]] : 1; }

static int has_rows(const qn_job *job, int32_t k) { return tile_stride(job, k, 0) == job->operand[k].size; }

/* Whether the kernel should run over the rows of a tile: they are long enough, and then some operand needs no packing. */
static int are_rows_worthwhile(const qn_job *job, const qn_signature *signature) {
  if (job->program || !has_outputs(job)) return 0;
  const qn_variant *variant = &signature->variants[0];
  if (job->tile_rank != 2 || tile_extent(job, 0) < (variant->rank == 2 ? QN_ROW_WORTHWHILE : QN_CALL_WORTHWHILE)) return 0;
  for (int32_t k = 0; k < job->n_operands; k++)
    if (job->operand[k].dtype == job->operand[k].compute_dtype && has_rows(job, k) && !is_linear(job, k)) return 1;
  return 0;
}

/* Whether the kernel can take operand k as broadcast. With rows, its value may differ from row to row. */
static int may_broadcast(const qn_job *job, int32_t k) {
  if (k >= job->n_in) return 0;
  if (is_uniform(job, k)) return 1;
  return job->rows && tile_stride(job, k, 0) == 0 && job->operand[k].dtype == job->operand[k].compute_dtype;
}

/* The variant for tiles: operands of the compute dtypes, contiguous, and as many broadcast as possible. */
static const qn_variant *block_variant(const qn_signature *signature, const qn_job *job) {
  const uint8_t *dtypes = signature->variants[0].dtypes;
  const qn_variant *best = NULL;
  int best_broadcasts = -1;
  for (int32_t i = 0; i < signature->n_variants; i++) {
    const qn_variant *variant = &signature->variants[i];
    int broadcasts = 0, fits = variant->rank == 1 || variant->rank == 2;
    for (int32_t k = 0; k < job->n_operands && fits; k++) {
      int is_broadcast = variant->classes[k] == QN_CLASS_BROADCAST;
      broadcasts += is_broadcast;
      fits = variant->dtypes[k] == dtypes[k] && (variant->classes[k] == QN_CLASS_CONTIGUOUS || (is_broadcast && may_broadcast(job, k)));
    }
    if (!fits || broadcasts <= best_broadcasts) continue;
    best = variant;
    best_broadcasts = broadcasts;
  }
  qn_assert(best);
  return best;
}

/* ---- Packing modes ---- */

/* Whether every byte offset inside a tile fits an entry of the offset table, an int32_t. */
static int fits_table(const qn_job *job, int32_t k) {
  int64_t reach = 0;
  for (int32_t j = 0; j < job->tile_rank; j++) {
    int64_t stride = qn_tensor_magnitude(tile_stride(job, k, j));
    if (stride > INT32_MAX) return 0; /* no sum below can overflow then */
    reach += stride * (tile_extent(job, j) - 1);
  }
  return reach <= INT32_MAX;
}

static void use_mover(qn_operand *operand, qn_packing packing, const qn_variant *mover) {
  operand->packing = (uint8_t)packing;
  operand->mover = mover;
  operand->move = mover ? qn_job_kernel(mover, NULL) : NULL;
}

/* Chooses the packing of an operand that is neither used in place nor converted row by row. */
static void choose_move(qn_job *job, int32_t k, int is_transposed) {
  qn_operand *operand = &job->operand[k];
  int is_output = k >= job->n_in, log2 = __builtin_ctz(operand->size);
  int64_t row = tile_extent(job, 0), stride = tile_stride(job, k, 0);
  if (!is_output && is_uniform(job, k))
    use_mover(operand, QN_PACKING_FILL, qn_packs.fill[log2]);
  else if (stride == operand->size && row * operand->size >= CACHE_LINE)
    use_mover(operand, QN_PACKING_ROWS, NULL);
  else if (!is_output && job->tile_rank == 2 && row >= 8 && tile_extent(job, 1) >= 8 && tile_stride(job, k, 1) == operand->size)
    use_mover(operand, QN_PACKING_STRIDED, qn_packs.transpose[log2]);
  else if (!is_output && stride == 0 && row >= QN_ROW_WORTHWHILE)
    use_mover(operand, QN_PACKING_STRIDED, qn_packs.fill[log2]);
  else if (row < QN_ROW_WORTHWHILE && !is_transposed && fits_table(job, k))
    use_mover(operand, QN_PACKING_AT, is_output ? qn_packs.scatter_at[log2] : qn_packs.gather_at[log2]);
  else
    use_mover(operand, QN_PACKING_STRIDED, is_output ? qn_packs.scatter[log2] : qn_packs.gather[log2]);
}

/* The kernel that converts between tensor and block; NULL: none is needed. */
static qn_kernel *conversion(const qn_job *job, int32_t k) {
  const uint8_t dtype = job->operand[k].dtype, compute = job->operand[k].compute_dtype;
  const int is_output = k >= job->n_in, takes_any_nan = job->computes || (!is_output && job->program); /* and may look at its sign */
  if (dtype == compute) return NULL;
  const qn_variant *plain = is_output ? qn_packs.narrow[dtype] : qn_packs.widen[dtype];
  if (plain && takes_any_nan && compute == qn_dtype_infos[dtype].compute) return qn_job_kernel(plain, NULL);
  return qn_job_kernel(is_output ? qn_packs.convert[compute][dtype] : qn_packs.convert[dtype][compute], NULL);
}

static void choose_packing(qn_job *job, int32_t k, int is_transposed) {
  qn_operand *operand = &job->operand[k];
  int is_output = k >= job->n_in, same = operand->dtype == operand->compute_dtype, linear = is_linear(job, k);
  int rows = has_rows(job, k) && job->tile_rank == 2 && tile_extent(job, 0) >= QN_ROW_WORTHWHILE;
  use_mover(operand, QN_PACKING_IN_PLACE, NULL);
  if (k < job->nest->n_positions) {
    operand->convert = NULL;
    operand->broadcast = 0;
    use_mover(operand, QN_PACKING_POSITION, job->position);
    return;
  }
  operand->convert = conversion(job, k);
  operand->broadcast = job->variant && job->variant->classes[k] == QN_CLASS_BROADCAST;
  if (is_output && job->streamed && linear)
    use_mover(operand, QN_PACKING_STREAM, qn_packs.stream);
  else if (operand->broadcast)
    operand->packing = same ? QN_PACKING_IN_PLACE : QN_PACKING_ONE;
  else if (same && (linear || (job->rows && has_rows(job, k))) && !(job->program && job->program->to_blocks >> k & 1))
    operand->packing = QN_PACKING_IN_PLACE;
  else if (!same && (linear || rows))
    operand->packing = QN_PACKING_CONVERT;
  else
    choose_move(job, k, is_transposed);
}

static int64_t round_up(int64_t bytes) { return (bytes + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE; }

/* Assigns each operand's offsets in the scratch; returns the bytes used. */
static int64_t lay_out(const qn_signature *signature, qn_job *job) {
  int64_t elements = 1, used = 0;
  for (int32_t j = 0; j < job->tile_rank; j++) elements *= tile_extent(job, j);
  for (int32_t k = 0; k < job->n_operands; k++) {
    qn_operand *operand = &job->operand[k];
    if (operand->packing == QN_PACKING_IN_PLACE) continue;
    int64_t items = operand->packing == QN_PACKING_ONE ? 1 : elements;
    operand->block = (uint16_t)used;
    used += round_up(items * operand->compute_size);
    if (operand->packing >= QN_PACKING_FILL && operand->convert) {
      operand->staging = (uint16_t)used;
      used += round_up(items * operand->size);
    } else {
      operand->staging = operand->block;
    }
    if (operand->packing == QN_PACKING_AT) {
      operand->table = (uint16_t)used;
      used += round_up(items * 4);
    }
    if (used > QN_SCRATCH) return used; /* too large: the caller tries smaller tiles */
  }
  job->items = (int32_t)elements;
  job->temps = (uint16_t)used;
  return used + signature->fixed_bytes + round_up(signature->temp_bytes * elements);
}

static void plan_blocks(const qn_signature *signature, qn_job *job) {
  int32_t other = job->streamed || !has_outputs(job) ? 0 : any_transposed_dim(job);
  job->path = QN_PATH_BLOCKS;
  int64_t largest = job->streamed && STREAM_BLOCK < QN_BLOCK ? STREAM_BLOCK : QN_BLOCK;
  if (other) largest = TRANSPOSED_ROW * transposed_rows(job);
  for (int64_t block = largest;; block /= 2) {
    if (other)
      choose_transposed_tiles(job, other, block);
    else
      choose_linear_tiles(job, block);
    job->rows = 0;
    job->rows = (uint8_t)are_rows_worthwhile(job, signature);
    job->variant = job->program ? NULL : block_variant(signature, job);
    for (int32_t k = 0; k < job->n_operands; k++) choose_packing(job, k, other != 0);
    if (lay_out(signature, job) <= QN_SCRATCH) break;
    qn_assert(block > 1);
  }
  if (job->program)
    job->isa = qn_isa_detect();
  else
    job->kernel = qn_job_kernel(job->variant, &job->isa);
}

/* ---- The choice ---- */

/* Caps estimates, since tensors without data may have any size. */
#define MANY_ELEMENTS ((int64_t)1 << 40)

/* The number of slices that the work is worth, by an estimate: memory traffic, the kernel, each element's packing or conversion. */
static int32_t count_slices(const qn_job *job, int heavy) {
  int64_t picoseconds = job->program ? job->program->picoseconds : heavy ? 1000 : 50;
  for (int32_t k = 0; k < job->n_operands; k++) {
    picoseconds += 20 * job->operand[k].size;
    if (job->path != QN_PATH_BLOCKS) continue;
    if (job->operand[k].packing > QN_PACKING_CONVERT) picoseconds += 250;
    if (job->operand[k].packing == QN_PACKING_CONVERT) picoseconds += 40;
  }
  const int64_t worth = min_i64(job->nest->n_elements, MANY_ELEMENTS) / 16 * picoseconds / 64 / QN_SLICE_NANOSECONDS;
  return worth <= 1 ? 1 : (int32_t)min_i64(worth, INT32_MAX);
}

/* Whether the outputs are too large for the cache and can be written past it, which saves reading their lines. Not in place: the
 * inputs have read them. Outputs must be contiguous over a tile or a piece, as within a row. */
static int is_streamed(const qn_job *job, int64_t n_heavy) {
  const qn_nest *nest = job->nest;
  int64_t bytes = 0, moved = 0;
  for (int32_t k = nest->n_positions; k < job->n_operands; k++) {
    if (!inner_stride(nest, k)) continue;
    bytes += job->operand[k].size;
    moved += (k < job->n_in ? 1 : 4) * job->operand[k].size;
  }
  if (min_i64(nest->n_elements, MANY_ELEMENTS) * bytes < QN_STREAM_BYTES || !has_outputs(job)) return 0;
  if (moved < 7 * n_heavy * job->operand[job->n_in].compute_size) return 0;
  for (int32_t o = job->n_in; o < job->n_operands; o++) {
    if (inner_stride(nest, o) != job->operand[o].size) return 0;
    for (int32_t k = nest->n_positions; k < job->n_in; k++)
      if (nest->ref[o].base && qn_ref_address(nest->ref[k]) == qn_ref_address(nest->ref[o])) return 0;
  }
  return !any_transposed_dim(job);
}

/* Sets the operands' dtypes and sizes. Returns whether all compute dtypes are the tensors' own. */
static int set_operands(const qn_signature *signature, const uint8_t *dtypes, const qn_nest *nest, int32_t n_out, qn_job *job) {
  int same = 1;
  job->nest = nest;
  job->n_operands = nest->n_operands;
  job->n_in = job->n_operands - n_out;
  job->rows = job->streamed = job->fetched = 0;
  job->computes = signature->computes;
  job->program = signature->program;
  job->position = signature->position;
  for (int32_t k = 0; k < job->n_operands; k++) {
    qn_operand *operand = &job->operand[k];
    operand->dtype = dtypes[k];
    operand->compute_dtype = signature->compute_dtypes[k];
    operand->size = qn_dtype_infos[operand->dtype].size;
    operand->compute_size = qn_dtype_infos[operand->compute_dtype].size;
    same &= operand->dtype == operand->compute_dtype;
  }
  return same;
}

/* Whether a direct kernel can write rows in pieces: no operand may be strided. */
static int may_stream(const qn_job *job, int n_strided) { return n_strided == 0 && (job->n_operands - job->n_in) * 2 * PIECE_BYTES <= QN_SCRATCH; }

/* Whether an input repeats a row. */
static int is_repeated(const qn_nest *nest, int32_t k) { return nest->rank > 1 && nest->stride[k][0] && !nest->stride[k][1]; }

/* Whether outputs go on from row to row, and rows are such that pieces may, too. */
static int are_rows_joined(const qn_job *job) {
  const qn_nest *nest = job->nest;
  int joined = nest->n[0] >= STREAM_JOINED;
  for (int32_t k = 0; k < job->n_in; k++) joined &= !is_repeated(nest, k) || nest->n[0] <= MOST_REPEATED;
  for (int32_t k = job->n_in; k < job->n_operands; k++)
    for (int32_t d = 1; d < nest->rank; d++) joined &= nest->stride[k][d] == nest->n[d - 1] * nest->stride[k][d - 1];
  return joined;
}

/* Whether the input is fetched ahead, or further than streaming does. */
static int is_fetched(const qn_job *job, int n_strided) {
  const int64_t size = job->operand[0].size;
  if (job->n_operands != 2 || job->n_in != 1 || n_strided || 2 * job->operand[1].size > size) return 0;
  return inner_stride(job->nest, 0) == size && job->nest->n[0] >= FETCHED_ROW / size;
}

/* Places the outputs' blocks one after another and sets the size of a piece. */
static void plan_pieces(qn_job *job) {
  uint8_t largest = 1;
  int n_read = job->nest->rank < 2 || job->nest->n[0] > MOST_REPEATED;
  for (int32_t k = 0; k < job->n_operands; k++) {
    qn_operand *operand = &job->operand[k];
    if (operand->size > largest) largest = operand->size;
    if (k < job->n_in) n_read += inner_stride(job->nest, k) && !is_repeated(job->nest, k);
    if (k < job->n_in) continue;
    use_mover(operand, QN_PACKING_STREAM, qn_packs.stream);
    operand->convert = NULL;
    operand->block = operand->staging = (uint16_t)((k - job->n_in) * 2 * PIECE_BYTES);
  }
  job->chunk[0] = (n_read > 1 ? 1 : 2) * PIECE_BYTES / largest;
}

void qn_job_plan(const qn_signature *signature, const uint8_t *dtypes, const qn_nest *nest, int32_t n_out, qn_job *job) {
  int same = set_operands(signature, dtypes, nest, n_out, job), n_strided = 0;
  job->streamed = (uint8_t)is_streamed(job, signature->n_heavy);
  job->path = QN_PATH_DIRECT;
  /* Not converted: the variants' dtypes fit, perhaps as bits. Else a variant may still be for exactly the tensors' dtypes. */
  if (same && !job->program) dtypes = signature->variants[0].dtypes;
  job->variant = job->program || nest->n_positions || n_out == 0 ? NULL : direct_variant(signature, dtypes, job, &n_strided);
  job->kernel = NULL;
  const int is_direct = job->variant && is_direct_worthwhile(job, job->variant, n_strided);
  if (nest->rank > 1 && nest->n[0] < STREAM_ROW && !(is_direct && may_stream(job, n_strided) && are_rows_joined(job))) job->streamed = 0;
  if (is_direct && (!job->streamed || may_stream(job, n_strided))) {
    job->kernel = qn_job_kernel(job->variant, &job->isa);
    job->fetched = (uint8_t)is_fetched(job, n_strided);
    if (job->streamed)
      plan_pieces(job);
    else if (job->fetched)
      job->chunk[0] = FETCHED_PIECE / job->operand[0].size;
  } else {
    plan_blocks(signature, job);
  }
  job->most_slices = count_slices(job, signature->heavy);
}
