/* SPDX-License-Identifier: Apache-2.0
 *
 * job.h: how one loop nest is going to be run: which kernel, or the kernels of which program, straight over the tensors or
 * over tiles that fit L1, how each operand gets into a tile and out of it, in how many slices at most. Decided once; a job
 * is only read afterwards. */
#ifndef QN_JOB_H
#define QN_JOB_H

#include "core/op/tile_program.h"
#include "core/op/resolve.h"
#include "core/tensor/tensor.h"

/* The most elements of a tile (but for transposed ones). Large enough that what a tile costs does not count (about 25 ns), small
 * enough that the blocks of a few operands stay in L1 together. */
#ifndef QN_BLOCK
#define QN_BLOCK 1024
#endif
/* Rows so long are run over one by one; shorter ones, down to the other, by a kernel that nests two loops (rank 2). */
#define QN_CALL_WORTHWHILE 64
#define QN_ROW_WORTHWHILE 16

/* The bytes that all blocks of a slice take on its stack: a call is to need less than 32 KB of it, with everything. */
#define QN_SCRATCH 14336

typedef enum qn_path {
  QN_PATH_DIRECT, /* the kernel runs over the tensors, or, streamed, from them into blocks */
  QN_PATH_BLOCKS  /* the kernel runs over tiles: operands in L1 blocks, or in place where they lie as it wants them */
} qn_path;

/* How an operand gets into a block, or out of one. */
typedef enum qn_packing {
  QN_PACKING_IN_PLACE, /* not at all: the kernel has the tensor itself */
  QN_PACKING_CONVERT,  /* contiguous rows, another dtype: converted between tensor and block */
  QN_PACKING_ONE,      /* one value for the whole tile, another dtype: converted, and a broadcast operand of the kernel */
  QN_PACKING_FILL,     /* one value for the whole tile: spread over the block */
  QN_PACKING_ROWS,     /* contiguous rows: copied */
  QN_PACKING_STRIDED,  /* `mover`, two dimensions at a time: gathered, scattered, transposed, rows of one value each */
  QN_PACKING_AT,       /* `mover` by a table of byte offsets: small inner dimensions */
  QN_PACKING_POSITION, /* what has no memory, the positions: written to the block by `move` */
  QN_PACKING_STREAM    /* an output, contiguous over the tile or piece: copied past the cache */
} qn_packing;

/* One operand; of DIRECT and streamed only where an output's block is and how it is moved. FILL to STREAM, but for POSITION, move
 * items of the tensor's dtype; where the kernel's differs a conversion follows (inputs) or precedes (outputs), between `staging`
 * and `block`. Offsets are into the slice's scratch. */
typedef struct qn_operand {
  uint8_t dtype, compute_dtype;     /* as the tensor has it, as the kernel takes or gives it */
  uint8_t size, compute_size; /* bytes an item of each */
  uint8_t packing; /* qn_packing */
  uint8_t broadcast;        /* the kernel takes it with inner stride 0 */
  uint16_t block, staging, table;
  qn_kernel *convert;       /* from `dtype` to `compute_dtype` (inputs), the other way (outputs); NULL: they are one */
  qn_kernel *move;          /* for STRIDED, AT, FILL, POSITION, STREAM */
  const qn_variant *mover;  /* its name */
} qn_operand;

typedef struct qn_job {
  int32_t n_in, n_operands;
  uint8_t path;
  uint8_t rows;      /* BLOCKS: the kernel runs over the tile as rows of its first dimension; else as one long row */
  uint8_t streamed;  /* outputs go past the cache; DIRECT: the kernel writes to blocks, a piece of a row at a time */
  uint8_t computes;  /* as in qn_signature */
  qn_isa isa;        /* the level of `kernel` */
  const qn_variant *variant;
  qn_kernel *kernel;
  /* An expression that is interpreted: instead of one kernel, over tiles. */
  const qn_tile_program *program;
  uint16_t ones, temps; /* where in the scratch its registers lie, or signature->temp_bytes of each element of a tile */
  int32_t items;        /* elements that a temporary has room for */
  int32_t most_slices; /* how many the work is worth; a run has fewer where there are fewer threads */
  /* BLOCKS: the nest is cut into tiles of chunk[d] along dimension d, which are walked along order[0] first.
   * DIRECT and streamed: rows are cut into pieces of chunk[0]. */
  int32_t tile_rank;  /* how many dimensions have a chunk over 1 */
  int32_t tile_dim[QUERN_MAX_NDIM]; /* which, innermost first */
  int32_t order[QUERN_MAX_NDIM];
  int64_t chunk[QUERN_MAX_NDIM];
  const qn_variant *position; /* as in qn_signature */
  qn_operand operand[QN_MAX_OPERANDS];
  const qn_nest *nest; /* borrowed */
} qn_job;

/* Decides all of it for a nest that is normalised, has at least one element, and stays as long as the job. dtypes: of the
 * operands; those of positions have the bytes of theirs for size. Without outputs (n_out 0) the job is over blocks, for who walks
 * them by core/cpu/tiles.h: tiles follow one another in the order of the nest's elements, each a run of them. */
void qn_job_plan(const qn_signature *signature, const uint8_t *dtypes, const qn_nest *nest, int32_t n_out, qn_job *job);

/* The best build of a variant for this machine, NULL if it runs none of them; *isa (may be NULL): its level. */
qn_kernel *qn_job_kernel(const qn_variant *variant, qn_isa *isa);

#endif
