/* SPDX-License-Identifier: Apache-2.0
 *
 * pack.c: the packing of tiles into blocks and back. See pack.h. */
#include "core/cpu/pack.h"

#include <string.h>

/* In this file `far` is a tile in a tensor, `near` a dense block. */
static int64_t stride_along(const qn_tile *tile, const int64_t *stride, int32_t j) { return j < tile->rank ? stride[tile->dim[j]] : 0; }
static int64_t extent_along(const qn_tile *tile, int32_t j) { return j < tile->rank ? tile->n[j] : 1; }

/* Runs a kernel of two operands over one row. */
static void run_row(qn_kernel *kernel, const char *from, int64_t from_size, char *to, int64_t to_size, int64_t n) {
  char *const ptr[2] = {(char *)(uintptr_t)from, to};
  const int64_t stride[2][2] = {{from_size, n * from_size}, {to_size, n * to_size}};
  const int64_t extent[3] = {n, 1, 0};
  kernel(ptr, stride, extent, NULL);
}

/* Converts between tensor and block row by row, or at once if the rows are adjacent. far_size, near_size: bytes an item
 * of `far` and of `near`. */
static void convert_rows(qn_kernel *kernel, const qn_tile *tile, const int64_t *stride, char *far, int64_t far_size, char *near,
                         int64_t near_size, int is_store) {
  int64_t row = tile->row, n_rows = 1, step = stride_along(tile, stride, 1);
  if (tile->rank == 2 && step != row * far_size)
    n_rows = tile->n[1];
  else
    row = tile->count; /* tiles of more dimensions are converted where they are linear only */
  for (int64_t i = 0; i < n_rows; i++, far += step, near += row * near_size)
    run_row(kernel, is_store ? near : far, is_store ? near_size : far_size, is_store ? far : near, is_store ? far_size : near_size, row);
}

/* An index in the outer dimensions of a tile, and its offset in the tensor. */
typedef struct row_odometer {
  int64_t offset;
  int64_t at[QUERN_MAX_NDIM];
} row_odometer;

static void odometer_start(row_odometer *odometer, const qn_tile *tile) {
  odometer->offset = 0;
  for (int32_t j = 0; j < tile->rank; j++) odometer->at[j] = 0;
}

/* Increments the index, in the dimensions from `first` up; returns 0 after the last. */
static int odometer_next(row_odometer *odometer, const qn_tile *tile, const int64_t *stride, int32_t first) {
  for (int32_t j = first; j < tile->rank; j++) {
    int64_t step = stride[tile->dim[j]];
    if (++odometer->at[j] < tile->n[j]) {
      odometer->offset += step;
      return 1;
    }
    odometer->at[j] = 0;
    odometer->offset -= step * (tile->n[j] - 1);
  }
  return 0;
}

static void copy_rows(const qn_tile *tile, const int64_t *stride, char *far, char *near, int64_t size, int is_store) {
  size_t bytes = (size_t)(tile->row * size);
  row_odometer rows;
  odometer_start(&rows, tile);
  do {
    char *row = far + rows.offset;
    memcpy(is_store ? row : near, is_store ? near : row, bytes);
    near += bytes;
  } while (odometer_next(&rows, tile, stride, 1));
}

/* The kernel's parameter is the address of `far` as a number: that is the first position, for a kernel that writes positions. */
static void move_strided(qn_kernel *kernel, const qn_tile *tile, const int64_t *stride, char *far, char *near, int64_t size,
                         int is_store) {
  const int64_t extent[3] = {tile->row, extent_along(tile, 1), 0};
  const int64_t far_stride[2] = {stride_along(tile, stride, 0), stride_along(tile, stride, 1)};
  const int64_t near_stride[2] = {size, tile->row * size};
  const int64_t strides[2][2] = {{is_store ? near_stride[0] : far_stride[0], is_store ? near_stride[1] : far_stride[1]},
                                 {is_store ? far_stride[0] : near_stride[0], is_store ? far_stride[1] : near_stride[1]}};
  row_odometer parts;
  odometer_start(&parts, tile);
  do {
    const uintptr_t at = (uintptr_t)far + (uintptr_t)parts.offset;
    char *const part = (char *)at, *const ptr[2] = {is_store ? near : part, is_store ? part : near};
    kernel(ptr, strides, extent, &at);
    near += extent[0] * extent[1] * size;
  } while (odometer_next(&parts, tile, stride, 2));
}

void qn_pack_index(const qn_operand *operand, const int64_t *stride, const qn_tile *tile, char *scratch) {
  int32_t *offset = (int32_t *)(void *)(scratch + operand->table);
  int64_t step = stride_along(tile, stride, 0);
  row_odometer rows;
  odometer_start(&rows, tile);
  do {
    for (int64_t i = 0; i < tile->row; i++) *offset++ = (int32_t)(rows.offset + i * step);
  } while (odometer_next(&rows, tile, stride, 1));
}

static void move_at(const qn_operand *operand, const qn_tile *tile, char *far, char *near, char *scratch, int is_store) {
  char *const ptr[3] = {is_store ? near : far, scratch + operand->table, is_store ? far : near};
  const int64_t stride[3][2] = {{is_store ? operand->size : 0, 0}, {4, 0}, {is_store ? 0 : operand->size, 0}};
  const int64_t extent[3] = {tile->count, 1, 0};
  operand->move(ptr, stride, extent, NULL);
}

void qn_pack_load(const qn_operand *operand, const int64_t *stride, const qn_tile *tile, const char *from, char *scratch) {
  char *far = (char *)(uintptr_t)from; /* only read */
  char *block = scratch + operand->block, *staging = scratch + operand->staging;
  switch (operand->packing) {
    case QN_PACKING_CONVERT: convert_rows(operand->convert, tile, stride, far, operand->size, block, operand->compute_size, 0); return;
    case QN_PACKING_ONE: run_row(operand->convert, from, operand->size, block, operand->compute_size, 1); return;
    case QN_PACKING_POSITION: move_strided(operand->move, tile, stride, far, block, operand->compute_size, 0); return;
    case QN_PACKING_FILL: run_row(operand->move, from, 0, staging, operand->size, tile->count); break;
    case QN_PACKING_ROWS: copy_rows(tile, stride, far, staging, operand->size, 0); break;
    case QN_PACKING_STRIDED: move_strided(operand->move, tile, stride, far, staging, operand->size, 0); break;
    default: qn_assert(operand->packing == QN_PACKING_AT); move_at(operand, tile, far, staging, scratch, 0);
  }
  if (operand->convert) run_row(operand->convert, staging, operand->size, block, operand->compute_size, tile->count);
}

void qn_pack_store(const qn_operand *operand, const int64_t *stride, const qn_tile *tile, char *scratch, char *to) {
  char *block = scratch + operand->block, *staging = scratch + operand->staging;
  if (operand->convert && operand->packing != QN_PACKING_CONVERT)
    run_row(operand->convert, block, operand->compute_size, staging, operand->size, tile->count);
  switch (operand->packing) {
    case QN_PACKING_CONVERT: convert_rows(operand->convert, tile, stride, to, operand->size, block, operand->compute_size, 1); return;
    case QN_PACKING_ROWS: copy_rows(tile, stride, to, staging, operand->size, 1); return;
    case QN_PACKING_STRIDED: move_strided(operand->move, tile, stride, to, staging, operand->size, 1); return;
    case QN_PACKING_STREAM: run_row(operand->move, staging, 1, to, 1, tile->count * operand->size); return; /* in bytes */
    default: qn_assert(operand->packing == QN_PACKING_AT); move_at(operand, tile, to, staging, scratch, 1);
  }
}
