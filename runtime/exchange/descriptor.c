/* SPDX-License-Identifier: Apache-2.0
 *
 * descriptor.c: see descriptor.h. No product or sum of what is read is formed unchecked. */
#include "exchange/descriptor.h"

#include <string.h>

#include "core/tensor/tensor.h"

static quern_status check_frame(const char *function, const DLTensor *tensor) {
  char text[QN_TENSOR_DTYPE_CHARS];
  if (!tensor) return qn_status_fail(QUERN_E_ARGUMENT, "%s: the tensor is NULL", function);
  const int ndim = (int)tensor->ndim;
  if (ndim < 0) return qn_status_fail(QUERN_E_ARGUMENT, "%s: ndim is %d", function, ndim);
  if (ndim > QUERN_MAX_NDIM)
    return qn_status_fail(QUERN_E_LAYOUT, "%s: %d dimensions, at most %d are served", function, ndim, QUERN_MAX_NDIM);
  if (ndim && !tensor->shape)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: shape is NULL, with %d dimensions", function, ndim);
  if (tensor->dtype.bits == 0 || tensor->dtype.lanes == 0)
    return qn_status_fail(QUERN_E_DTYPE, "%s: dtype %s has items of no bits", function,
                          qn_tensor_dtype_text(tensor->dtype, text));
  return QUERN_OK;
}

/* *low and *high: bytes from the first item to the lowest and behind the highest. */
static quern_status read_reach(const char *function, const DLTensor *tensor, qn_descriptor *d, int64_t *low, int64_t *high) {
  int64_t n = 1, below = 0, above = 0;
  int overflow = 0, is_empty = 0;
  *low = *high = 0;
  d->is_compact = 1;
  for (int32_t k = tensor->ndim - 1; k >= 0; k--) {
    const int64_t extent = tensor->shape[k], stride = tensor->strides && extent != 1 ? tensor->strides[k] : n;
    int64_t reach;
    if (extent < 0)
      return qn_status_fail(QUERN_E_ARGUMENT, "%s: extent %d is %lld", function, (int)k + 1, (long long)extent);
    is_empty |= extent == 0;
    if (extent <= 1) continue;
    d->is_compact &= stride == n;
    overflow |= __builtin_mul_overflow(extent - 1, stride, &reach);
    overflow |= reach < 0 ? __builtin_add_overflow(below, reach, &below) : __builtin_add_overflow(above, reach, &above);
    overflow |= __builtin_mul_overflow(n, extent, &n);
  }
  d->n_elements = is_empty ? 0 : n;
  d->is_compact |= is_empty;
  if (is_empty) return QUERN_OK;
  const int64_t limit = QN_TENSOR_MAX_SPAN / d->item_bytes;
  if (overflow || below < -limit || above > limit || above - below > limit - 1)
    return qn_status_fail(QUERN_E_LAYOUT, "%s: its items are more than 2^61 bytes apart, or more than can be counted", function);
  *low = below * d->item_bytes;
  *high = (above + 1) * d->item_bytes;
  return QUERN_OK;
}

quern_status qn_descriptor_read(const char *function, const DLTensor *tensor, int has_data, qn_descriptor *d) {
  int64_t low, high;
  quern_status status = check_frame(function, tensor);
  if (status) return status;
  const int64_t bits = (int64_t)tensor->dtype.bits * tensor->dtype.lanes;
  d->item_bytes = (bits + 7) / 8;
  d->is_whole = bits % 8 == 0;
  d->data = NULL;
  status = read_reach(function, tensor, d, &low, &high);
  if (status || !has_data) return status;
  const uint64_t address = (uint64_t)(uintptr_t)tensor->data + tensor->byte_offset;
  d->data = (char *)(uintptr_t)address;
  if (d->n_elements == 0) return QUERN_OK;
  if (!tensor->data)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: data is NULL, with %lld elements", function, (long long)d->n_elements);
  if ((uintptr_t)address != address || address < tensor->byte_offset || address < (uint64_t)-low ||
      (uint64_t)UINTPTR_MAX - address < (uint64_t)high)
    return qn_status_fail(QUERN_E_LAYOUT, "%s: data, byte_offset and strides reach past the address space", function);
  return QUERN_OK;
}

void qn_descriptor_strides(const DLTensor *tensor, int64_t *strides) {
  int64_t next = 1;
  if (tensor->ndim && tensor->strides) {
    memcpy(strides, tensor->strides, (size_t)tensor->ndim * sizeof strides[0]);
    return;
  }
  for (int32_t k = tensor->ndim - 1; k >= 0; k--) {
    strides[k] = next;
    /* This overflows only for an empty tensor, where strides mean nothing. */
    if (tensor->shape[k] > 1 && __builtin_mul_overflow(next, tensor->shape[k], &next)) next = 0;
  }
}
