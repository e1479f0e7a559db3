/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_axis.h: the parameters of calls that scan: the axis, as a bit, and how the result is shifted along it. */
#ifndef QN_SCAN_AXIS_H
#define QN_SCAN_AXIS_H

#include "core/op/decision.h"

typedef struct qn_scan_axis {
  int64_t given[4]; /* axes, include_initial, exclusive, reverse */
  int32_t axis;
  uint8_t is_shifted; /* include_initial or exclusive: there is a result of no elements */
  uint8_t is_reverse;
} qn_scan_axis;

/* Reads the parameters of a call for an input of `ndim` dimensions. Errors: ARGUMENT. */
quern_status qn_scan_axis_read(const quern_op_info *info, const quern_call *call, int32_t ndim, qn_scan_axis *axis);

/* Only axes, include_initial, exclusive, reverse. */
quern_status qn_scan_axis_params(const quern_op_info *info, const quern_call *call, int64_t given[4]);

/* Writes a value to the place `at` along the axis, at each index of the other dimensions. */
void qn_scan_axis_fill(const qn_tensor *out, int32_t axis, int64_t at, double value);

#endif
