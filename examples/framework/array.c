/* SPDX-License-Identifier: Apache-2.0
 *
 * array.c: Pebble's arrays and their views. */
#include "array.h"

#include <stdlib.h>

struct array_memory {
  int n_refs;
  _Alignas(64) char bytes[];
};

static const struct {
  size_t size;
  DLDataType dtype;
} kinds[] = {
    [ARRAY_BOOL] = {1, {kDLBool, 8, 1}},  [ARRAY_BYTE] = {1, {kDLUInt, 8, 1}},   [ARRAY_INT] = {4, {kDLInt, 32, 1}},
    [ARRAY_HALF] = {2, {kDLFloat, 16, 1}}, [ARRAY_FLOAT] = {4, {kDLFloat, 32, 1}}, [ARRAY_DOUBLE] = {8, {kDLFloat, 64, 1}},
};

array array_new(array_kind kind, int ndim, const size_t *extent) {
  array a = {.kind = kind, .ndim = ndim};
  size_t bytes = kinds[kind].size;
  for (int d = ndim - 1; d >= 0; d--) {
    a.extent[d] = extent[d];
    a.step[d] = (ptrdiff_t)bytes;
    bytes *= extent[d];
  }
  a.memory = calloc(1, sizeof *a.memory + bytes);
  if (a.memory) {
    a.memory->n_refs = 1;
    a.first = a.memory->bytes;
  }
  return a;
}

void array_free(array *a) {
  if (a->memory && --a->memory->n_refs == 0) free(a->memory);
  a->memory = NULL;
}

array array_transpose(const array *a) {
  array t = *a;
  t.memory->n_refs++;
  for (int d = 0; d < a->ndim; d++) {
    t.extent[d] = a->extent[a->ndim - 1 - d];
    t.step[d] = a->step[a->ndim - 1 - d];
  }
  return t;
}

array array_slice(const array *a, int axis, ptrdiff_t start, size_t count, ptrdiff_t stride) {
  array s = *a;
  s.memory->n_refs++;
  s.first += start * a->step[axis];
  s.extent[axis] = count;
  s.step[axis] *= stride;
  return s;
}

size_t array_count(const array *a) {
  size_t n = 1;
  for (int d = 0; d < a->ndim; d++) n *= a->extent[d];
  return n;
}

void *array_at(const array *a, size_t i, size_t j) {
  char *p = a->first + (ptrdiff_t)i * a->step[0];
  return a->ndim > 1 ? p + (ptrdiff_t)j * a->step[1] : p;
}

/* DLPack counts strides in elements. Pebble's steps are always whole elements. */
DLTensor *array_show(const array *a, array_view *view) {
  const ptrdiff_t size = (ptrdiff_t)kinds[a->kind].size;
  for (int d = 0; d < a->ndim; d++) {
    view->shape[d] = (int64_t)a->extent[d];
    view->strides[d] = a->step[d] / size;
  }
  view->tensor = (DLTensor){.data = a->first, .device = {kDLCPU, 0}, .ndim = a->ndim, .dtype = kinds[a->kind].dtype,
                            .shape = view->shape, .strides = view->strides};
  return &view->tensor;
}
