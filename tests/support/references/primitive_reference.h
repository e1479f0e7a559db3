/* SPDX-License-Identifier: Apache-2.0
 *
 * primitive_reference.h: the primitives once more, for tests: which there are, and what each gives, in plain C. Shares no code
 * with templates/ and none with the generator. */
#ifndef PRIMITIVE_REFERENCE_H
#define PRIMITIVE_REFERENCE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "tap.h"

__extension__ typedef __int128 primitive_wide;

/* Kinds of types. */
enum { BOOL = 1, SIGNED = 2, UNSIGNED = 4, FLOAT = 8 };
enum { INTEGER = SIGNED | UNSIGNED, NUMBER = INTEGER | FLOAT, ANY = NUMBER | BOOL };

typedef struct rule {
  const char *op;
  int n_args;
  int kinds;   /* of the last argument */
  char result; /* 's' the same type; 'b' bool; '=' another rule, see is_there in t045 */
  int is_called; /* an expression calls it by its name */
} rule;

/* By name. */
static const rule rules[] = {
    {"abs", 1, NUMBER, 's', 1},
    {"add", 2, NUMBER, 's', 0},
    {"and", 2, INTEGER | BOOL, 's', 0},
    {"bits", 1, FLOAT, '=', 0},
    {"canon", 1, FLOAT | BOOL, 's', 0},
    {"cast", 1, ANY, '=', 0},
    {"ceil", 1, FLOAT, 's', 1},
    {"copysign", 2, FLOAT, 's', 1},
    {"count_bits", 1, INTEGER, 's', 1},
    {"div", 2, FLOAT, 's', 0},
    {"eq", 2, ANY, 'b', 0},
    {"floor", 1, FLOAT, 's', 1},
    {"fma", 3, FLOAT, 's', 1},
    {"from_bits", 1, INTEGER, '=', 0},
    {"gcd", 2, INTEGER, 's', 1},
    {"ge", 2, ANY, 'b', 0},
    {"gt", 2, ANY, 'b', 0},
    {"le", 2, ANY, 'b', 0},
    {"lnot", 1, BOOL, 's', 0},
    {"lookup", 2, INTEGER, '=', 0},
    {"lt", 2, ANY, 'b', 0},
    {"maximum", 2, NUMBER, 's', 1},
    {"minimum", 2, NUMBER, 's', 1},
    {"mul", 2, NUMBER, 's', 0},
    {"ne", 2, ANY, 'b', 0},
    {"neg", 1, NUMBER, 's', 0},
    {"not", 1, INTEGER, 's', 0},
    {"or", 2, INTEGER | BOOL, 's', 0},
    {"quot", 2, INTEGER, 's', 1},
    {"raw", 1, FLOAT, '=', 0},
    {"rem", 2, NUMBER, 's', 1},
    {"rint", 1, FLOAT, 's', 1},
    {"round_bf16", 1, ANY, '=', 0},
    {"round_f16", 1, ANY, '=', 0},
    {"select", 3, ANY, 's', 0},
    {"shl", 2, INTEGER, 's', 0},
    {"shr", 2, INTEGER, 's', 0},
    {"signbit", 1, FLOAT, 'b', 1},
    {"sqrt", 1, FLOAT, 's', 1},
    {"sub", 2, NUMBER, 's', 0},
    {"trunc", 1, FLOAT, 's', 1},
    {"xor", 2, INTEGER | BOOL, 's', 0},
};
enum { N_RULES = sizeof rules / sizeof rules[0] };

static inline uint64_t mask_of(int bits) { return bits == 64 ? ~0ull : (1ull << bits) - 1; }
static inline double f64_of(uint64_t x) { double d; memcpy(&d, &x, 8); return d; }
static inline float f32_of(uint64_t x) { uint32_t u = (uint32_t)x; float f; memcpy(&f, &u, 4); return f; }
static inline uint64_t of_f64(double d) { uint64_t x; memcpy(&x, &d, 8); return x; }
static inline uint64_t of_f32(float f) { uint32_t u; memcpy(&u, &f, 4); return u; }

/* What belongs to floats of a size. */
static inline uint64_t infinity_of(int bits) { return bits == 64 ? 0x7ffull << 52 : 0x7f800000ull; }
static inline int is_nan(int bits, uint64_t x) { return (x & (mask_of(bits) >> 1)) > infinity_of(bits); }

/* The value of an integer. */
static inline primitive_wide primitive_value(int bits, int is_signed, uint64_t x) {
  return is_signed ? (primitive_wide)((int64_t)(x << (64 - bits)) >> (64 - bits)) : (primitive_wide)x;
}

