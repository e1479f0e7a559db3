/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_pairs.c: see accuracy_pairs.h. Why f64 will do for the exact value: a product of two numbers of up to 11 digits is
 * an f64, and so is every sum of f16s. Other sums, and quotients, are rounded to 53 digits, more than twice f32's 24 and 2:
 * rounding on to f32 gives what rounding at once does. libm's functions are within a few ULPs of f64. All that is 2^-38 of an
 * ULP here, or less. The steps are compiled as vectors, once for each SIMD level. */
#include "accuracy_pairs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy_functions.h"
#include "accuracy_libm.h"

#define STRETCH 1024    /* so many y are done at a time; f16s of one exponent */
#define MARGIN 0x1p-24
#define INLINE static inline __attribute__((always_inline))

struct accuracy_pairs {
  ref_op op;
  accuracy_format format;
  int fraction, infinity; /* bits of the fraction; the bits of infinity */
  int is_exact;
  uint16_t x_bits;
  double x, below, above, log2_x; /* x, its neighbours, the logarithm of its size */
  double y[PAIRS_ROW], z[STRETCH], least[STRETCH], error[STRETCH]; /* least: as in accuracy_functions.h */
  uint16_t *power; /* 2^k modulo m, at k << (fraction + 1) | m, for all distances k of exponents and all significands m */
};

/* ---- Numbers as bits -------------------------------------------------------------------------------------------- */

INLINE uint64_t bits_of(double x) {
  uint64_t bits;
  memcpy(&bits, &x, 8);
  return bits;
}

INLINE double from_bits(uint64_t bits) {
  double x;
  memcpy(&x, &bits, 8);
  return x;
}

/* m in [0, 2^52) */
INLINE double from_whole(uint64_t m) {
  return from_bits(m | 0x4330000000000000) - 0x1p52;
}

/* 2^e for e in [-1022, 1023] */
INLINE double power_of_2(int64_t e) {
  return from_bits((uint64_t)(e + 1023) << 52);
}

/* What a number's significand counts is 2^(bottom + this). */
INLINE int64_t exponent_field(int64_t size, int fraction) {
  int64_t e = size >> fraction;
  return (e > 1 ? e : 1) - 1;
}

INLINE int64_t digits_of(int64_t size, int fraction) {
  int64_t hidden = (int64_t)1 << fraction;
  return (size & (hidden - 1)) | (size >= hidden ? hidden : 0);
}

/* The size of a number from its bits without the sign; infinity counts as the first power of two beyond the numbers, a NaN as two
 * ULPs more at least. */
INLINE double size_of(int64_t size, int fraction, int bottom) {
  return from_whole((uint64_t)digits_of(size, fraction)) * power_of_2(exponent_field(size, fraction) + bottom);
}

/* ---- Exact values ----------------------------------------------------------------------------------------------- */

/* Of the zeros +0. NaN where one is that. */
INLINE double larger(double x, double y) {
  return x > y ? x : y > x ? y : x == 0 ? x + y : x == y ? x : x + y;
}

INLINE double smaller(double x, double y) {
  return -larger(-x, -y);
}

INLINE int is_infinite(double x) {
  return fabs(x) == INFINITY;
}

/* x * 2^rint(n); beyond 600 nothing changes any more */
INLINE double scaled(double x, double n) {
  double whole = rint(n > 600 ? 600 : n < -600 ? -600 : n);
  double power = from_bits(bits_of(whole + (0x1.8p52 + 1023)) << 52);
  return n != n ? n : x * power;
}

/* x / y, an integer: down, or towards zero; where f32 has not all integers, the next one of its numbers that way. */
INLINE double whole_quotient(double x, double y, int is_down) {
  double q = x / y;
  uint64_t bits = bits_of(q), low = 0x1fffffff, cut = bits & ~low;
  if (fabs(q) < 0x1p24) return is_down ? floor(q) : trunc(q);
  return from_bits(is_down && q < 0 && (bits & low) != 0 ? cut + low + 1 : cut);
}

/* fmod: x = mx 2^ex and y = my 2^ey leave (mx 2^(ex - ey) mod my) 2^ey. All numbers here are below 2^53, quotients off from
 * integers by 2^-11 or more unless they are such. */
