/* SPDX-License-Identifier: Apache-2.0
 *
 * row_load.c: see row_load.h. */
#include "core/row/engine/row_load.h"

#include <string.h>

#include "core/base/status.h"

#define LINE 64 /* bytes of a line of the cache */

/* The kernel that converts between two dtypes; NULL: they have the same items. */
static qn_kernel *block_conversion(uint8_t from, uint8_t to) {
  const qn_variant *variant = NULL;
  if (from == to) return NULL;
  if (qn_dtype_infos[from].compute == to) variant = qn_packs.widen[from];
  if (qn_dtype_infos[to].compute == from) variant = qn_packs.narrow[to];
  if (!variant) variant = qn_packs.convert[from][to];
  qn_assert(variant);
  return qn_job_kernel(variant, NULL);
}

static void convert_block(qn_kernel *kernel, uint8_t from_size, uint8_t to_size, char *from, char *to, int64_t count) {
  char *const ptr[2] = {from, to};
  const int64_t stride[2][2] = {{from_size, 0}, {to_size, 0}}, n[3] = {count, 1, 0};
  kernel(ptr, stride, n, NULL);
}

void qn_row_prefetch(const char *at, int64_t step, int64_t bytes, int64_t rows) {
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t b = 0; b < bytes; b += LINE) __builtin_prefetch((const char *)((uintptr_t)at + (uintptr_t)(r * step + b)));
  }
}

void qn_row_convert(uint8_t from, uint8_t to, char *at, int64_t step, char *block, int64_t block_step, int64_t count, int64_t rows) {
  qn_kernel *kernel = block_conversion(from, to);
  const uint8_t from_size = qn_dtype_infos[from].size, to_size = qn_dtype_infos[to].size;
  if (step == count * from_size && block_step == count * to_size) {
    convert_block(kernel, from_size, to_size, at, block, count * rows);
    return;
  }
  for (int64_t r = 0; r < rows; r++) convert_block(kernel, from_size, to_size, qn_row_moved(at, r * step), qn_row_moved(block, r * block_step), count);
}

/* A block that is transposed takes part of a line of the cache in each row, rows being far apart. Prefetches what is behind that part:
 * the next tile takes it. */
static void prefetch_next(const char *at, int64_t step, int64_t rows, int is_load) {
  for (int64_t i = 0; i < rows; i++) {
    const char *line = (const char *)((uintptr_t)at + (uintptr_t)(i * step));
    if (is_load)
      __builtin_prefetch(line, 0, 2);
    else
      __builtin_prefetch(line, 1, 2);
  }
}

/* Moves n[0] x n[1] items. step: of the tensor; the block is dense along n[0], its rows lie `row_step` bytes apart. */
static void move_items(uint8_t size, char *tensor, const int64_t step[2], char *block, int64_t row_step, const int64_t extent[2], int is_load) {
  const int32_t log2 = __builtin_ctz(size);
  const int64_t dense[2] = {size, row_step};
  if (step[0] == size) {
    for (int64_t j = 0; j < extent[1]; j++) {
      char *at = qn_row_moved(tensor, j * step[1]), *row = block + j * dense[1];
      memcpy(is_load ? row : at, is_load ? at : row, (size_t)(extent[0] * size));
    }
    return;
  }
  if (!is_load && extent[1] > 1 && step[1] == size) { /* rows that lie beside each other */
    char *const turned[2] = {block, tensor};
    const int64_t steps[2][2] = {{dense[1], size}, {size, step[0]}}, items[3] = {extent[1], extent[0], 0};
    if (extent[1] * size <= LINE) prefetch_next(qn_row_moved(tensor, LINE), step[0], extent[0], 0);
    qn_job_kernel(qn_packs.transpose[log2], NULL)(turned, steps, items, NULL);
    return;
  }
  const qn_variant *variant = is_load ? qn_packs.gather[log2] : qn_packs.scatter[log2];
  if (is_load && step[0] == 0) variant = qn_packs.fill[log2];
  if (is_load && extent[1] > 1 && step[1] == size && step[0] != size) variant = qn_packs.transpose[log2];
  if (variant == qn_packs.transpose[log2] && extent[1] * size <= LINE) prefetch_next(qn_row_moved(tensor, LINE), step[0], extent[0], 1);
  char *const ptr[2] = {is_load ? tensor : block, is_load ? block : tensor};
  int64_t stride[2][2] = {{step[0], step[1]}, {dense[0], dense[1]}};
  if (!is_load) {
    stride[0][0] = dense[0], stride[0][1] = dense[1];
    stride[1][0] = step[0], stride[1][1] = step[1];
  }
  const int64_t n[3] = {extent[0], extent[1], 0};
  qn_job_kernel(variant, NULL)(ptr, (const int64_t(*)[2])stride, n, NULL);
}

