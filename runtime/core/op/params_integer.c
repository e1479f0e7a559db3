/* SPDX-License-Identifier: Apache-2.0
 *
 * params_integer.c: the conversion of parameters to integers. See params_integer.h. */
#include "core/op/params_integer.h"

const char *qn_params_to_range(const quern_scalar *scalar, int64_t low, uint64_t high, uint64_t *slot) {
  int64_t whole = 0;
  if (scalar->kind == QUERN_U64) {
    *slot = scalar->v.u < high ? scalar->v.u : high;
    return NULL;
  }
  if (scalar->kind == QUERN_I64) {
    whole = scalar->v.i;
  } else {
    double value = scalar->v.f[0];
    if (value != value) return "NaN";
    if (value >= 0x1p63) { /* beyond i64: only u64 can hold some of them */
      *slot = value >= 0x1p64 || (uint64_t)value > high ? high : (uint64_t)value;
      return NULL;
    }
    whole = value < -0x1p63 ? INT64_MIN : (int64_t)value;
    if (value >= -0x1p63 && (double)whole != value) return "not a whole number";
  }
  if (whole < low) whole = low;
  *slot = whole > 0 && (uint64_t)whole > high ? high : (uint64_t)whole;
  return NULL;
}

const char *qn_params_integer(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  const int is_signed = info->code == kDLInt;
  const uint64_t high = UINT64_MAX >> (64 - info->bits + is_signed);
  return qn_params_to_range(scalar, is_signed ? -(int64_t)high - 1 : 0, high, slot);
}
