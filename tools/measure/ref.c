/* SPDX-License-Identifier: Apache-2.0
 *
 * ref.c: reference values of every op; see ref.h. The code is plain rather than fast. */
#include "ref.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __FAST_MATH__
#error "reference values need IEEE arithmetic"
#endif

/* libm's 113-bit functions; Clang's headers do not declare them. */
#ifdef __aarch64__
#define REAL(name) name##l
#else
#define REAL(name) name##f128
extern ref_real sqrtf128(ref_real), expf128(ref_real), logf128(ref_real), tanhf128(ref_real), erff128(ref_real),
    erfcf128(ref_real), powf128(ref_real, ref_real), fabsf128(ref_real), truncf128(ref_real), rintf128(ref_real),
    ldexpf128(ref_real, int), frexpf128(ref_real, int *), copysignf128(ref_real, ref_real), sinf128(ref_real), cosf128(ref_real),
    tanf128(ref_real), atanf128(ref_real), atan2f128(ref_real, ref_real), asinf128(ref_real), acosf128(ref_real),
    hypotf128(ref_real, ref_real), exp2f128(ref_real), expm1f128(ref_real), log2f128(ref_real), log10f128(ref_real),
    log1pf128(ref_real), sinhf128(ref_real), coshf128(ref_real), asinhf128(ref_real), acoshf128(ref_real), atanhf128(ref_real),
    cbrtf128(ref_real), floorf128(ref_real), ceilf128(ref_real), fmodf128(ref_real, ref_real);
#endif

/* ---- Dtypes: ORDER ref_dtype ------------------------------------------------------------------------------------ */

typedef struct dtype_info {
  const char *name;
  DLDataType dl;
  int size;
  ref_kind kind;
  int digits, emin, emax; /* floats: precision, exponents of the smallest normal and the largest binade */
} dtype_info;

static const dtype_info dtypes[REF_N_DTYPES] = {
    {"bool", {6, 8, 1}, 1, REF_KIND_BOOL, 0, 0, 0},
    {"i8", {0, 8, 1}, 1, REF_KIND_INTEGER, 0, 0, 0},
    {"i16", {0, 16, 1}, 2, REF_KIND_INTEGER, 0, 0, 0},
    {"i32", {0, 32, 1}, 4, REF_KIND_INTEGER, 0, 0, 0},
    {"i64", {0, 64, 1}, 8, REF_KIND_INTEGER, 0, 0, 0},
    {"u8", {1, 8, 1}, 1, REF_KIND_INTEGER, 0, 0, 0},
    {"u16", {1, 16, 1}, 2, REF_KIND_INTEGER, 0, 0, 0},
    {"u32", {1, 32, 1}, 4, REF_KIND_INTEGER, 0, 0, 0},
    {"u64", {1, 64, 1}, 8, REF_KIND_INTEGER, 0, 0, 0},
    {"f16", {2, 16, 1}, 2, REF_KIND_FLOAT, 11, -14, 15},
    {"bf16", {4, 16, 1}, 2, REF_KIND_FLOAT, 8, -126, 127},
    {"f32", {2, 32, 1}, 4, REF_KIND_FLOAT, 24, -126, 127},
    {"f64", {2, 64, 1}, 8, REF_KIND_FLOAT, 53, -1022, 1023},
};

const char *ref_dtype_name(ref_dtype d) {
  return dtypes[d].name;
}

DLDataType ref_dtype_dl(ref_dtype d) {
  return dtypes[d].dl;
}

int ref_dtype_size(ref_dtype d) {
  return dtypes[d].size;
}

ref_kind ref_dtype_kind(ref_dtype d) {
  return dtypes[d].kind;
}

ref_dtype ref_dtype_of(DLDataType dl) {
  for (int d = 0; d < REF_N_DTYPES; d++) {
    if (dtypes[d].dl.code == dl.code && dtypes[d].dl.bits == dl.bits && dl.lanes == 1) return (ref_dtype)d;
  }
  return REF_N_DTYPES;
}

static int is_signed(ref_dtype d) {
  return dtypes[d].dl.code == 0;
}

ref_dtype ref_compute(ref_dtype d) {
  return dtypes[d].kind == REF_KIND_FLOAT && dtypes[d].digits < dtypes[REF_F32].digits ? REF_F32 : d;
}

int ref_digits(ref_dtype d) {
  return dtypes[d].digits;
}

int ref_least_exponent(ref_dtype d) {
  return dtypes[d].emin;
}

int ref_largest_exponent(ref_dtype d) {
  return dtypes[d].emax;
}

/* Whether a float has every number of another. */
static int holds(ref_dtype d, ref_dtype other) {
  return dtypes[d].digits >= dtypes[other].digits && dtypes[d].emin <= dtypes[other].emin && dtypes[d].emax >= dtypes[other].emax;
}

/* bool < integers < floats. Of two floats the least that has the numbers of both: of f16 and bf16 f32. Integers of both signs: the
 * signed one that holds both; u64 and a signed one have none. */
ref_dtype ref_promote(ref_dtype a, ref_dtype b) {
  if (a == REF_N_DTYPES || b == REF_N_DTYPES) return REF_N_DTYPES;
  if (dtypes[a].kind != dtypes[b].kind) return dtypes[a].kind > dtypes[b].kind ? a : b;
  if (dtypes[a].kind == REF_KIND_FLOAT) {
    ref_dtype least = REF_F64;
    for (int d = 0; d < REF_N_DTYPES; d++)
      if (dtypes[d].kind == REF_KIND_FLOAT && holds((ref_dtype)d, a) && holds((ref_dtype)d, b) && dtypes[d].size < dtypes[least].size)
        least = (ref_dtype)d;
    return least;
  }
  if (dtypes[a].kind != REF_KIND_INTEGER || is_signed(a) == is_signed(b)) return dtypes[a].size > dtypes[b].size ? a : b;
  ref_dtype s = is_signed(a) ? a : b, u = is_signed(a) ? b : a;
  while (s <= REF_I64 && dtypes[s].size <= dtypes[u].size) s++;
  return s <= REF_I64 ? s : REF_N_DTYPES;
}

ref_dtype ref_floating(ref_dtype d) {
  if (dtypes[d].kind == REF_KIND_FLOAT) return d;
  return d == REF_BOOL || dtypes[d].size <= 2 ? REF_F32 : REF_F64;
}

uint64_t ref_get(ref_dtype d, const void *at) {
  uint64_t bits = 0;
  memcpy(&bits, at, (size_t)dtypes[d].size); /* little-endian */
  return bits;
}

