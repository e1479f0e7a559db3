/* SPDX-License-Identifier: Apache-2.0
 *
 * array.h: Pebble's array: counted memory seen through a shape and steps in bytes. Knows DLTensor only as the view that
 * kernels are called with. */
#ifndef ARRAY_H
#define ARRAY_H

#include <stddef.h>

#include "pebble.h"

enum { ARRAY_MAX_NDIM = 4 };

typedef enum { ARRAY_BOOL, ARRAY_BYTE, ARRAY_INT, ARRAY_HALF, ARRAY_FLOAT, ARRAY_DOUBLE } array_kind;

typedef struct array_memory array_memory;

typedef struct array {
  array_memory *memory;
  char *first; /* the element at index 0, 0, ... */
  array_kind kind;
  int ndim;
  size_t extent[ARRAY_MAX_NDIM];
  ptrdiff_t step[ARRAY_MAX_NDIM]; /* bytes */
} array;

/* A new array in rows, zeroed; memory NULL when there is none left. To be given up with array_free, as are all views. */
array array_new(array_kind kind, int ndim, const size_t *extent);
void array_free(array *a);

/* Views of the same memory. */
array array_transpose(const array *a);
array array_slice(const array *a, int axis, ptrdiff_t start, size_t count, ptrdiff_t stride);

size_t array_count(const array *a);
void *array_at(const array *a, size_t i, size_t j);

/* The same array for a kernel. The tensor points into the view, so the view is not to be copied. */
typedef struct array_view {
  DLTensor tensor;
  int64_t shape[ARRAY_MAX_NDIM], strides[ARRAY_MAX_NDIM];
} array_view;

DLTensor *array_show(const array *a, array_view *view);

#endif
