/* SPDX-License-Identifier: Apache-2.0
 *
 * params.c: the conversion of parameters to a kernel's dtype. See params.h. */
#include "core/op/params.h"

#include <string.h>

#include "core/base/status.h"

int32_t qn_dtype_words(uint8_t dtype) { return (qn_dtype_infos[dtype].size + 7) / 8; }

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
static void to_narrow(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  const uint32_t ones = (1u << (info->bits - 1)) - 1, infinity = ones >> (info->digits - 1) << (info->digits - 1);
  const uint32_t beyond = info->is_finite ? ones : infinity, nan = info->is_finite ? ones : infinity | 1u << (info->digits - 2);
  double value = scalar->v.f[0];
  if (scalar->kind == QUERN_U64)
    value = odd_double(scalar->v.u);
  else if (scalar->kind == QUERN_I64)
    value = scalar->v.i < 0 ? -odd_double(0 - (uint64_t)scalar->v.i) : odd_double((uint64_t)scalar->v.i);
  const uint32_t bits = value != value ? nan : narrow_float(value, info, beyond);
  *slot = bits == nan ? nan : bits | (__builtin_signbit(value) ? ones + 1 : 0);
}

static void to_f32(const quern_scalar *scalar, uint64_t *slot) {
  float value = scalar->kind == QUERN_I64   ? (float)scalar->v.i
                : scalar->kind == QUERN_U64 ? (float)scalar->v.u
                                            : (float)scalar->v.f[0];
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  *slot = value != value ? 0x7fc00000u : bits;
}

static void to_f64(const quern_scalar *scalar, uint64_t *slot) {
  double value = scalar->kind == QUERN_I64   ? (double)scalar->v.i
                 : scalar->kind == QUERN_U64 ? (double)scalar->v.u
                                             : scalar->v.f[0];
  memcpy(slot, &value, sizeof value);
  if (value != value) *slot = 0x7ff8000000000000;
}

static int is_zero(const quern_scalar *scalar) {
  return scalar->kind == QUERN_F64 ? scalar->v.f[0] == 0 : scalar->v.u == 0;
}

/* Saturates to [low, high] of a signed type, [0, high] of an unsigned one. Returns an error phrase, or NULL. */
static const char *to_integer(const quern_scalar *scalar, int64_t low, uint64_t high, uint64_t *slot) {
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

/* The low 64 bits of an integer or of a whole float. Floats beyond [-2^63, 2^64) saturate. */
static const char *to_bits(const quern_scalar *scalar, uint64_t *slot) {
  if (scalar->kind == QUERN_F64) {
    const int is_beyond = scalar->v.f[0] >= 0x1p63;
    return to_integer(scalar, is_beyond ? 0 : INT64_MIN, is_beyond ? UINT64_MAX : INT64_MAX, slot);
  }
  *slot = scalar->v.u;
  return NULL;
}

/* Two f64s; a real number's imaginary part is 0. */
static void to_complex(const quern_scalar *scalar, uint64_t *slot) {
  quern_scalar imaginary = {.kind = QUERN_F64};
  quern_scalar real = *scalar;
  if (scalar->kind == QUERN_C128) {
    real.kind = QUERN_F64;
    imaginary.v.f[0] = scalar->v.f[1];
  }
  to_f64(&real, &slot[0]);
  to_f64(&imaginary, &slot[1]);
}

const char *qn_params_number(const quern_scalar *scalar, uint8_t dtype, uint64_t *slot) {
  const qn_dtype_info *info = &qn_dtype_infos[dtype];
  int is_signed = dtype == QN_I8 || dtype == QN_I16 || dtype == QN_I32 || dtype == QN_I64;
  switch (dtype) {
    case QN_BOOL: *slot = !is_zero(scalar); return NULL;
    case QN_F32: to_f32(scalar, slot); return NULL;
    case QN_F64: to_f64(scalar, slot); return NULL;
    case QN_B64: return to_bits(scalar, slot);
    default: break;
  }
  if (info->kind == QN_KIND_FLOAT) {
    to_narrow(scalar, info, slot);
    return NULL;
  }
  if (info->kind == QN_KIND_COMPLEX) {
    qn_assert(info->bits == 128);
    to_complex(scalar, slot);
    return NULL;
  }
  qn_assert(info->kind == QN_KIND_INTEGER);
  uint64_t high = UINT64_MAX >> (64 - info->bits + is_signed);
  return to_integer(scalar, is_signed ? -(int64_t)high - 1 : 0, high, slot);
}

static quern_status check_count(const quern_op_info *info, int32_t n_given) {
  if (n_given >= 0 && n_given <= info->n_params) return QUERN_OK;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d parameters given, it has %d", info->name, n_given, info->n_params);
}

/* The name of a compute dtype in error sentences. */
static const char *computed_in(uint8_t dtype) { return dtype == QN_B64 ? "integers" : qn_dtype_infos[dtype].name; }

/* Converts parameter k, or its default where it is not given, to a dtype. */
static quern_status convert_one(const quern_op_info *info, int32_t k, uint8_t dtype, int32_t n_given, const quern_scalar *given,
                                uint64_t *slot) {
  const quern_scalar *scalar = k < n_given ? &given[k] : &info->params[k].value;
  const char *name = info->params[k].name;
  if (k >= n_given && scalar->kind == QUERN_NONE)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: parameter %d (%s) is not given, and has no default", info->name, k + 1, name);
  if (scalar->kind == QUERN_C128 && qn_dtype_infos[dtype].kind != QN_KIND_COMPLEX)
    return qn_status_fail(QUERN_E_DTYPE, "%s: parameter %d (%s): a complex number, but the op computes in %s; give its real part",
                          info->name, k + 1, name, computed_in(dtype));
  if (scalar->kind < 0 || scalar->kind > QUERN_C128)
    return qn_status_fail(QUERN_E_ARGUMENT,
                          "%s: parameter %d (%s): kind %d is none of " QN_SPELLED(QUERN_I64) ", U64, F64, C128", info->name,
                          k + 1, name, scalar->kind);
  const char *wrong = qn_params_number(scalar, dtype, slot);
  if (!wrong) return QUERN_OK;
  return qn_status_fail(QUERN_E_DTYPE,
                        "%s: parameter %d (%s): %s, but the op computes in %s here; give a whole number, or %s", info->name, k + 1,
                        name, wrong, computed_in(dtype),
                        info->n_in ? "cast the tensors to a float dtype with astype first" : "the output a float dtype");
}

quern_status qn_params_convert(const quern_op_info *info, uint8_t dtype, int32_t n, const qn_slot *slots, int32_t n_given,
                               const quern_scalar *given, qn_params *params) {
  quern_status status = check_count(info, n_given);
  for (int32_t k = 0, at = 0; k < n && status == QUERN_OK; k++) {
    const qn_slot slot = slots ? slots[k] : (qn_slot){(uint8_t)k, dtype};
    status = convert_one(info, slot.param, slot.dtype, n_given, given, &params->slot[at]);
    at += qn_dtype_words(slot.dtype);
  }
  return status;
}
