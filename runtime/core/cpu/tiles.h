/* SPDX-License-Identifier: Apache-2.0
 *
 * tiles.h: iteration over the tiles of a job over blocks: the start of each, and the packing of its inputs. For the engine and
 * for kinds of op that run their calls themselves. */
#ifndef QN_TILES_H
#define QN_TILES_H

#include "core/cpu/pack.h"

/* A job's nest, cut into tiles. */
typedef struct qn_tiles {
  const qn_job *job;
  const qn_ref *ref; /* the operands' first items */
  int64_t skew;      /* distance, in items, of tile boundaries of dimension 0 before multiples of its chunk */
} qn_tiles;

/* The start of part `i` of `n` of [0, total), cut at multiples of `multiple`. */
static inline int64_t qn_tiles_part(int64_t total, int64_t i, int64_t n, int64_t multiple) {
  int64_t units = (total + multiple - 1) / multiple;
  int64_t start = (units / n * i + units % n * i / n) * multiple;
  return start < total ? start : total;
}

/* Adds bytes to a pointer, as integers: the pointer of positions is a number, the first position. */
static inline char *qn_tiles_moved(char *ptr, int64_t bytes) { return (char *)((uintptr_t)ptr + (uintptr_t)bytes); }

/* The current contents of a block: an operand that is broadcast over the outer dimensions is packed once for many tiles. */
typedef struct qn_tile_held {
  const char *from;
  int64_t row, count;
} qn_tile_held;

/* The current tile of a slice: its index in the grid, and its first item in every dimension and operand; its blocks. */
typedef struct qn_tile_cursor {
  int64_t at[QUERN_MAX_NDIM];
  int64_t begin[QUERN_MAX_NDIM];
  char *ptr[QN_MAX_OPERANDS];
  qn_tile_held held[QN_MAX_OPERANDS];
  _Alignas(64) char scratch[QN_SCRATCH];
} qn_tile_cursor;

static inline int64_t qn_tiles_skew(const qn_tiles *tiles, int32_t d) { return d == 0 ? tiles->skew : 0; }

static inline int64_t qn_tiles_along(const qn_tiles *tiles, int32_t d) {
  const qn_job *job = tiles->job;
  return (job->nest->n[d] + qn_tiles_skew(tiles, d) + job->chunk[d] - 1) / job->chunk[d];
}

static inline int64_t qn_tiles_begin(const qn_tiles *tiles, int32_t d, int64_t at) {
  int64_t begin = at * tiles->job->chunk[d] - qn_tiles_skew(tiles, d);
  return begin > 0 ? begin : 0;
}

static inline int64_t qn_tiles_end(const qn_tiles *tiles, int32_t d, int64_t at) {
  int64_t end = (at + 1) * tiles->job->chunk[d] - qn_tiles_skew(tiles, d), n = tiles->job->nest->n[d];
  return end < n ? end : n;
}

static inline void qn_tiles_set(const qn_tiles *tiles, qn_tile_cursor *cursor, int64_t tile) {
  const qn_nest *nest = tiles->job->nest;
  for (int32_t k = 0; k < nest->n_operands; k++) cursor->ptr[k] = qn_ref_address(tiles->ref[k]);
  for (int32_t i = 0; i < nest->rank; i++) {
    int32_t d = tiles->job->order[i];
    int64_t count = qn_tiles_along(tiles, d);
    cursor->at[d] = tile % count;
    tile /= count;
    cursor->begin[d] = qn_tiles_begin(tiles, d, cursor->at[d]);
    for (int32_t k = 0; k < nest->n_operands; k++)
      cursor->ptr[k] = qn_tiles_moved(cursor->ptr[k], cursor->begin[d] * nest->stride[k][d]);
  }
}

static inline void qn_tiles_next(const qn_tiles *tiles, qn_tile_cursor *cursor) {
  const qn_nest *nest = tiles->job->nest;
  for (int32_t i = 0; i < nest->rank; i++) {
    int32_t d = tiles->job->order[i];
    int wraps = qn_tiles_end(tiles, d, cursor->at[d]) == nest->n[d];
    cursor->at[d] = wraps ? 0 : cursor->at[d] + 1;
    int64_t begin = qn_tiles_begin(tiles, d, cursor->at[d]), moved = begin - cursor->begin[d];
    cursor->begin[d] = begin;
    if (moved)
      for (int32_t k = 0; k < nest->n_operands; k++) cursor->ptr[k] = qn_tiles_moved(cursor->ptr[k], moved * nest->stride[k][d]);
    if (!wraps) return;
  }
}

static inline void qn_tiles_measure(const qn_tiles *tiles, const qn_tile_cursor *cursor, qn_tile *tile) {
  tile->count = 1;
  for (int32_t j = 0; j < tile->rank; j++) {
    int32_t d = tile->dim[j];
    tile->n[j] = qn_tiles_end(tiles, d, cursor->at[d]) - cursor->begin[d];
    tile->count *= tile->n[j];
  }
  tile->row = tile->rank ? tile->n[0] : 1;
}

/* Packs the first n_in inputs of a tile, unless their blocks hold it already. */
static inline void qn_tiles_load(const qn_tiles *tiles, int32_t n_in, const qn_tile_cursor *cursor, const qn_tile *tile,
                                 qn_tile_held *held, char *scratch) {
  const qn_job *job = tiles->job;
  for (int32_t k = 0; k < n_in; k++) {
    const qn_operand *operand = &job->operand[k];
    if (operand->packing == QN_PACKING_IN_PLACE) continue;
    const char *from = cursor->ptr[k];
    /* A tile that is shorter along its last dimension has the first items of a longer one. */
    if (held[k].from == from && held[k].row == tile->row && held[k].count >= tile->count) continue;
    qn_pack_load(operand, job->nest->stride[k], tile, from, scratch);
    held[k].from = from;
    held[k].row = tile->row;
    held[k].count = tile->count;
  }
}

/* Prepares for the first tile of a slice: the size of a full tile, empty blocks, tables of offsets. */
static inline void qn_tiles_start(const qn_job *job, qn_tile *tile, qn_tile_held *held, char *scratch) {
  tile->rank = job->tile_rank;
  tile->dim = job->tile_dim;
  for (int32_t j = 0; j < tile->rank; j++) tile->n[j] = job->chunk[tile->dim[j]];
  tile->row = tile->rank ? tile->n[0] : 1;
  for (int32_t k = 0; k < job->n_operands; k++) {
    held[k] = (qn_tile_held){.count = 0};
    if (job->operand[k].packing == QN_PACKING_AT) qn_pack_index(&job->operand[k], job->nest->stride[k], tile, scratch);
  }
}

static inline int64_t qn_tiles_count(const qn_tiles *tiles) {
  int64_t n = 1;
  for (int32_t d = 0; d < tiles->job->nest->rank; d++) n *= qn_tiles_along(tiles, d);
  return n;
}

#endif
