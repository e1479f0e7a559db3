/* SPDX-License-Identifier: Apache-2.0
 *
 * row_job.h: the plan of a call that reduces, on the CPU: how rows are cut, which kernels run. A job is constant after it is made. */
#ifndef QN_ROW_JOB_H
#define QN_ROW_JOB_H

#include "core/cpu/job.h"
#include "core/row/row_nest.h"
#include "core/row/row_program.h"
#include "core/row/scan_op.h"

/* Bytes of a stage that scans, for each row: its carries and the last result. */
#define QN_ROW_CARRIES (QN_SCAN_CARRIES + QN_DTYPE_MAX_BYTES)

/* Bytes of a slice's scratch, and of that for wide tiles of columns. */
#define QN_ROW_SCRATCH 29696
#define QN_ROW_WIDE_SCRATCH 245760

typedef enum qn_row_path {
  QN_ROW_WHOLE,  /* tiles of whole rows, stage by stage */
  QN_ROW_BLOCKS, /* one row at a time, in blocks of chunks; nodes are joined on a stack */
  QN_ROW_COLUMNS /* elements as they lie, their kept dimension contiguous: one reduction, or stage by stage; lane by lane over many rows */
} qn_row_path;

typedef struct qn_row_job {
  const qn_row_program *program;
  const qn_nest *nest; /* borrowed; n_reduced, n_joined are set */
  int32_t n_in, n_out;
  uint8_t path;        /* qn_row_path */
  uint8_t is_kept;     /* the program's kept value is used: the stage `is_again` does not run, else the one before */
  uint8_t dtype[QN_ROW_MAX_VALUES], size[QN_ROW_MAX_VALUES]; /* of the tensors */
  uint8_t direct[QN_ROW_MAX_VALUES]; /* the tensor's elements are contiguous along the joined axes; of a reduced output, along the rows */
  int64_t count;       /* elements of a result */
  int64_t row;         /* elements of the joined axes */
  int64_t n_further;   /* elements of the further axes */
  int64_t rows;        /* WHOLE, BLOCKS: rows of a tile; COLUMNS: columns of one */
  int64_t block;       /* BLOCKS: elements of a block, a multiple of QN_ROW_CHUNK and a power of two times it, or all of the row */
  int64_t portion;     /* BLOCKS: 0, or the elements of a block that are computed at a time, where scratch is short */
  uint8_t may_widen;   /* qn_row_widen makes it quicker: COLUMNS, or BLOCKS and WHOLE in place of which it goes across */
  uint8_t has_parts;   /* a row may be cut in parts: BLOCKS, or WHOLE without scratch */
  uint8_t lanes;       /* COLUMNS: the lanes that are reduced at a time; 0: the columns are a further axis, `block` of them at a time */
  uint8_t folded;      /* COLUMNS: the same where the columns are a further axis; if there are several, `block` is all of it */
  uint8_t is_at_once;  /* COLUMNS: a kernel reduces all rows of a tile at once, */
  uint8_t is_narrow;   /* the reducer's for elements of the tensor's dtype */
  uint16_t piece;      /* COLUMNS: the rows that are converted at a time */
  int32_t n_levels;    /* BLOCKS, COLUMNS: the most nodes that wait at a time */
  int32_t most_slices;
  uint8_t is_across;   /* COLUMNS: stage by stage, with the kernels `across` */
  uint8_t as;          /* the same: the dtype of blocks of the tile, */
  uint16_t converted;  /* bit k: tensor k's elements are converted to or from one; */
  uint8_t lends;       /* the output whose block has elements that are reduced before the last stage, too; 0: there is none */
  qn_kernel *kernel[QN_ROW_MAX_STAGES];
  uint8_t fused[QN_ROW_MAX_STAGES]; /* the kernel combines its elements: they need no block */
  qn_kernel *inner[QN_ROW_MAX_REDUCES], *both[QN_ROW_MAX_REDUCES]; /* in the order of the stages' reductions */
  qn_kernel *narrow[QN_ROW_MAX_REDUCES]; /* reads the tensor's elements in place of converted ones; NULL: there is none */
  qn_kernel *scan[QN_ROW_MAX_STAGES]; /* of stages that scan */
} qn_row_job;

/* Whether operand k lies as a block of `dtype`: then no block is needed. */
static inline int qn_row_is_direct(const qn_row_job *job, int32_t k, uint8_t dtype) {
  return job->direct[k] && job->dtype[k] == dtype;
}

/* Bytes of scratch that its block takes for each element. */
static inline int32_t qn_row_bytes(const qn_row_job *job, int32_t k, uint8_t dtype) {
  if (k == QN_ROW_INDEX) return 8;
  if (qn_row_is_direct(job, k, dtype)) return 0;
  return qn_dtype_infos[dtype].size + (job->dtype[k] == dtype ? 0 : job->size[k]);
}

/* Plans a nest of row_nest.h with elements to write. dtypes: of the inputs, then of the outputs. The nest must outlive the job. */
quern_status qn_row_plan(const qn_row_program *program, const char *op, const uint8_t *dtypes, const qn_nest *nest, int32_t n_in,
                         int64_t count, qn_row_job *job);

/* Plans such a job again as COLUMNS, for QN_ROW_WIDE_SCRATCH bytes, in at least `n_slices` tiles where there are enough columns. */
void qn_row_widen(qn_row_job *job, int32_t n_slices);

#endif