static inline primitive_wide greatest_divisor(primitive_wide x, primitive_wide y) { return y ? greatest_divisor(y, x % y) : x; }

/* Of integers; a condition is an unsigned one, 0 or 1. */
static inline uint64_t primitive_of_integers(const char *op, int bits, int is_signed, uint64_t a, uint64_t b) {
  const primitive_wide x = primitive_value(bits, is_signed, a), y = primitive_value(bits, is_signed, b);
  primitive_wide r = 0;
  if (!strcmp(op, "add")) r = x + y;
  else if (!strcmp(op, "sub")) r = x - y;
  else if (!strcmp(op, "mul")) return (a * b) & mask_of(bits);
  else if (!strcmp(op, "neg")) r = -x;
  else if (!strcmp(op, "abs")) r = x < 0 ? -x : x;
  else if (!strcmp(op, "maximum")) r = x > y ? x : y;
  else if (!strcmp(op, "minimum")) r = x < y ? x : y;
  else if (!strcmp(op, "and")) r = x & y;
  else if (!strcmp(op, "or")) r = x | y;
  else if (!strcmp(op, "xor")) r = x ^ y;
  else if (!strcmp(op, "not")) r = ~x;
  else if (!strcmp(op, "count_bits")) {
    for (int bit = 0; bit < bits; bit++) r += a >> bit & 1;
  }
  else if (!strcmp(op, "quot")) r = y ? x / y : 0;
  else if (!strcmp(op, "rem")) r = y ? x % y : 0;
  else if (!strcmp(op, "gcd")) r = greatest_divisor(x < 0 ? -x : x, y < 0 ? -y : y);
  else if (!strcmp(op, "lnot")) r = !x;
  else if (!strcmp(op, "shl")) return y < 0 || y >= bits ? 0 : a << (int)y & mask_of(bits);
  else if (!strcmp(op, "shr")) r = y < 0 || y >= bits ? (x < 0 ? -1 : 0) : x >> (int)y;
  else bail("no reference for %s of integers", op);
  return (uint64_t)r & mask_of(bits);
}

/* Of floats: a result that is NaN may have any bits of one. */
static inline uint64_t primitive_of_floats(const char *op, int bits, const uint64_t *x) {
  uint64_t sign = 1ull << (bits - 1), a = x[0], b = x[1];
#define IN_BOTH(F, D) (bits == 64 ? of_f64(D) : of_f32(F))
#define A32 f32_of(a)
#define B32 f32_of(b)
#define A64 f64_of(a)
#define B64 f64_of(b)
  if (!strcmp(op, "add")) return IN_BOTH(A32 + B32, A64 + B64);
  if (!strcmp(op, "sub")) return IN_BOTH(A32 - B32, A64 - B64);
  if (!strcmp(op, "mul")) return IN_BOTH(A32 * B32, A64 * B64);
  if (!strcmp(op, "div")) return IN_BOTH(A32 / B32, A64 / B64);
  if (!strcmp(op, "rem")) return IN_BOTH(fmodf(A32, B32), fmod(A64, B64));
  if (!strcmp(op, "sqrt")) return IN_BOTH(sqrtf(A32), sqrt(A64));
  if (!strcmp(op, "rint")) return IN_BOTH(rintf(A32), rint(A64));
  if (!strcmp(op, "floor")) return IN_BOTH(floorf(A32), floor(A64));
  if (!strcmp(op, "ceil")) return IN_BOTH(ceilf(A32), ceil(A64));
  if (!strcmp(op, "trunc")) return IN_BOTH(truncf(A32), trunc(A64));
  if (!strcmp(op, "fma")) return IN_BOTH(fmaf(A32, B32, f32_of(x[2])), fma(A64, B64, f64_of(x[2])));
  if (!strcmp(op, "neg")) return a ^ sign;
  if (!strcmp(op, "abs")) return a & ~sign;
  if (!strcmp(op, "copysign")) return (a & ~sign) | ((is_nan(bits, b) ? 0 : b) & sign);
  if (!strcmp(op, "maximum") || !strcmp(op, "minimum")) {
    if (is_nan(bits, a)) return a;
    if (is_nan(bits, b)) return b;
    /* in order of value with -0 below +0: sign and magnitude as one integer */
    int64_t of_a = (int64_t)(a & ~sign), of_b = (int64_t)(b & ~sign);
    if (a & sign) of_a = -of_a - 1;
    if (b & sign) of_b = -of_b - 1;
    return (of_a > of_b) == (op[1] == 'a') ? a : b;
  }
#undef IN_BOTH
#undef A32
#undef B32
#undef A64
#undef B64
  bail("no reference for %s of floats", op);
}

#endif