INLINE void fmod_values(const accuracy_pairs *p, int first, double *z) {
  const int fraction = p->fraction, n = 1 << fraction, bottom = p->format.bottom;
  const int64_t size = p->x_bits & 0x7fff, ex = exponent_field(size, fraction);
  const double mx = from_whole((uint64_t)digits_of(size, fraction));
  for (int at = 0; at < STRETCH; at += n) {
    const int y_size = (first + at) & 0x7fff;
    if (size >= p->infinity || y_size >= p->infinity) {
      for (int i = 0; i < n; i++) z[at + i] = size < p->infinity && y_size + i == p->infinity ? p->x : NAN;
      continue;
    }
    const int64_t distance = ex - exponent_field(y_size, fraction);
    const int my = (int)digits_of(y_size, fraction);
    const uint16_t *power = p->power + ((distance > 0 ? distance : 0) << (fraction + 1)) + my;
    const double y_scale = distance < 0 ? power_of_2(-distance) : 1;
    const double unit = power_of_2(ex - (distance > 0 ? distance : 0) + bottom);
    for (int i = 0; i < n; i++) {
      double a = distance > 0 ? mx * (double)power[i] : mx, b = (double)(my + i) * y_scale;
      z[at + i] = copysign((a - trunc(a / b) * b) * unit, p->x);
    }
  }
}

/* In libm's functions' place where it has no vectors. */
static void apply(double (*f)(double), double *z) {
  if (accuracy_libm_doubles(f, STRETCH, z)) return;
  for (int i = 0; i < STRETCH; i++) z[i] = f(z[i]);
}

/* |x|^y = 2^(y log2|x|), to 2^-43 of its size; beyond 2^300 either way all is one. */
INLINE void pow_values(const accuracy_pairs *p, const double *y, double *z) {
  const double size = fabs(p->x), log2_x = p->log2_x;
  if (size == 0 || size == 1 || !(size < INFINITY)) {
    for (int i = 0; i < STRETCH; i++) z[i] = pow(p->x, y[i]);
    return;
  }
  for (int i = 0; i < STRETCH; i++) {
    double t = y[i] * log2_x;
    z[i] = t > 300 ? 300 : t < -300 ? -300 : t;
  }
  apply(exp2, z);
  if (p->x > 0) return;
  for (int i = 0; i < STRETCH; i++) {
    double half = y[i] / 2;
    z[i] = y[i] != rint(y[i]) ? NAN : half != rint(half) ? -z[i] : z[i];
  }
}

/* The larger, and what the smaller adds to it, at most log(2). */
INLINE void log_of_sum_values(accuracy_pairs *p, int is_base_2, const double *y, double *z) {
  const double x = p->x;
  for (int i = 0; i < STRETCH; i++) {
    double d = fabs(x - y[i]);
    z[i] = d < 700 ? -d : -700;
  }
  apply(is_base_2 ? exp2 : exp, z);
  apply(log1p, z);
  for (int i = 0; i < STRETCH; i++) {
    double m = larger(x, y[i]), sum = m + (is_base_2 ? z[i] * 1.4426950408889634 : z[i]);
    z[i] = is_infinite(m) ? m : sum;
    p->least[i] = fabs(m) < INFINITY ? fabs(m) : 0;
  }
}

#define EACH(value) \
  for (int i = 0; i < STRETCH; i++) z[i] = (value); \
  break