/* Moves the items [first, first + count) of one row. Its dimensions are the nest's first n_joined, d the outermost. */
static void move_row(const qn_row_job *job, int32_t k, int32_t d, char *at, int64_t first, int64_t count, char *block, int is_load) {
  const qn_nest *nest = job->nest;
  const uint8_t size = job->size[k];
  if (d <= 0) {
    const int64_t step[2] = {d < 0 ? size : nest->stride[k][0], 0}, extent[2] = {count, 1};
    move_items(size, qn_row_moved(at, first * step[0]), step, block, size * count, extent, is_load);
    return;
  }
  int64_t inner = 1;
  for (int32_t i = 0; i < d; i++) inner *= nest->n[i];
  while (count > 0) {
    const int64_t index = first / inner, within = first - index * inner;
    int64_t part = inner - within;
    if (within == 0 && d == 1 && count >= inner) { /* whole rows of two dimensions at once */
      const int64_t whole = count / inner, step[2] = {nest->stride[k][0], nest->stride[k][1]}, extent[2] = {inner, whole};
      move_items(size, qn_row_moved(at, index * step[1]), step, block, size * inner, extent, is_load);
      part = whole * inner;
    } else {
      if (part > count) part = count;
      move_row(job, k, d - 1, qn_row_moved(at, index * nest->stride[k][d]), within, part, block, is_load);
    }
    first += part;
    count -= part;
    block += part * size;
  }
}

static void move_part(const qn_row_job *job, int32_t k, const qn_row_part *part, char *block, int is_load) {
  const qn_nest *nest = job->nest;
  const uint8_t size = job->size[k];
  if (nest->n_joined <= 1 && part->rows > 1) {
    const int64_t inner = nest->n_joined ? nest->stride[k][0] : size;
    const int64_t step[2] = {inner, part->step}, extent[2] = {part->count, part->rows};
    move_items(size, qn_row_moved(part->at, part->first * inner), step, block, size * part->count, extent, is_load);
    return;
  }
  if (nest->n_joined == 2 && part->rows > 1) { /* what lies at one index of the outer dimension, of all rows */
    const int64_t inner = nest->n[0], step[2] = {nest->stride[k][0], part->step};
    for (int64_t done = 0, n; done < part->count; done += n) {
      const int64_t index = (part->first + done) / inner, within = part->first + done - index * inner;
      n = inner - within < part->count - done ? inner - within : part->count - done;
      const int64_t extent[2] = {n, part->rows};
      char *const at = qn_row_moved(part->at, index * nest->stride[k][1] + within * step[0]);
      const char *const next = qn_row_moved(part->at, (index + 1) * nest->stride[k][1]);
      if (is_load && step[0] == size && within + n == inner) qn_row_prefetch(next, part->step, inner * size, part->rows);
      move_items(size, at, step, block + done * size, size * part->count, extent, is_load);
    }
    return;
  }
  for (int64_t j = 0; j < part->rows; j++)
    move_row(job, k, (int32_t)nest->n_joined - 1, qn_row_moved(part->at, j * part->step), part->first, part->count,
             block + j * part->count * size, is_load);
}

/* Whether the elements of a part lie without gaps, so that they are converted without staging. */
static int is_dense(const qn_row_job *job, int32_t k, const qn_row_part *part) {
  return job->direct[k] && (part->rows == 1 || part->step == part->count * job->size[k]);
}

void qn_row_load(const qn_row_job *job, int32_t k, uint8_t dtype, const qn_row_part *part, char *block, char *staging) {
  const uint8_t size = job->size[k], to_size = qn_dtype_infos[dtype].size;
  qn_kernel *kernel = block_conversion(job->dtype[k], dtype);
  if (!kernel) {
    move_part(job, k, part, block, 1);
    return;
  }
  if (is_dense(job, k, part)) {
    convert_block(kernel, size, to_size, qn_row_moved(part->at, part->first * size), block, part->count * part->rows);
    return;
  }
  move_part(job, k, part, staging, 1);
  convert_block(kernel, size, to_size, staging, block, part->count * part->rows);
}

void qn_row_store(const qn_row_job *job, int32_t k, uint8_t dtype, const qn_row_part *part, char *block, char *staging) {
  const uint8_t size = job->size[k], from_size = qn_dtype_infos[dtype].size;
  qn_kernel *kernel = block_conversion(dtype, job->dtype[k]);
  if (kernel && is_dense(job, k, part)) {
    convert_block(kernel, from_size, size, block, qn_row_moved(part->at, part->first * size), part->count * part->rows);
    return;
  }
  if (kernel) {
    convert_block(kernel, from_size, size, block, staging, part->count * part->rows);
    block = staging;
  }
  move_part(job, k, part, block, 0);
}

void qn_row_store_values(const qn_row_job *job, int32_t k, uint8_t dtype, char *at, int64_t step, int64_t rows, char *values,
                         char *staging) {
  const uint8_t size = job->size[k];
  qn_kernel *kernel = block_conversion(dtype, job->dtype[k]);
  const int is_dense_output = rows == 1 || step == size;
  if (kernel) {
    convert_block(kernel, qn_dtype_infos[dtype].size, size, values, is_dense_output ? at : staging, rows);
    if (is_dense_output) return;
    values = staging;
  }
  if (is_dense_output) {
    memcpy(at, values, (size_t)rows * size);
    return;
  }
  const int64_t steps[2] = {step, 0}, extent[2] = {rows, 1};
  move_items(size, at, steps, values, size * rows, extent, 0);
}
