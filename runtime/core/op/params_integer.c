/* SPDX-License-Identifier: Apache-2.0
 *
 * params_integer.c: the conversion of parameters to bool, integers and their bits. See params.h. */
#include "core/op/params.h"

const char *qn_params_bool(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  (void)info;
  *slot = scalar->kind == QUERN_F64 ? scalar->v.f[0] != 0 : scalar->v.u != 0;
  return NULL;
}

/* Saturates to [low, high] of a signed type, [0, high] of an unsigned one. Returns an error phrase, or NULL. */
static const char *to_range(const quern_scalar *scalar, int64_t low, uint64_t high, uint64_t *slot) {
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
  return to_range(scalar, is_signed ? -(int64_t)high - 1 : 0, high, slot);
}

/* The low 64 bits of an integer or of a whole float. Floats beyond [-2^63, 2^64) saturate. */
const char *qn_params_bits(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  (void)info;
  if (scalar->kind == QUERN_F64) {
    const int is_beyond = scalar->v.f[0] >= 0x1p63;
    return to_range(scalar, is_beyond ? 0 : INT64_MIN, is_beyond ? UINT64_MAX : INT64_MAX, slot);
  }
  *slot = scalar->v.u;
  return NULL;
}
