/* SPDX-License-Identifier: Apache-2.0
 *
 * row_nest.c: see row_nest.h. */
#include "core/row/row_nest.h"

#include <string.h>

#include "core/base/status.h"
#include "core/row/row_program.h"

quern_status qn_row_axes(const char *op, int64_t given, int32_t ndim, uint32_t *axes) {
  const uint64_t all = (UINT64_C(1) << ndim) - 1, bits = (uint64_t)given;
  *axes = (uint32_t)all;
  if (given == -1) return QUERN_OK;
  *axes = (uint32_t)bits;
  if (given == INT64_MIN)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: axes were made of an axis that is out of bounds, or given twice", op);
  if (bits & ~all)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: axes is 0x%llx, a bit for each axis, but the inputs have %d dimension%s; -1 is all",
                          op, (unsigned long long)bits, ndim, ndim == 1 ? "" : "s");
  return QUERN_OK;
}

int32_t qn_row_shape(int32_t ndim, const int64_t *shape, uint32_t axes, int keepdims, int64_t *reduced) {
  int32_t n = 0;
  for (int32_t d = 0; d < ndim; d++) {
    if (!(axes >> d & 1))
      reduced[n++] = shape[d];
    else if (keepdims)
      reduced[n++] = 1;
  }
  return n;
}

void qn_row_strides(const qn_tensor *tensor, int64_t *strides) {
  int64_t step = tensor->n_elements != 0;
  for (int32_t d = tensor->ndim - 1; d >= 0; d--) {
    strides[d] = tensor->shape[d] == 1 || !step ? 0 : tensor->strides ? tensor->strides[d] : step;
    if (step) step *= tensor->shape[d];
  }
}

/* The strides of an operand in bytes along the dimensions of the whole shape, outermost first; 0 where it is broadcast or reduced. */
static void strides_of(const qn_tensor *tensor, int32_t ndim, uint32_t axes, int is_reduced, int64_t *stride) {
  const int32_t n_axes = __builtin_popcount(axes), with_ones = is_reduced && tensor->ndim == ndim;
  int64_t own[QUERN_MAX_NDIM];
  qn_row_strides(tensor, own);
  if (is_reduced) {
    int32_t at = 0;
    for (int32_t d = 0; d < ndim; d++) {
      const int is_axis = axes >> d & 1;
      stride[d] = is_axis ? 0 : own[at] * tensor->size;
      at += !is_axis || (with_ones && n_axes);
    }
    return;
  }
  const int32_t missing = ndim - tensor->ndim;
  for (int32_t d = 0; d < ndim; d++) stride[d] = d < missing ? 0 : own[d - missing] * tensor->size;
}

/* Appends a dimension to the nest, or merges it into the last one, if `may_merge` and every operand lies so. */
static void append(qn_nest *nest, int64_t n, int64_t (*stride)[QUERN_MAX_NDIM], int32_t d, int may_merge) {
  const int32_t last = nest->rank - 1;
  for (int32_t k = 0; k < nest->n_operands && may_merge; k++)
    may_merge = stride[k][d] == (int64_t)((uint64_t)nest->stride[k][last] * (uint64_t)nest->n[last]);
  if (may_merge) {
    nest->n[last] *= n;
    return;
  }
  nest->n[nest->rank] = n;
  for (int32_t k = 0; k < nest->n_operands; k++) nest->stride[k][nest->rank] = stride[k][d];
  nest->rank++;
}

/* Whether dimension a is walked inside b: by the strides of the inputs, then of the outputs. */
static int is_inside(const qn_nest *nest, int64_t (*stride)[QUERN_MAX_NDIM], int32_t a, int32_t b) {
  for (int32_t k = 0; k < nest->n_operands; k++) {
    const int64_t x = qn_tensor_magnitude(stride[k][a]), y = qn_tensor_magnitude(stride[k][b]);
    if (x && y && x != y) return x < y;
  }
  return a > b;
}

/* Not inlined, so that its stack is free when the op runs. */
__attribute__((noinline)) void qn_row_normalise(int32_t ndim, const int64_t *shape, uint32_t axes, uint32_t reduced, int32_t n_in,
                                                const qn_tensor *in, int32_t n_out, const qn_tensor *out, qn_nest *nest,
                                                int64_t *count) {
  typedef int64_t all_strides[QN_ROW_MAX_VALUES][QUERN_MAX_NDIM];
  QN_IN_SCRATCH(all_strides, strides);
  int64_t(*const stride)[QUERN_MAX_NDIM] = *strides;
  int32_t kept[QUERN_MAX_NDIM], n_kept = 0;
  int64_t joined = 1;
  memset(nest, 0, offsetof(qn_nest, stride)); /* strides are set for its dimensions only */
  nest->n_operands = n_in + n_out;
  nest->n_elements = 1;
  *count = 1;
  qn_assert(n_in + n_out <= QN_ROW_MAX_VALUES);
  for (int32_t k = 0; k < n_in + n_out; k++) {
    const qn_tensor *tensor = k < n_in ? &in[k] : &out[k - n_in];
    nest->ref[k] = tensor->ref;
    nest->stride[k][0] = 0;
    strides_of(tensor, ndim, axes, k >= n_in && reduced >> (k - n_in) & 1, stride[k]);
  }
  for (int32_t d = 0; d < ndim; d++) {
    if (axes >> d & 1) *count = (int64_t)((uint64_t)*count * (uint64_t)shape[d]);
    if (!(reduced && axes >> d & 1)) nest->n_elements = (int64_t)((uint64_t)nest->n_elements * (uint64_t)shape[d]);
  }
  if (nest->n_elements == 0) return;
  int is_joining = 1;
  for (int32_t d = ndim - 1; d >= 0; d--) {
    if (shape[d] == 1) continue;
    if (!(axes >> d & 1)) {
      kept[n_kept++] = d;
      continue;
    }
    if (*count == 0) continue;
    append(nest, shape[d], stride, d, is_joining && nest->rank > 0);
    if (is_joining) {
      joined *= shape[d];
      nest->n_joined = (uint8_t)nest->rank;
      is_joining = joined < QN_ROW_CHUNK;
    }
  }
  nest->n_reduced = (uint8_t)nest->rank;
  for (int32_t i = 1; i < n_kept; i++)
    for (int32_t j = i; j > 0 && is_inside(nest, stride, kept[j], kept[j - 1]); j--) {
      const int32_t d = kept[j];
      kept[j] = kept[j - 1];
      kept[j - 1] = d;
    }
  for (int32_t i = 0; i < n_kept; i++) append(nest, shape[kept[i]], stride, kept[i], nest->rank > nest->n_reduced);
}

quern_status qn_row_check_still(const quern_op_info *info, uint32_t reduced, const qn_nest *nest) {
  for (int32_t k = info->n_in; k < info->n_in + info->n_out && nest->n_elements; k++)
    for (int32_t d = 0; d < nest->n_reduced && !(reduced >> (k - info->n_in) & 1); d++)
      if (nest->stride[k][d] == 0) return qn_tensor_refuse_overlap(info->name, info->args, info->n_in, k, k, QN_OVERLAP_YES, "");
  return QUERN_OK;
}
