/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_axis.c: see scan_axis.h. */
#include "core/row/scan_axis.h"

#include <string.h>

#include "core/base/status.h"
#include "core/row/row_nest.h"

quern_status qn_scan_axis_params(const quern_op_info *info, const quern_call *call, int64_t given[4]) {
  static const qn_slot slots[4] = {{0, QN_I64}, {1, QN_I64}, {2, QN_I64}, {3, QN_I64}};
  const int32_t n_given = call && call->params ? call->n_params : 0;
  qn_params params;
  quern_status status = qn_params_convert(info, QN_I64, 4, slots, n_given, call ? call->params : NULL, &params);
  for (int32_t k = 0; k < 4 && status == QUERN_OK; k++) {
    given[k] = (int64_t)params.slot[k];
    if (k > 0 && given[k] != 0 && given[k] != 1)
      return qn_status_fail(QUERN_E_ARGUMENT, "%s: %s is %lld, expected 0 or 1", info->name, info->params[k].name, (long long)given[k]);
  }
  if (status == QUERN_OK && given[1] && given[2])
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: include_initial and exclusive exclude each other", info->name);
  return status;
}

quern_status qn_scan_axis_read(const quern_op_info *info, const quern_call *call, int32_t ndim, qn_scan_axis *axis) {
  uint32_t axes;
  quern_status status = qn_scan_axis_params(info, call, axis->given);
  if (status == QUERN_OK && ndim == 0) return qn_status_fail(QUERN_E_ARGUMENT, "%s: a tensor without dimensions has no axis to run along", info->name);
  if (status || (status = qn_row_axes(info->name, axis->given[0], ndim, &axes))) return status;
  if (__builtin_popcount(axes) != 1)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: axes is %lld, but it runs along exactly one of %d dimensions: give one bit", info->name,
                          (long long)axis->given[0], ndim);
  axis->axis = __builtin_ctz(axes);
  axis->is_shifted = axis->given[1] || axis->given[2];
  axis->is_reverse = axis->given[3] != 0;
  return QUERN_OK;
}

void qn_scan_axis_fill(const qn_tensor *out, int32_t axis, int64_t at, double value) {
  const quern_scalar scalar = {.kind = QUERN_F64, .v = {.f = {value, 0}}};
  uint64_t bits[2] = {0}; /* of what no integer is */
  int64_t index[QUERN_MAX_NDIM] = {0}, strides[QUERN_MAX_NDIM];
  qn_row_strides(out, strides);
  for (int32_t d = 0; d < out->ndim; d++) strides[d] *= out->size;
  qn_params_number(&scalar, out->dtype, bits);
  char *to = qn_row_moved(qn_ref_address(out->ref), at * strides[axis]);
  for (;;) {
    memcpy(to, bits, out->size);
    int32_t d = out->ndim - 1;
    for (; d >= 0; d--) {
      if (d == axis) continue;
      to = qn_row_moved(to, strides[d]);
      if (++index[d] < out->shape[d]) break;
      to = qn_row_moved(to, -index[d] * strides[d]);
      index[d] = 0;
    }
    if (d < 0) return;
  }
}
