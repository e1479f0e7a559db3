/* pack.h: items between a box of a tensor and an L1 block, either way: copied, gathered, scattered, transposed, spread,
 * streamed, converted. Knows nests and boxes, no ops. */
#ifndef QN_PACK_H
#define QN_PACK_H

#include "core/cpu/job.h"

/* The box at hand. A block holds its items densely, the first dimension innermost. */
typedef struct qn_box {
  int32_t rank;
  const int32_t *dim; /* [rank], dimensions of the nest; job->box_dim */
  int64_t row;        /* items along the first dimension, 1 if there is none */
  int64_t count;      /* items in all */
  int64_t n[QUERN_MAX_NDIM]; /* [rank] */
} qn_box;

/* Writes the byte offsets of the box's items for an operand of way AT to its table. stride: the operand's row of the nest.
 * An offset depends on the box's inner extents only, so the table of a full box serves one that is shorter along its last
 * dimension. */
void qn_pack_index(const qn_operand *operand, const int64_t *stride, const qn_box *box, char *area);

/* Fills the operand's block from `from`, the box's first item in the tensor. Not for IN_PLACE. */
void qn_pack_load(const qn_operand *operand, const int64_t *stride, const qn_box *box, const char *from, char *area);

/* The way back: from the operand's block to `to`. */
void qn_pack_store(const qn_operand *operand, const int64_t *stride, const qn_box *box, char *area, char *to);

#endif
