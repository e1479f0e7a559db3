/* SPDX-License-Identifier: Apache-2.0
 *
 * print_array.c: see print_array.h. */
#include "print_array.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "say.h"

static int64_t elements(const ndarray *array) {
  int64_t n = 1;
  for (int32_t k = 0; k < array->tensor.ndim; k++) n *= array->shape[k];
  return n;
}

int print_array_fits(const ndarray *array) {
  const int64_t n = array->bytes ? elements(array) : 0;
  const char *name = array->word->name;
  if (n <= PRINT_MOST) return 1;
  return complain("missing names: %s has %lld elements, and %d are printed at most; give it a file: %s=FILE", name, (long long)n, PRINT_MOST,
                  name), 0;
}

static float half_value(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31 ? (fraction ? NAN : INFINITY)
                                    : ldexpf((float)(exponent ? fraction + 1024 : fraction), (exponent ? exponent : 1) - 25);
  return bits >> 15 ? -size : size;
}

static void print_f32(float value) {
  char text[OPERAND_NUMBER_SIZE];
  for (int digits = 6; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)value);
    if (strtof(text, NULL) == value) break;
  }
  fputs(isnan(value) ? "nan" : text, stdout);
}

static void print_item(DLDataType dtype, const char *item) {
  char text[OPERAND_NUMBER_SIZE];
  const int bytes = dtype.bits / 8, is_float = dtype.code == kDLFloat;
  uint64_t bits = 0;
  float narrow;
  memcpy(&bits, item, (size_t)bytes);
  if (dtype.code == kDLBool) {
    fputs(bits ? "true" : "false", stdout);
  } else if (is_float && bytes == 8) {
    quern_scalar number = {.kind = QUERN_F64};
    memcpy(&number.v.f[0], item, 8);
    fputs(operand_number_text(&number, text), stdout);
  } else if (is_float && bytes == 2) {
    print_f32(half_value((uint16_t)bits));
  } else if (is_float || dtype.code == kDLBfloat) {
    const uint32_t word = (uint32_t)(is_float ? bits : bits << 16);
    memcpy(&narrow, &word, sizeof narrow);
    print_f32(narrow);
  } else if (dtype.code == kDLInt) {
    printf("%lld", (long long)(bytes < 8 ? (int64_t)(bits << (64 - dtype.bits)) >> (64 - dtype.bits) : (int64_t)bits));
  } else {
    printf("%llu", (unsigned long long)bits);
  }
}

/* Dimensions from d on. Returns the address behind them. */
static const char *print_part(const ndarray *array, int32_t d, const char *at) {
  if (d == array->tensor.ndim) {
    print_item(array->tensor.dtype, at);
    return at + array->tensor.dtype.bits / 8;
  }
  putchar('[');
  for (int64_t k = 0; k < array->shape[d]; k++) {
    if (k) fputs(", ", stdout);
    at = print_part(array, d + 1, at);
  }
  putchar(']');
  return at;
}

void print_array(const ndarray *array) { print_part(array, 0, array->memory); }
