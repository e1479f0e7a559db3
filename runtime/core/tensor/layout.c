/* SPDX-License-Identifier: Apache-2.0
 *
 * layout.c: the layout of results, which is that of the operands (docs/layouts.md); see tensor.h. */
#include "core/tensor/tensor.h"

static uint64_t magnitude(int64_t x) { return x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }

/* The distance of neighbours along dimension d of `ndim`; 0: the operand has no such dimension, or its extent is 1. */
static uint64_t step_along(const qn_tensor *t, int32_t ndim, int32_t d) {
  const int32_t own = d - (ndim - t->ndim);
  uint64_t step = 1;
  if (own < 0 || t->shape[own] == 1) return 0;
  if (t->strides) return magnitude(t->strides[own]);
  for (int32_t j = own + 1; j < t->ndim; j++) step *= (uint64_t)t->shape[j];
  return step;
}

/* -1: dimension a is inside dimension b; 1: outside; 0: no operand tells. */
static int compare(int32_t ndim, int64_t n_elements, int32_t n_in, const qn_tensor *in, int32_t a, int32_t b) {
  for (int32_t k = 0; k < n_in; k++) {
    if (in[k].n_elements != n_elements) continue; /* not of full shape */
    const uint64_t x = step_along(&in[k], ndim, a), y = step_along(&in[k], ndim, b);
    if (x && y && x != y) return x < y ? -1 : 1;
  }
  return 0;
}

const int32_t *qn_tensor_order(int32_t ndim, const int64_t *shape, int32_t n_in, const qn_tensor *in, int32_t *order) {
  uint64_t n_elements = 1;
  int32_t reference = 0;
  for (int32_t d = 0; d < ndim; d++) n_elements *= (uint64_t)shape[d];
  while (reference < n_in && in[reference].n_elements != (int64_t)n_elements) reference++;
  if (reference == n_in || in[reference].compact) return NULL;
  for (int32_t n = 0; n < ndim; n++) { /* the dimensions from the last one, each put among those behind it */
    const int32_t d = ndim - 1 - n;
    int32_t at = n, side = 0;
    for (int32_t i = n - 1; i >= 0 && side <= 0; i--)
      if ((side = compare(ndim, (int64_t)n_elements, n_in, in, d, order[i])) < 0) at = i;
    for (int32_t i = n; i > at; i--) order[i] = order[i - 1];
    order[at] = d;
  }
  return order;
}

const int32_t *qn_tensor_order_of(const quern_shape *shape, int32_t *order) {
  int is_row_major = 1, has_strides = shape->size >= sizeof *shape;
  for (int32_t n = 0; n < shape->ndim && has_strides; n++) {
    const int32_t d = shape->ndim - 1 - n;
    int32_t at = n;
    for (; at > 0; order[at] = order[at - 1], at--) {
      const int32_t e = order[at - 1];
      const uint64_t mine = magnitude(shape->strides[d]), other = magnitude(shape->strides[e]);
      if (mine > other || (mine == other && (shape->shape[d] > 1 || shape->shape[e] <= 1))) break;
      is_row_major = 0;
    }
    order[at] = d;
    has_strides = shape->strides[d] != 0;
  }
  return has_strides && !is_row_major ? order : NULL;
}

void qn_tensor_lay_out(quern_shape *result, const int32_t *order) {
  uint64_t step = 1;
  if (result->size < sizeof *result || (uint32_t)result->ndim > QUERN_MAX_NDIM) return;
  for (int32_t i = 0; i < result->ndim; i++) {
    const int32_t d = order ? order[i] : result->ndim - 1 - i;
    result->strides[d] = (int64_t)step;
    if (result->shape[d] > 1) step *= (uint64_t)result->shape[d];
  }
}