void ref_put(ref_dtype d, void *at, uint64_t bits) {
  memcpy(at, &bits, (size_t)dtypes[d].size);
}

static int exponent_bits(ref_dtype d) {
  return dtypes[d].size * 8 - dtypes[d].digits;
}

static uint64_t exponent_mask(ref_dtype d) {
  return (((uint64_t)1 << exponent_bits(d)) - 1) << (dtypes[d].digits - 1);
}

static uint64_t fraction_mask(ref_dtype d) {
  return ((uint64_t)1 << (dtypes[d].digits - 1)) - 1;
}

static uint64_t sign_mask(ref_dtype d) {
  return (uint64_t)1 << (dtypes[d].size * 8 - 1);
}

int ref_is_nan(ref_dtype d, uint64_t bits) {
  return dtypes[d].kind == REF_KIND_FLOAT && (bits & exponent_mask(d)) == exponent_mask(d) && (bits & fraction_mask(d));
}

uint64_t ref_nan(ref_dtype d) {
  return exponent_mask(d) | (fraction_mask(d) + 1) >> 1;
}

static ref_real nan_value(void) {
  return (ref_real)NAN;
}

static int is_nan(ref_real x) {
  return x != x;
}

static int is_infinite(ref_real x) {
  return x == (ref_real)INFINITY || x == -(ref_real)INFINITY;
}

static int is_negative(ref_real x) {
  return REAL(copysign)((ref_real)1, x) < 0;
}

ref_real ref_value(ref_dtype d, uint64_t bits) {
  switch (d) {
    case REF_BOOL: return (bits & 0xff) != 0;
    case REF_I8: return (int8_t)bits;
    case REF_I16: return (int16_t)bits;
    case REF_I32: return (int32_t)bits;
    case REF_I64: return (int64_t)bits;
    case REF_U8: return (uint8_t)bits;
    case REF_U16: return (uint16_t)bits;
    case REF_U32: return (uint32_t)bits;
    case REF_U64: return bits;
    default: break;
  }
  uint64_t e = (bits & exponent_mask(d)) >> (dtypes[d].digits - 1), f = bits & fraction_mask(d);
  ref_real x;
  if (ref_is_nan(d, bits)) return bits & sign_mask(d) ? -nan_value() : nan_value(); /* signbit and copysign read it */
  if ((bits & exponent_mask(d)) == exponent_mask(d)) x = (ref_real)INFINITY;
  else if (e == 0) x = REAL(ldexp)((ref_real)f, dtypes[d].emin - (dtypes[d].digits - 1));
  else x = REAL(ldexp)((ref_real)(f + fraction_mask(d) + 1), (int)e - 1 + dtypes[d].emin - (dtypes[d].digits - 1));
  return bits & sign_mask(d) ? -x : x;
}

ref_real ref_ulp(ref_dtype d, ref_real x) {
  int e;
  x = REAL(fabs)(x);
  if (x == 0) e = dtypes[d].emin;
  else if (is_infinite(x)) e = dtypes[d].emax;
  else {
    REAL(frexp)(x, &e);
    e--;
  }
  if (e < dtypes[d].emin) e = dtypes[d].emin;
  if (e > dtypes[d].emax) e = dtypes[d].emax;
  return REAL(ldexp)((ref_real)1, e - (dtypes[d].digits - 1));
}

/* To nearest, ties to even, once, from any real. */
static uint64_t round_to_float(ref_dtype d, ref_real x) {
  if (is_nan(x)) return ref_nan(d);
  uint64_t sign = is_negative(x) ? sign_mask(d) : 0;
  ref_real size = REAL(fabs)(x);
  if (size == 0) return sign;
  if (size >= REAL(ldexp)((ref_real)1, dtypes[d].emax + 1)) return sign | exponent_mask(d);
  ref_real step = ref_ulp(d, x);
  /* The quotient by a power of two is exact (113 digits, 15 exponent bits); its rint is the one rounding. */
  ref_real units = REAL(rint)(size / step);
  int e;
  REAL(frexp)(step, &e);
  e += dtypes[d].digits - 2; /* exponent of the binade */
  uint64_t significand = (uint64_t)units;
  if (significand == (fraction_mask(d) + 1) * 2) {
    significand >>= 1;
    e++;
  }
  if (e > dtypes[d].emax) return sign | exponent_mask(d);
  if (significand <= fraction_mask(d)) return sign | significand; /* subnormal */
  return sign | (uint64_t)(e - dtypes[d].emin + 1) << (dtypes[d].digits - 1) | (significand & fraction_mask(d));
}

/* All bits of an item. */
static uint64_t bits_mask(ref_dtype d) {
  return ~(uint64_t)0 >> (64 - 8 * dtypes[d].size);
}

uint64_t ref_cast(ref_dtype to, ref_real value, ref_kind from) {
  if (to == REF_BOOL) return value != 0; /* NaN is true */
  if (dtypes[to].kind == REF_KIND_FLOAT) return round_to_float(to, value);
  uint64_t mask = bits_mask(to), most = is_signed(to) ? mask >> 1 : mask;
  ref_real high = (ref_real)most, low = is_signed(to) ? -high - 1 : 0;
  if (from == REF_KIND_FLOAT) {
    if (is_nan(value)) return 0;
    value = REAL(trunc)(value);
    if (value < low) value = low;
    if (value > high) value = high;
  }
  return (uint64_t)(__int128)value & mask;
}

uint64_t ref_from_double(ref_dtype d, double x) {
  return ref_cast(d, x, REF_KIND_FLOAT);
}

double ref_ulp_error(ref_dtype d, uint64_t got, ref_real exact) {
  ref_real g = ref_value(d, got);
  if (is_nan(g) || is_nan(exact)) return is_nan(g) && is_nan(exact) ? 0 : INFINITY;
  ref_real limit = REAL(ldexp)((ref_real)1, dtypes[d].emax + 1);
  if (is_infinite(exact)) exact = exact > 0 ? limit : -limit;
  if (is_infinite(g)) g = g > 0 ? limit : -limit;
  if (exact > limit && g == limit) return 0;
  if (exact < -limit && g == -limit) return 0;
  return (double)(REAL(fabs)(g - exact) / ref_ulp(d, exact));
}

/* ---- Ops: ORDER ref_op ------------------------------------------------------------------------------------------ */

