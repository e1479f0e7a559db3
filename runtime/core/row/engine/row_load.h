/* SPDX-License-Identifier: Apache-2.0
 *
 * row_load.h: parts of rows between tensors and blocks in L1, where they are contiguous and in the dtype that kernels compute in. */
#ifndef QN_ROW_LOAD_H
#define QN_ROW_LOAD_H

#include "core/row/row_job.h"

/* Part of some rows of a tensor: elements [first, first + count) of the joined axes. */
typedef struct qn_row_part {
  char *at;       /* element 0 of the first row */
  int64_t step;   /* bytes from row to row */
  int64_t first, count, rows;
} qn_row_part;

/* Copies a part into `block`, [rows][count] elements of `dtype`. staging: room for as many of the tensor's, if its dtype differs. */
void qn_row_load(const qn_row_job *job, int32_t k, uint8_t dtype, const qn_row_part *part, char *block, char *staging);

/* Copies a block to a part of an output. */
void qn_row_store(const qn_row_job *job, int32_t k, uint8_t dtype, const qn_row_part *part, char *block, char *staging);

/* Converts `rows` rows of `count` elements, `step` bytes apart, to others. The dtypes differ. */
void qn_row_convert(uint8_t from, uint8_t to, char *at, int64_t step, char *block, int64_t block_step, int64_t count, int64_t rows);

/* Prefetches `rows` rows of `bytes` bytes, `step` bytes apart. */
void qn_row_prefetch(const char *at, int64_t step, int64_t bytes, int64_t rows);

/* Stores a value of each of `rows` rows in a reduced output. */
void qn_row_store_values(const qn_row_job *job, int32_t k, uint8_t dtype, char *at, int64_t step, int64_t rows, char *values,
                         char *staging);

#endif