/* Of STRETCH y from pattern `first` on. 0: the op is not known here. */
INLINE int exact_values(accuracy_pairs *p, int first) {
  const double x = p->x, *y = p->y + first;
  double *z = p->z;
  switch (p->op) {
    case REF_ADD: EACH(x + y[i]);
    case REF_SUBTRACT: EACH(x - y[i]);
    case REF_MULTIPLY: EACH(x * y[i]);
    case REF_DIVIDE: EACH(x / y[i]);
    case REF_MAXIMUM: EACH(larger(x, y[i]));
    case REF_MINIMUM: EACH(smaller(x, y[i]));
    case REF_FMAX: EACH(y[i] != y[i] ? x : x != x ? y[i] : larger(x, y[i]));
    case REF_FMIN: EACH(y[i] != y[i] ? x : x != x ? y[i] : smaller(x, y[i]));
    case REF_COPYSIGN: EACH(copysign(x, y[i]));
    case REF_HEAVISIDE: EACH(x == 0 ? y[i] : x < 0 ? 0 : x > 0 ? 1 : x);
    case REF_NEXTAFTER: EACH(y[i] > x ? p->above : y[i] < x ? p->below : y[i] == x ? y[i] : NAN);
    case REF_LDEXP: EACH(scaled(x, y[i]));
    case REF_FLOOR_DIVIDE: EACH(whole_quotient(x, y[i], 1));
    case REF_TRUNC_DIVIDE: EACH(whole_quotient(x, y[i], 0));
    case REF_HYPOT: EACH(is_infinite(x) || is_infinite(y[i]) ? INFINITY : sqrt(x * x + y[i] * y[i]));
    case REF_FMOD: fmod_values(p, first, z); break;
    case REF_REMAINDER:
      fmod_values(p, first, z);
      EACH(z[i] == 0 ? copysign(0, y[i]) : (z[i] < 0) != (y[i] < 0) ? z[i] + y[i] : z[i]);
    case REF_POW: pow_values(p, y, z); break;
    case REF_LOGADDEXP: log_of_sum_values(p, 0, y, z); break;
    case REF_LOGADDEXP2: log_of_sum_values(p, 1, y, z); break;
    case REF_PRELU: EACH(x > 0 ? x : x * y[i]);
    case REF_SWIGLU:
    case REF_GEGLU: {
      const double gated = accuracy_function_of(p->op)->f2(x, 1);
      for (int i = 0; i < STRETCH; i++) p->least[i] = fabs(y[i]) < INFINITY ? fabs(y[i]) * 0x1p-126 : 0;
      EACH((is_infinite(y[i]) ? x : gated) * y[i]);
    }
    case REF_ATAN2:
      if (accuracy_libm_pairs(atan2, STRETCH, x, y, z)) break;
      EACH(atan2(x, y[i]));
    default: return 0;
  }
  return 1;
}

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

#define LESS (1 - 0x1p-40) /* what may be off a little has, at a power of two, the ULPs below it */

/* How many of its ULPs a unit is, for a number of that size. */
INLINE double ulps_per_unit(double size, const accuracy_format *f) {
  int64_t e = (int64_t)(bits_of(size) >> 52) - 1023, lowest = f->bottom + f->digits - 1, highest = f->top - 1;
  e = e < lowest ? lowest : e > highest ? highest : e;
  return power_of_2(f->digits - 1 - e);
}

/* Of p->z, into p->error. INFINITY: a NaN or a sign is not as it should be, or an exact op's result is not. */
INLINE double errors(accuracy_pairs *p, const uint16_t *got) {
  const accuracy_format f = p->format;
  const int fraction = p->fraction;
  const int64_t nan = p->infinity | 1 << (fraction - 1), exact_mask = -(int64_t)p->is_exact;
  int64_t bits[STRETCH];
  const double end = power_of_2(f.top), *z = p->z, *least = p->least;
  double *error = p->error;
  int64_t worst = 0; /* of sizes, in the order of their bits */
  for (int i = 0; i < STRETCH; i++) bits[i] = got[i];
  for (int i = 0; i < STRETCH; i++) {
    const int64_t h = bits[i], h_size = h & 0x7fff;
    const double size = size_of(h_size, fraction, f.bottom), exact = fabs(z[i]), wanted = exact < end ? exact : end;
    double e = fabs(size - wanted) * ulps_per_unit(wanted * LESS > least[i] ? wanted * LESS : least[i], &f);
    const double once = (double)(float)wanted, rounded = once < end ? once : end;
    const double e_rounded = fabs(size - rounded) * ulps_per_unit(rounded, &f);
    const int64_t is_off = (e_rounded > 0.5 ? -1 : e_rounded == 0.5 ? -(h & 1) : 0) & exact_mask;
    const int64_t is_wrong = is_off | ((int64_t)(bits_of(z[i]) >> 63) ^ h >> 15);
    e = is_wrong ? (double)INFINITY : e;
    error[i] = z[i] == z[i] ? e : h == nan ? 0 : (double)INFINITY;
  }
  for (int i = 0; i < STRETCH; i++) worst = (int64_t)bits_of(error[i]) > worst ? (int64_t)bits_of(error[i]) : worst;
  return from_bits((uint64_t)worst);
}

