/* SPDX-License-Identifier: Apache-2.0
 *
 * job.h: the plan of one loop nest: its kernel or program, direct or over tiles that fit L1, the packing of each operand, and
 * the most slices. A job is constant after it is made. */
#ifndef QN_JOB_H
#define QN_JOB_H

#include "core/op/resolve.h"
#include "core/tensor/tensor.h"

/* The most elements of a tile, except transposed ones. Large enough to amortise a tile's overhead of about 25 ns, small enough
 * that the blocks of a few operands fit L1 together. */
#ifndef QN_BLOCK
#define QN_BLOCK 1024
#endif
/* The least row length for one kernel call a row (CALL), and for a kernel of rank 2 over all rows (ROW). */
#define QN_CALL_WORTHWHILE 64
#define QN_ROW_WORTHWHILE 16

/* Bytes of a slice's scratch. */
#define QN_SCRATCH 14336

typedef enum qn_path {
  QN_PATH_DIRECT, /* the kernel runs over the tensors, or, streamed, from them into blocks */
  QN_PATH_BLOCKS  /* the kernel runs over tiles: operands in L1 blocks, or in place where their layout fits */
} qn_path;

/* How an operand is packed into a block, or unpacked from one. */
typedef enum qn_packing {
  QN_PACKING_IN_PLACE, /* not packed: the kernel uses the tensor itself */
  QN_PACKING_CONVERT,  /* contiguous rows, another dtype: converted between tensor and block */
  QN_PACKING_ONE,      /* one value for the whole tile, another dtype: converted, and a broadcast operand of the kernel */
  QN_PACKING_FILL,     /* one value for the whole tile: spread over the block */
  QN_PACKING_ROWS,     /* contiguous rows: copied */
  QN_PACKING_STRIDED,  /* by `move`, two dimensions at a time: gathered, scattered, transposed, rows of one value each */
  QN_PACKING_AT,       /* by `move`, with a table of byte offsets: small inner dimensions */
  QN_PACKING_POSITION, /* the positions, which are in no memory: written to the block by `move` */
  QN_PACKING_STREAM    /* an output, contiguous over the tile or piece: copied past the cache */
} qn_packing;

/* The packing of one operand; for DIRECT and streamed, only outputs' `block`, `staging` and `move` are used. FILL to STREAM, except
 * POSITION, move items of the tensor's dtype; if the kernel's differs, a conversion between `staging` and `block` follows
 * (inputs) or precedes (outputs). Offsets are into the slice's scratch. */
typedef struct qn_operand {
  uint8_t dtype, compute_dtype;     /* of the tensor; of the kernel's operand */
  uint8_t size, compute_size; /* bytes an item of each */
  uint8_t packing; /* qn_packing */
  uint8_t broadcast;        /* the kernel takes it with inner stride 0 */
  uint16_t block, staging, table;
  qn_kernel *convert;       /* from `dtype` to `compute_dtype` (inputs) or back (outputs); NULL: they are the same */
  qn_kernel *move;          /* for STRIDED, AT, FILL, POSITION, STREAM */
  const qn_variant *mover;  /* the variant of `move`, for its name */
} qn_operand;

typedef struct qn_job {
  int32_t n_in, n_operands;
  uint8_t path;
  uint8_t rows;      /* BLOCKS: 1: the kernel runs over the tile row by row, along its first dimension; 0: as one long row */
  uint8_t streamed;  /* outputs go past the cache; DIRECT: the kernel writes to blocks, a piece of a row at a time */
  uint8_t fetched;   /* DIRECT: the input is fetched ahead, a piece of a row at a time */
  uint8_t computes;  /* as in qn_signature */
  qn_isa isa;        /* the level of `kernel` */
  const qn_variant *variant;
  qn_kernel *kernel;
  const qn_tile_program *program; /* as in qn_signature */
  uint16_t temps;       /* offset in the scratch of a tile's temporaries */
  int32_t items;        /* elements in a temporary */
  int32_t most_slices; /* that the work is worth, half as many if threads must be woken; a run has no more than there are threads */
  /* BLOCKS: the nest is cut into tiles of chunk[d] along dimension d, which are walked along order[0] first.
   * DIRECT and streamed or fetched: rows are cut into pieces of chunk[0]. */
  int32_t tile_rank;  /* the number of dimensions with a chunk over 1 */
  int32_t tile_dim[QUERN_MAX_NDIM]; /* these dimensions, innermost first */
  int32_t order[QUERN_MAX_NDIM];
  int64_t chunk[QUERN_MAX_NDIM];
  const qn_variant *position; /* as in qn_signature */
  qn_operand operand[QN_MAX_OPERANDS];
  const qn_nest *nest; /* borrowed */
} qn_job;

/* Plans a normalised nest of at least one element, which must outlive the job. dtypes: of the operands; that of positions has
 * their item size. Without outputs (n_out 0) the job is over blocks, for kinds that walk its tiles by core/cpu/tiles.h: the
 * tiles are consecutive runs of elements in the order of the nest. */
void qn_job_plan(const qn_signature *signature, const uint8_t *dtypes, const qn_nest *nest, int32_t n_out, qn_job *job);

/* The best build of a variant for this machine; NULL if the machine runs none. *isa (may be NULL): its level. */
qn_kernel *qn_job_kernel(const qn_variant *variant, qn_isa *isa);

#endif
