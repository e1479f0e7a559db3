/* SPDX-License-Identifier: Apache-2.0
 *
 * params_narrow.c: the conversion of parameters to floats of at most 32 bits, described by their dtype's row. See params.h. */
#include "core/op/params.h"

#include <string.h>

/* Rounds |value|, which is not NaN, to the bits of a float dtype: to nearest, ties to even, once, from the bits of the double.
 * Values that are too large become `beyond` (infinity or NaN). */
static uint32_t narrow_float(double value, const qn_dtype_info *info, uint32_t beyond) {
  const int fraction_bits = info->digits - 1, max_field = (1 << info->exponent) - (info->is_finite ? 1 : 2);
  const int min_exponent = 2 - (1 << (info->exponent - 1)), max_exponent = max_field - 1 + min_exponent;
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t fraction = bits & 0xfffffffffffff;
  if (exponent > max_exponent) return beyond;
  if (exponent < min_exponent - fraction_bits - 1) return 0; /* under half of the smallest subnormal, f64's own included */
  fraction |= 0x10000000000000;
  int shift = 52 - fraction_bits;
  if (exponent < min_exponent) shift += min_exponent - exponent;
  uint64_t kept = fraction >> shift, rest = fraction & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* A normal number's leading bit adds 1 to the exponent field below it; a carry out of the fraction adds another. */
  uint32_t field = exponent < min_exponent ? 0 : (uint32_t)(exponent - min_exponent);
  const uint32_t narrow = (field << fraction_bits) + (uint32_t)kept;
  return narrow < beyond ? narrow : beyond;
}

/* An integer as a double that rounds to any format of at most 51 bits as the integer itself would: the bits that do not fit
 * set the last bit (round to odd). */
static double odd_double(uint64_t magnitude) {
  int excess = magnitude >> 53 ? 11 - __builtin_clzll(magnitude) : 0;
  if (excess > 0) {
    uint64_t lost = magnitude & ((1ull << excess) - 1);
    magnitude = (magnitude >> excess | (lost != 0)) << excess;
  }
  return (double)magnitude;
}

/* To a float dtype of at most 32 bits, described by its row of dsl/types.lua alone. */
const char *qn_params_narrow(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  const uint32_t ones = (1u << (info->bits - 1)) - 1, infinity = ones >> (info->digits - 1) << (info->digits - 1);
  const uint32_t beyond = info->is_finite ? ones : infinity, nan = info->is_finite ? ones : infinity | 1u << (info->digits - 2);
  double value = scalar->v.f[0];
  if (scalar->kind == QUERN_U64)
    value = odd_double(scalar->v.u);
  else if (scalar->kind == QUERN_I64)
    value = scalar->v.i < 0 ? -odd_double(0 - (uint64_t)scalar->v.i) : odd_double((uint64_t)scalar->v.i);
  const uint32_t bits = value != value ? nan : narrow_float(value, info, beyond);
  *slot = bits == nan ? nan : bits | (__builtin_signbit(value) ? ones + 1 : 0);
  return NULL;
}