enum { TAKES_NUMERIC, TAKES_FLOATING, TAKES_ALL, TAKES_INTEGER, TAKES_INTEGRAL };

static const struct {
  ref_op_info info;
  int takes;    /* what T may be */
  int bool_out; /* the result is bool */
} ops[REF_N_ALL] = {
    {{"negative", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"abs", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"sqrt", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"exp", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"log", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"tanh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"erf", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"sigmoid", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"relu", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"gelu", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"add", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"subtract", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"multiply", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"divide", 2, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"maximum", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"minimum", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"pow", 2, 0, 0, 0, 1, {0}}, TAKES_NUMERIC, 0},
    {{"less", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"equal", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"isnan", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 1},
    {{"signbit", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 1},
    {{"where", 3, 0, 0, 1, 0.5, {0}}, TAKES_ALL, 0},
    {{"clip", 1, 2, 0, 0, 0.5, {-INFINITY, INFINITY}}, TAKES_NUMERIC, 0},
    {{"fma", 3, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"astype", 1, 0, 1, 0, 0.5, {0}}, TAKES_ALL, 0},
    {{"copy", 1, 0, 0, 1, 0.5, {0}}, TAKES_ALL, 0},
    {{"full", 0, 1, 1, 0, 0.5, {0}}, TAKES_ALL, 0},
    {{"leaky_relu", 1, 1, 0, 0, 0.5, {0.01}}, TAKES_FLOATING, 0},
    {{"atan", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"atan2", 2, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"asin", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"acos", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"hypot", 2, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"exp2", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"expm1", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"log2", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"log10", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"log1p", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"sinh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"cosh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"asinh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"acosh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"atanh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"erfc", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"cbrt", 1, 0, 0, 0, 0.76, {0}}, TAKES_FLOATING, 0},
    {{"logaddexp", 2, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"logaddexp2", 2, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"sin", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"cos", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"tan", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"degrees", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"radians", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"sinc", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"positive", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"sign", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"square", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"reciprocal", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"fmax", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"fmin", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"copysign", 2, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"heaviside", 2, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"less_equal", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"greater", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"greater_equal", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"not_equal", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"isfinite", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 1},
    {{"isinf", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 1},
    {{"logical_and", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"logical_or", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"logical_xor", 2, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"logical_not", 1, 0, 0, 0, 0.5, {0}}, TAKES_ALL, 1},
    {{"bitwise_and", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGRAL, 0},
    {{"bitwise_or", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGRAL, 0},
    {{"bitwise_xor", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGRAL, 0},
    {{"bitwise_invert", 1, 0, 0, 0, 0.5, {0}}, TAKES_INTEGRAL, 0},
    {{"bitwise_left_shift", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGER, 0},
    {{"bitwise_right_shift", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGER, 0},
    {{"floor", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"ceil", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"trunc", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"fix", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"round", 1, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"rint", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"floor_divide", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"trunc_divide", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"remainder", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"fmod", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"gcd", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGER, 0},
    {{"lcm", 2, 0, 0, 0, 0.5, {0}}, TAKES_INTEGER, 0},
    {{"ldexp", 2, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"nextafter", 2, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"spacing", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"bitwise_count", 1, 0, 0, 0, 0.5, {0}}, TAKES_INTEGER, 0},
    {{"float_power", 2, 0, 0, 0, 1, {0}}, TAKES_ALL, 0},
    {{"saturate_cast", 1, 0, 1, 0, 0.5, {0}}, TAKES_ALL, 0},
    {{"silu", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"gelu_tanh", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"mish", 1, 0, 0, 0, 1, {0}}, TAKES_FLOATING, 0},
    {{"softplus", 1, 2, 0, 0, 1.7, {1, 20}}, TAKES_FLOATING, 0},
    {{"log_sigmoid", 1, 0, 0, 0, 1.7, {0}}, TAKES_FLOATING, 0},
    {{"softsign", 1, 0, 0, 0, 1.5, {0}}, TAKES_FLOATING, 0},
    {{"elu", 1, 1, 0, 0, 1, {1}}, TAKES_FLOATING, 0},
    {{"celu", 1, 1, 0, 0, 1, {1}}, TAKES_FLOATING, 0},
    {{"selu", 1, 0, 0, 0, 1.8, {0}}, TAKES_FLOATING, 0},
    {{"hard_sigmoid", 1, 0, 0, 0, 1.1, {0}}, TAKES_FLOATING, 0},
    {{"hard_swish", 1, 0, 0, 0, 1.5, {0}}, TAKES_FLOATING, 0},
    {{"thresholded_relu", 1, 1, 0, 0, 0.5, {1}}, TAKES_FLOATING, 0},
    {{"prelu", 2, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"swiglu", 2, 0, 0, 0, 1.95, {0}}, TAKES_FLOATING, 0},
    {{"geglu", 2, 0, 0, 0, 1.95, {0}}, TAKES_FLOATING, 0},
    {{"modf.fraction", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"modf.integral", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"frexp.mantissa", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"frexp.exponent", 1, 0, 0, 0, 0.5, {0}}, TAKES_FLOATING, 0},
    {{"divmod.quotient", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
    {{"divmod.remainder", 2, 0, 0, 0, 0.5, {0}}, TAKES_NUMERIC, 0},
};

const ref_op_info *ref_op_describe(ref_op op) {
  return &ops[op].info;
}

double ref_op_bound(ref_op op, ref_dtype compute) {
  return op == REF_CBRT && compute == REF_F64 ? 0.51 : ref_op_describe(op)->ulp;
}

ref_op ref_op_find(const char *name) {
  int op = 0;
  while (op < REF_N_OPS && strcmp(ops[op].info.name, name) != 0) op++;
  return (ref_op)op;
}

int ref_resolve(ref_op op, const ref_dtype *in, ref_dtype *result, ref_dtype *compute) {
  int n_in = ops[op].info.n_in, first = 0;
  if (op == REF_FULL) {
    *compute = *result;
    return 0;
  }
  if (op == REF_WHERE) {
    if (in[0] != REF_BOOL) return -1;
    first = 1;
  }
  if (op == REF_FLOAT_POWER) {
    *result = *compute = REF_F64;
    return 0;
  }
  ref_dtype t = in[first];
  for (int k = first + 1; k < n_in; k++) t = ref_promote(t, in[k]);
  if (t == REF_N_DTYPES) return -1;
  if ((ops[op].takes == TAKES_NUMERIC || ops[op].takes == TAKES_INTEGER) && t == REF_BOOL) return -1;
  if ((ops[op].takes == TAKES_INTEGER || ops[op].takes == TAKES_INTEGRAL) && dtypes[t].kind == REF_KIND_FLOAT) return -1;
  if (ops[op].takes == TAKES_FLOATING) t = ref_floating(t);
  int is_own = op == REF_NEXTAFTER || op == REF_SPACING; /* of the dtype's own numbers */
  *compute = !ops[op].info.move && !is_own ? ref_compute(t) : t;
  if (op == REF_ASTYPE || op == REF_SATURATE_CAST) {
    *compute = in[0];
    return 0;
  }
  *result = ops[op].bool_out ? REF_BOOL : op == REF_BITWISE_COUNT ? REF_U8 : op == REF_FREXP_EXPONENT ? REF_I32 : t;
  return 0;
}

int ref_may_store(ref_op op, ref_dtype result, ref_dtype out) {
  return ops[op].info.cast || dtypes[out].kind >= dtypes[result].kind;
}

/* ---- Arithmetic in the compute dtype ---------------------------------------------------------------------------- */

static __int128 greatest_divisor(__int128 a, __int128 b) {
  return b ? greatest_divisor(b, a % b) : a < 0 ? -a : a;
}

/* Integers: exact in 128 bits (but for a product's or power's high part, which wraps away), the caller wraps. Bools are 0
 * and 1. */
static __int128 eval_integer(ref_op op, ref_dtype k, const __int128 *x, const __int128 *param) {
  int bits = dtypes[k].size * 8;
  switch (op) {
    case REF_POSITIVE: return x[0];
    case REF_SIGN: return (x[0] > 0) - (x[0] < 0);
    case REF_SQUARE: return (__int128)((unsigned __int128)x[0] * (unsigned __int128)x[0]);
    case REF_BITWISE_AND: return x[0] & x[1];
    case REF_BITWISE_OR: return x[0] | x[1];
    case REF_BITWISE_XOR: return x[0] ^ x[1];
    case REF_BITWISE_INVERT: return k == REF_BOOL ? 1 - x[0] : -1 - x[0];
    case REF_BITWISE_LEFT_SHIFT: {
      uint64_t r = (uint64_t)x[0];
      if (x[1] < 0 || x[1] >= bits) return 0;
      for (__int128 i = 0; i < x[1]; i++) r *= 2;
      return (__int128)r;
    }
    case REF_BITWISE_RIGHT_SHIFT: {
      __int128 r = x[0], places = x[1] < 0 || x[1] >= bits ? bits : x[1];
      for (__int128 i = 0; i < places; i++) r = (r - (r & 1)) / 2;
      return r;
    }
    case REF_NEGATIVE: return -x[0];
    case REF_ABS: return x[0] < 0 ? -x[0] : x[0];
    case REF_RELU: return x[0] < 0 ? 0 : x[0];
    case REF_ADD: return x[0] + x[1];
    case REF_SUBTRACT: return x[0] - x[1];
    case REF_MULTIPLY: return (__int128)((unsigned __int128)x[0] * (unsigned __int128)x[1]);
    case REF_MAXIMUM:
    case REF_FMAX: return x[0] > x[1] ? x[0] : x[1];
    case REF_MINIMUM:
    case REF_FMIN: return x[0] < x[1] ? x[0] : x[1];
    case REF_CLIP: {
      __int128 y = x[0] > param[0] ? x[0] : param[0];
      return y < param[1] ? y : param[1];
    }
    case REF_FLOOR:
    case REF_CEIL:
    case REF_TRUNC:
    case REF_FIX:
    case REF_ROUND: return x[0];
    case REF_TRUNC_DIVIDE: return x[1] ? x[0] / x[1] : 0;
    case REF_FMOD: return x[1] ? x[0] % x[1] : 0;
    case REF_FLOOR_DIVIDE:
    case REF_REMAINDER: {
      if (!x[1]) return 0;
      int is_above = x[0] % x[1] && (x[0] < 0) != (x[1] < 0); /* the truncated quotient */
      return op == REF_REMAINDER ? x[0] % x[1] + is_above * x[1] : x[0] / x[1] - is_above;
    }
    case REF_GCD: return greatest_divisor(x[0], x[1]);
    case REF_LCM: {
      __int128 a = x[0] < 0 ? -x[0] : x[0], b = x[1] < 0 ? -x[1] : x[1];
      return a ? (__int128)((unsigned __int128)(a / greatest_divisor(a, b)) * (unsigned __int128)b) : 0;
    }
    case REF_BITWISE_COUNT: {
      int n = 0;
      for (__int128 rest = x[0] < 0 ? -x[0] : x[0]; rest; rest >>= 1) n += (int)(rest & 1);
      return n;
    }
    case REF_POW: {
      if (x[1] < 0) return x[0] == 1 ? 1 : x[0] == -1 ? (x[1] & 1 ? -1 : 1) : 0;
      /* Bit by bit from the top, modulo 2^64. */
      uint64_t r = 1, base = (uint64_t)x[0];
      for (int b = bits - 1; b >= 0; b--) r = r * r * ((x[1] >> b) & 1 ? base : 1);
      return (__int128)r;
    }
    default: break;
  }
  fprintf(stderr, "ref: %s has no integer form\n", ops[op].info.name);
  abort();
}

static float narrow(ref_real x) {
  return (float)x;
}

/* The largest whole number of k that times b is no more than a, both above 0 and finite. All products are exact. */
static ref_real whole_quotient(ref_dtype k, ref_real a, ref_real b) {
  ref_real dense = REAL(ldexp)((ref_real)1, dtypes[k].digits); /* up to here k has every whole number */
  ref_real n = ref_value(k, round_to_float(k, REAL(floor)(a / b)));
  while (n * b > a) {
    ref_real half = n > dense ? ref_ulp(k, n) / 2 : 1; /* the step below a power of two */
    n -= ref_value(k, round_to_float(k, n - half)) == n - half ? half : 2 * half;
  }
  for (;;) {
    ref_real above = n + (n < dense ? 1 : ref_ulp(k, n));
    if (above * b > a) return n;
    n = above;
  }
}

/* x / y as a whole number of k: towards zero, or down. What overflows k, zeros and infinities are as in division. */
static ref_real divide_whole(ref_dtype k, ref_real x, ref_real y, int down) {
  ref_real q = x / y, divided = ref_value(k, round_to_float(k, q)), a = REAL(fabs)(x), b = REAL(fabs)(y);
  if (x == 0 || is_nan(divided) || is_infinite(divided) || is_infinite(y)) return divided;
  ref_real n = whole_quotient(k, a, b);
  if (down && is_negative(q) && n * b < a) n += n < REAL(ldexp)((ref_real)1, dtypes[k].digits) ? 1 : ref_ulp(k, n);
  return REAL(copysign)(n, q);
}

/* Python's %: C's fmod, and y more where the signs differ, rounded. */
static ref_real python_remainder(ref_dtype k, ref_real x, ref_real y) {
  ref_real m = REAL(fmod)(x, y);
  if (m == 0) return REAL(copysign)(m, y);
  if (is_nan(m) || is_negative(m) == is_negative(y)) return m;
  return ref_value(k, round_to_float(k, m + y));
}

/* The number of dtype k after x, away from zero or towards it, by its bits. */
static ref_real neighbour(ref_dtype k, ref_real x, int step) {
  return ref_value(k, ref_cast(k, x, REF_KIND_FLOAT) + (uint64_t)(int64_t)step);
}

static ref_real next_after(ref_dtype k, ref_real x, ref_real y) {
  if (is_nan(x) || is_nan(y)) return nan_value();
  if (x == y) return y;
  if (x == 0) return REAL(copysign)(ref_value(k, 1), y);
  return neighbour(k, x, (x < y) == (x > 0) ? 1 : -1);
}

static ref_real spacing(ref_dtype k, ref_real x) {
  if (is_nan(x) || is_infinite(x)) return nan_value();
  if (x == 0) return ref_value(k, 1);
  return neighbour(k, x, 1) - x;
}

/* x * 2^n, rounded once. Beyond a million everything is 0 or infinite. */
static ref_real scaled(ref_dtype k, ref_real x, ref_real n) {
  if (is_nan(x) || is_nan(n)) return nan_value();
  n = REAL(rint)(n);
  n = n > 1e6 ? 1e6 : n < -1e6 ? -1e6 : n;
  return ref_value(k, ref_cast(k, REAL(ldexp)(REAL(ldexp)(x, (int)(n / 2)), (int)n - (int)(n / 2)), REF_KIND_FLOAT));
}

/* The parts of a number: x = fraction + integral, x = mantissa * 2^exponent. */
static ref_real part(ref_op op, ref_real x) {
  int exponent = 0, is_finite = !is_nan(x) && !is_infinite(x);
  ref_real mantissa = is_finite ? REAL(frexp)(x, &exponent) : x;
  switch (op) {
    case REF_MODF_INTEGRAL: return is_finite ? REAL(trunc)(x) : x;
    case REF_MODF_FRACTION: return is_nan(x) ? x : REAL(copysign)(is_finite ? x - REAL(trunc)(x) : 0, x);
    case REF_FREXP_MANTISSA: return mantissa;
    default: return exponent;
  }
}

/* The exact ops: IEEE operations of the compute dtype, one a line. `volatile` keeps them apart. */
static ref_real eval_exact(ref_op op, ref_dtype k, const ref_real *x, const ref_real *param) {
  switch (op) {
    case REF_NEGATIVE: return -x[0];
    case REF_ABS: return REAL(fabs)(x[0]);
    case REF_RELU: return is_nan(x[0]) || x[0] > 0 ? x[0] : 0;
    case REF_MAXIMUM:
    case REF_MINIMUM: {
      if (is_nan(x[0]) || is_nan(x[1])) return nan_value();
      int first_is_less = x[0] < x[1] || (x[0] == x[1] && is_negative(x[0]));
      return (op == REF_MAXIMUM) == first_is_less ? x[1] : x[0];
    }
    case REF_FMAX:
    case REF_FMIN:
      if (is_nan(x[0])) return x[1];
      return is_nan(x[1]) ? x[0] : eval_exact(op == REF_FMAX ? REF_MAXIMUM : REF_MINIMUM, k, x, NULL);
    case REF_POSITIVE: return x[0];
    case REF_SIGN: return is_nan(x[0]) ? x[0] : (x[0] > 0) - (x[0] < 0);
    case REF_HEAVISIDE: return is_nan(x[0]) ? x[0] : x[0] == 0 ? x[1] : x[0] > 0;
    case REF_COPYSIGN: return is_negative(x[1]) ? -REAL(fabs)(x[0]) : REAL(fabs)(x[0]);
    case REF_SQUARE: {
      ref_real both[2] = {x[0], x[0]};
      return eval_exact(REF_MULTIPLY, k, both, NULL);
    }
    case REF_RECIPROCAL: {
      ref_real quotient[2] = {1, x[0]};
      return eval_exact(REF_DIVIDE, k, quotient, NULL);
    }
    case REF_CLIP: {
      ref_real a[2] = {x[0], param[0]}, b[2];
      b[0] = eval_exact(REF_MAXIMUM, k, a, NULL);
      b[1] = param[1];
      return eval_exact(REF_MINIMUM, k, b, NULL);
    }
    case REF_FLOOR: return REAL(floor)(x[0]);
    case REF_CEIL: return REAL(ceil)(x[0]);
    case REF_FIX:
    case REF_TRUNC: return REAL(trunc)(x[0]);
    case REF_ROUND:
    case REF_RINT: return REAL(rint)(x[0]);
    case REF_FLOOR_DIVIDE: return divide_whole(k, x[0], x[1], 1);
    case REF_TRUNC_DIVIDE: return divide_whole(k, x[0], x[1], 0);
    case REF_REMAINDER: return python_remainder(k, x[0], x[1]);
    case REF_FMOD: return REAL(fmod)(x[0], x[1]);
    case REF_LEAKY_RELU: {
      ref_real product[2] = {param[0], x[0]};
      return x[0] > 0 ? x[0] : eval_exact(REF_MULTIPLY, k, product, NULL);
    }
    case REF_PRELU: return x[0] > 0 ? x[0] : eval_exact(REF_MULTIPLY, k, x, NULL);
    case REF_THRESHOLDED_RELU: return is_nan(x[0]) || x[0] > param[0] ? x[0] : 0;
    case REF_LDEXP: return scaled(k, x[0], x[1]);
    case REF_NEXTAFTER: return next_after(k, x[0], x[1]);
    case REF_SPACING: return spacing(k, x[0]);
    case REF_MODF_FRACTION:
    case REF_MODF_INTEGRAL:
    case REF_FREXP_MANTISSA:
    case REF_FREXP_EXPONENT: return part(op, x[0]);
    default: break;
  }
  if (k == REF_F32) {
    volatile float a = narrow(x[0]), b = op == REF_SQRT ? 0 : narrow(x[1]), r;
    switch (op) {
      case REF_SQRT: r = sqrtf(a); break;
      case REF_ADD: r = a + b; break;
      case REF_SUBTRACT: r = a - b; break;
      case REF_MULTIPLY: r = a * b; break;
      case REF_DIVIDE: r = a / b; break;
      case REF_FMA: r = fmaf(a, b, narrow(x[2])); break;
      default: abort();
    }
    return r;
  }
  volatile double a = (double)x[0], b = op == REF_SQRT ? 0 : (double)x[1], r;
  switch (op) {
    case REF_SQRT: r = sqrt(a); break;
    case REF_ADD: r = a + b; break;
    case REF_SUBTRACT: r = a - b; break;
    case REF_MULTIPLY: r = a * b; break;
    case REF_DIVIDE: r = a / b; break;
    case REF_FMA: r = fma(a, b, (double)x[2]); break;
    default: abort();
  }
  return r;
}

/* What gives a bool. NaN is true as a condition, as every number but 0. */
static int eval_truth(ref_op op, const ref_real *x) {
  switch (op) {
    case REF_LESS: return x[0] < x[1];
    case REF_LESS_EQUAL: return x[0] < x[1] || x[0] == x[1];
    case REF_GREATER: return x[1] < x[0];
    case REF_GREATER_EQUAL: return x[1] < x[0] || x[0] == x[1];
    case REF_EQUAL: return x[0] == x[1];
    case REF_NOT_EQUAL: return !(x[0] == x[1]);
    case REF_ISNAN: return is_nan(x[0]);
    case REF_ISINF: return is_infinite(x[0]);
    case REF_ISFINITE: return !is_nan(x[0]) && !is_infinite(x[0]);
    case REF_SIGNBIT: return is_negative(x[0]);
    case REF_LOGICAL_AND: return x[0] == 0 ? 0 : x[1] == 0 ? 0 : 1;
    case REF_LOGICAL_OR: return x[0] == 0 ? (x[1] == 0 ? 0 : 1) : 1;
    case REF_LOGICAL_XOR: return (x[0] == 0) != (x[1] == 0);
    case REF_LOGICAL_NOT: return x[0] == 0;
    default: break;
  }
  fprintf(stderr, "ref: %s gives no bool\n", ops[op].info.name);
  abort();
}

/* What an error is counted in the ULPs of, where that is larger than the result: of a sum of powers the larger operand, of a
 * product with an activation that may be subnormal the other factor's product with the least normal number. */
static ref_real least_of(ref_op op, ref_dtype k, const ref_real *x) {
  if (op == REF_LOGADDEXP || op == REF_LOGADDEXP2) return REAL(fabs)(x[0] > x[1] ? x[0] : x[1]);
  if ((op == REF_SWIGLU || op == REF_GEGLU) && !is_infinite(x[1])) return REAL(ldexp)(REAL(fabs)(x[1]), dtypes[k].emin);
  return 0;
}

/* The larger and log(1 + what the smaller adds). */
static ref_real log_of_sum(ref_op op, ref_real x, ref_real y) {
  ref_real m = x > y ? x : y, d = x > y ? y - x : x - y;
  if (is_nan(x) || is_nan(y)) return nan_value();
  if (is_infinite(m)) return m;
  if (op == REF_LOGADDEXP) return m + REAL(log1p)(REAL(exp)(d));
  return m + REAL(log1p)(REAL(exp2)(d)) / REAL(log)((ref_real)2);
}

/* 180 / pi in 113 bits. */
static ref_real degrees_per_radian(void) {
  return 45 / REAL(atan)((ref_real)1);
}

/* sin(pi x) / (pi x). x less the nearest integer is exact; zeros have no sign of their own. */
static ref_real sinc(ref_real x) {
  if (is_nan(x) || is_infinite(x)) return nan_value();
  if (x == 0) return 1;
  ref_real pi = 4 * REAL(atan)((ref_real)1), whole = REAL(rint)(x), r = x - whole;
  if (r == 0) return 0;
  return (REAL(trunc)(whole / 2) * 2 == whole ? 1 : -1) * REAL(sin)(pi * r) / (pi * x);
}

/* log(1 + e^x) */
static ref_real softplus(ref_real x) {
  return x > 0 ? x + REAL(log1p)(REAL(exp)(-x)) : REAL(log1p)(REAL(exp)(x));
}

/* x times a share that is 0 at -infinity and 1 at infinity; the limit there is -0 */
static ref_real shared(ref_real x, ref_real share) {
  return is_infinite(x) ? (x > 0 ? x : -(ref_real)0) : x * share;
}

static ref_real scaled_elu(ref_real x, ref_real above, ref_real below) {
  return x > 0 ? above * x : below * REAL(expm1)(x);
}

static ref_real activation(ref_op op, ref_real x, const ref_real *param) {
  switch (op) {
    case REF_SILU: return shared(x, 1 / (1 + REAL(exp)(-x)));
    case REF_GELU_TANH: {
      ref_real scale = REAL(sqrt)(2 / REAL(atan)((ref_real)1)); /* twice the root of 2 / pi */
      return shared(x, 1 / (1 + REAL(exp)(-scale * (x + x * x * x * 44715 / 1000000))));
    }
    case REF_MISH: return shared(x, REAL(tanh)(softplus(x)));
    case REF_SOFTPLUS: return param[0] * x > param[1] ? x : softplus(param[0] * x) / param[0];
    case REF_LOG_SIGMOID: return -softplus(-x);
    case REF_SOFTSIGN: return is_infinite(x) ? REAL(copysign)((ref_real)1, x) : x / (1 + REAL(fabs)(x));
    case REF_ELU: return scaled_elu(x, 1, param[0]);
    case REF_CELU: return x > 0 ? x : scaled_elu(x / param[0], 1, param[0]);
    case REF_SELU: { /* 1.0507009873554804934193349852946, and that times 1.6732632423543772848170429916717 */
      ref_real above = (ref_real)0x1.0cfabd6a91132p0 + 0x1.6fc7d272f2695p-55;
      return scaled_elu(x, above, (ref_real)0x1.c212cc640f031p0 + 0x1.05161b045a1fep-56);
    }
    case REF_HARD_SIGMOID: return is_nan(x) ? x : x > 3 ? 1 : x > -3 ? (x + 3) / 6 : 0;
    default: return is_nan(x) || x > 3 ? x : x > -3 ? x * (x + 3) / 6 : -(ref_real)0; /* hard_swish */
  }
}

ref_real ref_function(ref_op op, ref_real x, ref_real y, const ref_real *param) {
  switch (op) {
    case REF_EXP: return REAL(exp)(x);
    case REF_LOG: return x < 0 ? nan_value() : REAL(log)(x);
    case REF_TANH: return REAL(tanh)(x);
    case REF_ERF: return REAL(erf)(x);
    case REF_POW:
    case REF_FLOAT_POWER: return REAL(pow)(x, y);
    case REF_EXP2: return REAL(exp2)(x);
    case REF_EXPM1: return REAL(expm1)(x);
    case REF_LOG2: return x < 0 ? nan_value() : REAL(log2)(x);
    case REF_LOG10: return x < 0 ? nan_value() : REAL(log10)(x);
    case REF_LOG1P: return x < -1 ? nan_value() : REAL(log1p)(x);
    case REF_SINH: return REAL(sinh)(x);
    case REF_COSH: return REAL(cosh)(x);
    case REF_ASINH: return REAL(asinh)(x);
    case REF_ACOSH: return x < 1 ? nan_value() : REAL(acosh)(x);
    case REF_ATANH: return REAL(fabs)(x) > 1 ? nan_value() : REAL(atanh)(x);
    case REF_ERFC: return REAL(erfc)(x);
    case REF_CBRT: return REAL(cbrt)(x);
    case REF_LOGADDEXP:
    case REF_LOGADDEXP2: return log_of_sum(op, x, y);
    case REF_SIGMOID: return 1 / (1 + REAL(exp)(-x));
    case REF_ATAN: return REAL(atan)(x);
    case REF_ATAN2: return REAL(atan2)(x, y);
    case REF_ASIN: return REAL(asin)(x);
    case REF_ACOS: return REAL(acos)(x);
    case REF_HYPOT: return REAL(hypot)(x, y);
    case REF_SIN: return is_infinite(x) ? nan_value() : REAL(sin)(x);
    case REF_COS: return is_infinite(x) ? nan_value() : REAL(cos)(x);
    case REF_TAN: return is_infinite(x) ? nan_value() : REAL(tan)(x);
    case REF_DEGREES: return x * degrees_per_radian();
    case REF_RADIANS: return x / degrees_per_radian();
    case REF_SINC: return sinc(x);
    case REF_GELU: /* x * Phi(x); its limits are -0 and +inf */
      if (is_infinite(x)) return x > 0 ? x : -(ref_real)0;
      return x / 2 * REAL(erfc)(-x / REAL(sqrt)((ref_real)2));
    case REF_SWIGLU: return (is_infinite(y) ? x : ref_function(REF_SILU, x, 0, NULL)) * y;
    case REF_GEGLU: return (is_infinite(y) ? x : ref_function(REF_GELU, x, 0, NULL)) * y;
    default: return activation(op, x, param);
  }
}

/* Position of a float's bits on the line of values: -inf .. -0 +0 .. inf. */
static int64_t place(ref_dtype d, uint64_t bits) {
  int64_t size = (int64_t)(bits & ~sign_mask(d));
  return bits & sign_mask(d) ? -1 - size : size;
}

static ref_expect exactly(uint64_t bits, ref_real exact) {
  return (ref_expect){bits, bits, exact};
}

/* All roundings of exact +- bound, on exact's side of zero. The bound is in ULPs of exact, or of `least` where that is more
 * (then either side of zero will do). */
static ref_expect around(ref_dtype out, ref_dtype k, ref_real exact, double ulp, ref_real least) {
  if (is_nan(exact) || is_infinite(exact) || exact == 0) return exactly(ref_cast(out, exact, REF_KIND_FLOAT), exact);
  int near_zero = REAL(fabs)(exact) < least;
  ref_real bound = ref_ulp(k, near_zero ? least : exact) * (ref_real)ulp;
  ref_real largest = REAL(ldexp)((ref_real)1, dtypes[k].emax + 1);
  ref_real ends[2] = {exact - bound, exact + bound};
  ref_expect e = {0, 0, exact};
  for (int i = 0; i < 2; i++) {
    if (!near_zero && is_negative(ends[i]) != is_negative(exact)) ends[i] = REAL(copysign)((ref_real)0, exact);
    /* Beyond k's range a value is k's infinity, in a wider output as well. */
    if (ends[i] >= largest) ends[i] = (ref_real)INFINITY;
    if (ends[i] <= -largest) ends[i] = -(ref_real)INFINITY;
    /* The computed value is a k number within the bound: what is stored is that, rounded again. */
    uint64_t bits;
    if (dtypes[out].digits < dtypes[k].digits) bits = round_to_float(out, ends[i]);
    else {
      /* k's numbers inwards of the end. */
      uint64_t kb = round_to_float(k, ends[i]);
      ref_real kv = ref_value(k, kb);
      if (!is_infinite(kv) && (i == 0 ? kv < ends[i] : kv > ends[i])) {
        ref_real inward = kv + (i == 0 ? 1 : -1) * ref_ulp(k, kv);
        if (i == 0 ? inward <= exact : inward >= exact) kb = round_to_float(k, inward);
      }
      bits = round_to_float(out, ref_value(k, kb));
    }
    if (i == 0) e.low = bits;
    else e.high = bits;
  }
  return e;
}

/* The declared bound is for the defaults: with other parameters a product and a quotient by them are rounded, and errors before
 * that are up to twice as many ULPs. */
static double more_of(const ref_op_info *info, const ref_real *param) {
  for (int i = 0; i < info->n_params; i++) {
    if (param[i] != info->param[i]) return 2;
  }
  return 0;
}

ref_expect ref_eval(ref_op op, const ref_dtype *in, const uint64_t *x, const ref_real *param, ref_dtype out) {
  op = op == REF_DIVMOD_QUOTIENT ? REF_FLOOR_DIVIDE : op == REF_DIVMOD_REMAINDER ? REF_REMAINDER : op;
  const ref_op_info *info = &ops[op].info;
  ref_dtype t = out, k;
  ref_real v[REF_MAX_INPUTS] = {0}, p[REF_MAX_PARAMS] = {0};
  if (!param) param = info->param;
  if (ref_resolve(op, in, &t, &k)) abort();
  if (op == REF_FULL) return exactly(ref_cast(out, param[0], REF_KIND_FLOAT), param[0]);
  if (op == REF_ASTYPE) {
    ref_real value = ref_value(in[0], x[0]);
    return exactly(ref_cast(out, value, dtypes[in[0]].kind), value);
  }
  if (op == REF_SATURATE_CAST) { /* as a float does, into an integer */
    ref_real value = ref_value(in[0], x[0]);
    return exactly(ref_cast(out, value, REF_KIND_FLOAT), value);
  }
  if (info->move) { /* one of the inputs goes to the output; bits stay when all dtypes are one */
    int chosen = op == REF_WHERE ? (x[0] & 0xff ? 1 : 2) : 0;
    ref_real value = ref_value(in[chosen], x[chosen]);
    if (in[chosen] == out && out == t) return exactly(x[chosen], value);
    uint64_t moved = ref_cast(t, value, dtypes[in[chosen]].kind);
    return exactly(ref_cast(out, ref_value(t, moved), dtypes[t].kind), value);
  }
  for (int i = 0; i < info->n_in; i++) {
    /* An operand as it is computed: a float that k is computed in loads as it lies, its NaN with its sign; others are cast. */
    v[i] = dtypes[in[i]].kind == REF_KIND_FLOAT && (in[i] == k || k == REF_F32)
               ? ref_value(in[i], x[i])
               : ref_value(k, ref_cast(k, ref_value(in[i], x[i]), dtypes[in[i]].kind));
  }
  for (int i = 0; i < info->n_params; i++) p[i] = ref_value(k, ref_cast(k, param[i], REF_KIND_FLOAT));
  if (ops[op].bool_out) {
    int yes = eval_truth(op, v);
    return exactly(ref_cast(out, yes, REF_KIND_BOOL), yes);
  }
  if (dtypes[k].kind != REF_KIND_FLOAT) {
    __int128 a[REF_MAX_INPUTS] = {0}, b[REF_MAX_PARAMS] = {0};
    for (int i = 0; i < info->n_in; i++) a[i] = (__int128)v[i];
    for (int i = 0; i < info->n_params; i++) b[i] = (__int128)p[i];
    __int128 r = eval_integer(op, k, a, b);
    ref_real value = ref_value(k, (uint64_t)r & bits_mask(k)); /* wraps */
    return exactly(ref_cast(out, value, REF_KIND_INTEGER), value);
  }
  if (info->ulp > 0.5) {
    return around(out, k, ref_function(op, v[0], v[1], p), ref_op_bound(op, k) + more_of(info, param), least_of(op, k, v));
  }
  ref_real value = eval_exact(op, k, v, p);
  return exactly(ref_cast(out, value, op == REF_FREXP_EXPONENT ? REF_KIND_INTEGER : REF_KIND_FLOAT), value);
}

int ref_within(ref_dtype d, uint64_t got, const ref_expect *expect) {
  if (expect->low == expect->high) return got == expect->low;
  if (dtypes[d].kind != REF_KIND_FLOAT || ref_is_nan(d, got)) return 0;
  return place(d, got) >= place(d, expect->low) && place(d, got) <= place(d, expect->high);
}

/* ---- Tensors ---------------------------------------------------------------------------------------------------- */

int64_t ref_n_elements(const DLTensor *t) {
  int64_t n = 1;
  for (int i = 0; i < t->ndim; i++) n *= t->shape[i];
  return n;
}

char *ref_broadcast_address(const DLTensor *t, int ndim, const int64_t *index) {
  int64_t offset = 0, compact = 1;
  for (int i = t->ndim - 1; i >= 0; i--) {
    int64_t at = t->shape[i] == 1 ? 0 : index[ndim - t->ndim + i];
    offset += at * (t->strides ? t->strides[i] : compact);
    compact *= t->shape[i];
  }
  return (char *)t->data + t->byte_offset + offset * (t->dtype.bits / 8);
}

char *ref_address(const DLTensor *t, const int64_t *index) {
  return ref_broadcast_address(t, t->ndim, index);
}

int ref_next_index(int ndim, const int64_t *shape, int64_t *index) {
  for (int i = ndim - 1; i >= 0; i--) {
    if (++index[i] < shape[i]) return 1;
    index[i] = 0;
  }
  return 0;
}

ref_expect *ref_eval_tensor(ref_op op, DLTensor *const *in, const ref_real *param, const DLTensor *out) {
  int n_in = ops[op].info.n_in;
  int64_t n = ref_n_elements(out), i = 0, index[64] = {0};
  ref_dtype d[REF_MAX_INPUTS], od = ref_dtype_of(out->dtype);
  uint64_t x[REF_MAX_INPUTS];
  ref_expect *expect = malloc(sizeof *expect * (size_t)(n ? n : 1));
  for (int k = 0; k < n_in; k++) d[k] = ref_dtype_of(in[k]->dtype);
  if (n == 0) return expect;
  do {
    for (int k = 0; k < n_in; k++) x[k] = ref_get(d[k], ref_broadcast_address(in[k], out->ndim, index));
    expect[i++] = ref_eval(op, d, x, param, od);
  } while (ref_next_index(out->ndim, out->shape, index));
  return expect;
}

int ref_check_tensor(const DLTensor *out, const ref_expect *expect, ref_difference *difference) {
  int64_t n = ref_n_elements(out), i = 0, index[64] = {0};
  ref_dtype d = ref_dtype_of(out->dtype);
  memset(difference, 0, sizeof *difference);
  if (n == 0) return 1;
  do {
    uint64_t got = ref_get(d, ref_address(out, index));
    if (!ref_within(d, got, &expect[i])) {
      if (difference->n_bad++ == 0) {
        difference->first = i;
        difference->got = got;
        difference->wanted = expect[i];
        difference->ulp = dtypes[d].kind == REF_KIND_FLOAT ? ref_ulp_error(d, got, expect[i].exact) : 0;
      }
    }
    i++;
  } while (ref_next_index(out->ndim, out->shape, index));
  return difference->n_bad == 0;
}

char *ref_text(ref_dtype d, uint64_t bits, char *buffer) {
  if (dtypes[d].kind == REF_KIND_FLOAT) {
    snprintf(buffer, 64, "%.17g (0x%0*llx)", (double)ref_value(d, bits), dtypes[d].size * 2, (unsigned long long)bits);
  } else {
    snprintf(buffer, 64, "%lld (0x%0*llx)", (long long)ref_value(d, bits), dtypes[d].size * 2, (unsigned long long)bits);
  }
  return buffer;
}
