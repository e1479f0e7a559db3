/* SPDX-License-Identifier: Apache-2.0
 *
 * weak.c: see weak.h. */
#include "lang/typing/weak.h"

#include <string.h>

static double as_float(qn_number number) { return number.is_float ? number.v.f : (double)number.v.i; }
static qn_number float_number(double value) { return (qn_number){.is_float = 1, .v.f = value}; }
static qn_number integer_number(uint64_t bits) {
  qn_number number = {.is_float = 0};
  memcpy(&number.v.i, &bits, sizeof bits);
  return number;
}

const char *qn_weak_arithmetic(qn_sign sign, qn_number a, qn_number b, qn_number *result) {
  const double x = as_float(a), y = as_float(b);
  double exact = 0;
  uint64_t wrapped = 0;
  switch (sign) {
    case QN_SIGN_DIV: *result = float_number(x / y); return NULL; /* true division, as for operands */
    case QN_SIGN_ADD:
      exact = x + y;
      wrapped = (uint64_t)a.v.i + (uint64_t)b.v.i;
      break;
    case QN_SIGN_SUB:
      exact = x - y;
      wrapped = (uint64_t)a.v.i - (uint64_t)b.v.i;
      break;
    default:
      exact = x * y;
      wrapped = (uint64_t)a.v.i * (uint64_t)b.v.i;
  }
  if (a.is_float || b.is_float) {
    *result = float_number(exact);
    return NULL;
  }
  *result = integer_number(wrapped);
  return exact != as_float(*result) && (exact >= 0x1p63 || exact <= -0x1p63) ? "the number does not fit 64 bits" : NULL;
}

const char *qn_weak_bitwise(qn_sign sign, qn_number a, qn_number b, qn_number *result) {
  if (a.is_float || b.is_float) return "of floats";
  const uint64_t x = (uint64_t)a.v.i, y = (uint64_t)b.v.i;
  *result = integer_number(sign == QN_SIGN_AND ? x & y : sign == QN_SIGN_OR ? x | y : x ^ y);
  return NULL;
}

const char *qn_weak_shift(qn_sign sign, qn_number a, qn_number b, qn_number *result) {
  if (a.is_float || b.is_float || b.v.i < 0 || b.v.i > 62) return "cannot shift these numbers";
  const uint64_t x = (uint64_t)a.v.i, fill = a.v.i < 0 && b.v.i > 0 ? UINT64_MAX << (64 - b.v.i) : 0;
  *result = integer_number(sign == QN_SIGN_SHL ? x << b.v.i : x >> b.v.i | fill);
  return NULL;
}

const char *qn_weak_unary(qn_sign sign, qn_number a, qn_number *result) {
  if (sign == QN_SIGN_INVERT && a.is_float) return "'~' of a float";
  if (sign == QN_SIGN_ADD)
    *result = a;
  else if (sign == QN_SIGN_INVERT)
    *result = integer_number(~(uint64_t)a.v.i);
  else
    *result = a.is_float ? float_number(-a.v.f) : integer_number(0 - (uint64_t)a.v.i);
  return NULL;
}

qn_number qn_weak_as_float(qn_number number) {
  return number.is_float ? number : float_number(number.is_pattern ? (double)(uint64_t)number.v.i : (double)number.v.i);
}

int qn_weak_is_true(qn_number number) { return number.is_float ? number.v.f != 0 : number.v.i != 0; }

/* Its bits, cut to the width of the type. */
static uint64_t low_bits(int64_t value, uint8_t type) {
  return (uint64_t)value & UINT64_MAX >> (64 - qn_dtype_infos[type].bits);
}

/* Whether the integer is in the type's range or, if not negative, fits its width as a bit pattern. */
static int fits(int64_t value, uint8_t type) {
  const int bits = qn_dtype_infos[type].bits;
  if (bits == 64 || (value >= 0 && value >> bits == 0)) return 1;
  return qn_weak_is_signed(type) && value < 0 && value >= -((int64_t)1 << (bits - 1));
}

qn_weak_fit qn_weak_constant(qn_number number, uint8_t type, uint64_t *bits) {
  const double value = number.is_pattern ? (double)(uint64_t)number.v.i : as_float(number);
  switch (type) {
    case QN_F64:
      memcpy(bits, &value, sizeof value);
      if (value != value) *bits = 0x7ff8000000000000;
      return QN_WEAK_FITS;
    case QN_F32: {
      const float narrow = number.is_float     ? (float)number.v.f
                           : number.is_pattern ? (float)(uint64_t)number.v.i
                                               : (float)number.v.i;
      uint32_t narrow_bits;
      memcpy(&narrow_bits, &narrow, sizeof narrow);
      *bits = value != value ? 0x7fc00000 : narrow_bits;
      return QN_WEAK_FITS;
    }
    case QN_BOOL:
      *bits = value != 0;
      return value == 0 || value == 1 ? QN_WEAK_FITS : QN_WEAK_NO_BOOL;
    default:
      if (qn_dtype_infos[type].kind == QN_KIND_COMPLEX) return QN_WEAK_COMPLEX;
      if (number.is_float) return QN_WEAK_FLOAT;
      *bits = low_bits(number.v.i, type);
      return fits(number.v.i, type) ? QN_WEAK_FITS : QN_WEAK_TOO_BIG;
  }
}
