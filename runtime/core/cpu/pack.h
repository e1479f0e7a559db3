/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.h: the packing of a tile of a tensor into an L1 block and back: copies, gathers, scatters, transposes, fills,
 * streams, conversions. Knows nests and tiles, no ops. */
#ifndef QN_PACK_H
#define QN_PACK_H

#include "core/cpu/job.h"

/* The current tile. A block holds its items densely, the first dimension innermost. */
typedef struct qn_tile {
  int32_t rank;
  const int32_t *dim; /* [rank], dimensions of the nest; job->tile_dim */
  int64_t row;        /* items along the first dimension, 1 if there is none */
  int64_t count;      /* items in all */
  int64_t n[QUERN_MAX_NDIM]; /* [rank] */
} qn_tile;

/* Writes the byte offsets of the tile's items to the table of an operand packed by AT. stride: the operand's row of the nest.
 * An offset depends on the tile's inner extents only, so the table of a full tile also serves a tile that is shorter along its
 * last dimension. */
void qn_pack_index(const qn_operand *operand, const int64_t *stride, const qn_tile *tile, char *scratch);

/* Fills the operand's block from `from`, the tile's first item in the tensor. Not for IN_PLACE. */
void qn_pack_load(const qn_operand *operand, const int64_t *stride, const qn_tile *tile, const char *from, char *scratch);

/* Unpacks the operand's block to `to`, the tile's first item in the tensor. */
void qn_pack_store(const qn_operand *operand, const int64_t *stride, const qn_tile *tile, char *scratch, char *to);

#endif