INLINE int check_row(accuracy_pairs *p, const uint16_t *got, double worst, double bound, uint16_t *suspects) {
  int n = 0;
  for (int first = 0; first < PAIRS_ROW; first += STRETCH) {
    exact_values(p, first);
    double found = errors(p, got + first);
    if (found > bound - MARGIN) {
      for (int i = 0; i < STRETCH; i++) {
        if (p->error[i] > bound - MARGIN) suspects[n++] = (uint16_t)(first + i);
      }
    } else if (found > worst + MARGIN) {
      int at = 0;
      while (p->error[at] != found) at++;
      suspects[n++] = (uint16_t)(first + at);
      worst = found;
    }
  }
  return n;
}

#ifdef __x86_64__
__attribute__((target("avx512f,avx512dq,avx512bw,avx512vl"))) static int look_512(
    accuracy_pairs *p, const uint16_t *got, double worst, double bound, uint16_t *suspects) {
  return check_row(p, got, worst, bound, suspects);
}

__attribute__((target("avx2"))) static int look_256(
    accuracy_pairs *p, const uint16_t *got, double worst, double bound, uint16_t *suspects) {
  return check_row(p, got, worst, bound, suspects);
}
#endif

int accuracy_pairs_check(accuracy_pairs *p, uint16_t x, const uint16_t *got, double worst, double bound, uint16_t *suspects) {
  int size = x & 0x7fff, up = p->y[x] < 0 ? -1 : 1;
  p->x_bits = x;
  p->x = p->y[x];
  p->log2_x = log2(fabs(p->x));
  if (size > 0 && size < p->infinity) {
    p->above = p->y[(x + up) & 0xffff];
    p->below = p->y[(x - up) & 0xffff];
  } else {
    p->above = size ? p->x < 0 ? p->y[x - 1] : p->x : p->y[1];
    p->below = size ? p->x > 0 ? p->y[x - 1] : p->x : p->y[0x8001];
  }
#ifdef __x86_64__
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    return look_512(p, got, worst, bound, suspects);
  }
  if (__builtin_cpu_supports("avx2")) return look_256(p, got, worst, bound, suspects);
#endif
  return check_row(p, got, worst, bound, suspects);
}

/* ---- A run ------------------------------------------------------------------------------------------------------ */

static void make_powers(accuracy_pairs *p) {
  const int n = 2 << p->fraction, n_powers = p->infinity >> p->fraction;
  p->power = calloc((size_t)n_powers * (size_t)n, sizeof *p->power);
  for (int m = 2; m < n; m++) p->power[m] = 1;
  for (int at = n; at < n_powers * n; at++) p->power[at] = at % n ? (uint16_t)(2 * p->power[at - n] % (at % n)) : 0;
}

accuracy_pairs *accuracy_pairs_open(ref_op op, ref_dtype d, const accuracy_format *format, int is_exact) {
  if (ref_dtype_size(d) != 2) return NULL;
  accuracy_pairs *p = calloc(1, sizeof *p);
  p->op = op;
  p->format = *format;
  p->fraction = format->digits - 1;
  p->infinity = 0x7fff >> p->fraction << p->fraction;
  p->is_exact = is_exact;
  for (int i = 0; i < PAIRS_ROW; i++) p->y[i] = (double)ref_value(d, (uint64_t)i);
  if (op == REF_FMOD || op == REF_REMAINDER) make_powers(p);
  if (exact_values(p, 0)) return p; /* it knows the op; the values are of no use yet */
  accuracy_pairs_close(p);
  return NULL;
}

void accuracy_pairs_close(accuracy_pairs *p) {
  if (p) free(p->power);
  free(p);
}
