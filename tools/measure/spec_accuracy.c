/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_accuracy.c: what `build.lua check --measure` builds and runs: the kernels of a spec's ops beside their bodies in 113 bits
 * (subjects.h, written by gen/tools/measure.lua). Prints the worst error of each op and float dtype, in ULPs, where it is, and which
 * special cases differ; then whether derivatives are those of their ops, by differences of the bodies. Exit status 1 where a
 * bound does not hold, or a derivative is another. Numbers are those of tools/measure/ref.c. */
#include MEASURED_HEADER

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "progress.h"
#include "ref.h"

#ifdef __aarch64__
#define REAL(number) number##L
#define REAL_F(name) name##l
#else
#define REAL(number) number##Q
#define REAL_F(name) name##f128
#define ONE(name) extern ref_real name##f128(ref_real);
#define TWO(name) extern ref_real name##f128(ref_real, ref_real);
ONE(fabs) ONE(sqrt) ONE(rint) ONE(floor) ONE(ceil) ONE(trunc) TWO(copysign) TWO(fmod)
#endif

/* ---- What bodies mean ------------------------------------------------------------------------------------------- */

#define EXACT_PI REAL(3.14159265358979323846264338327950288419716939937511)
#define EXACT_E REAL(2.71828182845904523536028747135266249775724709369996)
#define EXACT_LN2 REAL(0.69314718055994530941723212145817656807550013436026)
#define EXACT_LN10 REAL(2.30258509299404568401799145468436420760110148862877)
#define EXACT_LOG2E REAL(1.44269504088896340735992468100189213742664595415299)
#define EXACT_LOG10E REAL(0.43429448190325182765112891891660508229439700580367)
#define EXACT_SQRT2 REAL(1.41421356237309504880168872420969807856967187537695)
#define EXACT_SQRT1_2 REAL(0.70710678118654752440084436210484903928483593768847)

static inline ref_real exact_floor_divide(ref_real x, ref_real y) {
  return REAL_F(floor)(x / y);
}

static inline ref_real exact_trunc_divide(ref_real x, ref_real y) {
  return REAL_F(trunc)(x / y);
}

static inline int exact_signbit(ref_real x) {
  return x == x && REAL_F(copysign)(1, x) < 0;
}

static inline ref_real exact_copysign(ref_real x, ref_real y) {
  return REAL_F(copysign)(x, exact_signbit(y) ? -1 : 1);
}

/* The sign of y, as Python's. */
static inline ref_real exact_remainder(ref_real x, ref_real y) {
  ref_real m = REAL_F(fmod)(x, y);
  if (m == 0) return exact_copysign(m, y);
  return m == m && exact_signbit(m) != exact_signbit(y) ? m + y : m;
}

static inline ref_real exact_maximum(ref_real x, ref_real y) {
  if (x != x || y != y) return (ref_real)NAN;
  return x > y || (x == y && !exact_signbit(x)) ? x : y;
}

static inline ref_real exact_minimum(ref_real x, ref_real y) {
  if (x != x || y != y) return (ref_real)NAN;
  return x < y || (x == y && exact_signbit(x)) ? x : y;
}

/* ---- What is measured ------------------------------------------------------------------------------------------- */

#define MAX_INPUTS 8
#define MAX_OUTPUTS 8

typedef struct subject {
  const char *name;
  ref_dtype d, compute;
  int n_in, conditions; /* conditions: bits of the inputs that are bool */
  int n_out;
  ref_dtype out[MAX_OUTPUTS];
  int which;            /* of the outputs is this */
  double declared, low, high; /* of the compute dtype; where inputs are best drawn */
  measured_op *(*op)(void);
  ref_real (*exact)(const ref_real *x, const ref_real *param);
  double param[16];
} subject;

/* A derivative by one input of an op. given: what its inputs are of. */
enum { OF_GRAD = -1, OF_RESULT = -2 };
typedef struct slope {
  const char *name, *op, *by;
  int n_in, conditions; /* of the op */
  int which;            /* of its inputs is `by` */
  double low, high;     /* where inputs are best drawn */
  ref_real (*body)(const ref_real *x, const ref_real *param), (*exact)(const ref_real *x, const ref_real *param);
  int n_given, given[MAX_INPUTS];
  double param[16];
} slope;

#include "subjects.h"

/* splitmix64 */
static uint64_t state = 0x5eed;
static uint64_t next_random(void) {
  uint64_t z = state += 0x9e3779b97f4a7c15u;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

static double random_unit(void) {
  return (double)(next_random() >> 11) * 0x1p-53;
}

static const double specials[] = {0.0, -0.0, 1, -1, INFINITY, -INFINITY, NAN, 0.5, -2, 10, 0x1p-1074, -0x1p-149, 0x1p-126,
                                  -0x1p-1022, 0x1.fffffep127, -0x1.fffffffffffffp1023, 0x1p-30, -100};
#define N_SPECIALS (sizeof specials / sizeof *specials)

static uint64_t draw(const subject *s, int k) {
  if (s->conditions >> k & 1) return next_random() & 1;
  double u = random_unit();
  switch (next_random() % 4) {
    case 0: return next_random() >> (64 - 8 * ref_dtype_size(s->d));
    case 1: return ref_from_double(s->d, ldexp(2 * u - 1, (int)(next_random() % 80) - 60));
    default: return ref_from_double(s->d, s->low + (s->high - s->low) * u);
  }
}

/* The points: pairs and triples of special values first, n_special of them. x[k]: input k of all */
static int make_points(const subject *s, uint64_t **x, int *n_special) {
  int is_half = ref_dtype_size(s->d) == 2, is_all = is_half && s->n_in == 1;
  int n_random = is_all ? 65536 : is_half ? 30000 : 200000;
  *n_special = 1;
  for (int k = 0; k < s->n_in && k < 3; k++) *n_special *= (int)N_SPECIALS;
  for (int k = 0; k < s->n_in; k++) {
    x[k] = malloc(sizeof **x * (size_t)(*n_special + n_random));
    for (int i = 0; i < *n_special + n_random; i++) {
      int place = i;
      for (int j = 0; j < k && j < 3; j++) place /= (int)N_SPECIALS;
      if (i >= *n_special) x[k][i] = is_all ? (uint64_t)(i - *n_special) : draw(s, k);
      else if (s->conditions >> k & 1) x[k][i] = place & 1;
      else x[k][i] = k < 3 ? ref_from_double(s->d, specials[(size_t)place % N_SPECIALS]) : draw(s, k);
    }
  }
  return *n_special + n_random;
}

/* In ULPs; infinite where a NaN, the sign of an infinity or that of an exact zero is wrong. */
static double error_of(ref_dtype d, uint64_t got, ref_real exact) {
  if (d == REF_BOOL) return (got & 0xff) == (exact != 0) ? 0 : INFINITY;
  if (ref_is_nan(d, got)) return exact != exact && got == ref_nan(d) ? 0 : INFINITY;
  if (exact != exact) return INFINITY;
  ref_real value = ref_value(d, got);
  int is_end = exact == 0 || exact == (ref_real)INFINITY || exact == -(ref_real)INFINITY;
  if (is_end && value == exact && exact_signbit(value) == exact_signbit(exact)) return 0;
  if (is_end && exact != 0) return INFINITY;
  if (value == 0 && exact == 0) return INFINITY;
  return ref_ulp_error(d, got, exact);
}

static void print_point(const subject *s, uint64_t *const *x, int at, ref_dtype out, uint64_t got) {
  char text[64];
  for (int k = 0; k < s->n_in; k++) {
    printf("%s%s", k ? ", " : "", ref_text(s->conditions >> k & 1 ? REF_BOOL : s->d, x[k][at], text));
  }
  printf(" gives %s", ref_text(out, got, text));
}

/* 1: a bound does not hold. */
static int measure(const subject *s) {
  uint64_t *x[MAX_INPUTS];
  char *memory[MAX_INPUTS + MAX_OUTPUTS];
  int n_special, n = make_points(s, x, &n_special), n_wrong = 0, n_bad = 0, at = 0;
  int n_operands = s->n_in + s->n_out, place = s->n_in + s->which;
  ref_dtype out = s->out[s->which];
  DLTensor tensors[MAX_INPUTS + MAX_OUTPUTS], *pointers[MAX_INPUTS + MAX_OUTPUTS];
  int64_t shape = n;
  for (int k = 0; k < n_operands; k++) {
    ref_dtype d = k >= s->n_in ? s->out[k - s->n_in] : s->conditions >> k & 1 ? REF_BOOL : s->d;
    memory[k] = malloc((size_t)n * 8);
    tensors[k] = (DLTensor){.data = memory[k], .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(d), .shape = &shape};
    pointers[k] = &tensors[k];
    for (int i = 0; k < s->n_in && i < n; i++) ref_put(d, memory[k] + i * ref_dtype_size(d), x[k][i]);
  }
  if (measured_op_call(s->op(), s->n_in, pointers, s->n_out, &pointers[s->n_in], NULL) != 0) {
    printf("%s %s: the call failed: %s\n", s->name, ref_dtype_name(s->d), measured_last_error());
    return 1;
  }
  /* What is computed in another dtype is rounded once more. */
  double declared = s->declared, worst = -1;
  if (s->compute != s->d) declared = 0.5 + declared * ldexp(1, ref_digits(s->d) - ref_digits(s->compute)) + 0x1p-20;
  ref_real param[16];
  for (int k = 0; k < 16; k++) param[k] = ref_value(s->compute, ref_from_double(s->compute, s->param[k]));
  for (int i = 0; i < n; i++) {
    ref_real values[MAX_INPUTS];
    for (int k = 0; k < s->n_in; k++) values[k] = ref_value(s->conditions >> k & 1 ? REF_BOOL : s->d, x[k][i]);
    uint64_t got = ref_get(out, memory[place] + i * ref_dtype_size(out));
    double ulp = error_of(out, got, s->exact(values, param));
    if (ulp > worst) worst = ulp, at = i;
    n_bad += !(ulp <= declared);
    if (i < n_special && ulp == INFINITY && n_wrong++ < 5) {
      progress_wipe();
      char text[64];
      uint64_t right = ref_cast(out, s->exact(values, param), out == REF_BOOL ? REF_KIND_BOOL : REF_KIND_FLOAT);
      printf("%s %s: ", s->name, ref_dtype_name(s->d));
      print_point(s, x, i, out, got);
      printf(", and is %s\n", ref_text(out, right, text));
    }
  }
  const char *verdict = n_bad ? "NOT within its bound" : "ok";
  progress_wipe();
  if (isinf(declared)) /* a derivative that was made of a body */
    printf("%s %s: declares nothing: worst %.5g ULP", s->name, ref_dtype_name(s->d), worst);
  else
    printf("%s %s: %s: declared %.5g, worst %.5g ULP", s->name, ref_dtype_name(s->d), verdict, declared, worst);
  if (worst > 0) {
    printf(": ");
    print_point(s, x, at, out, ref_get(out, memory[place] + at * ref_dtype_size(out)));
  }
  printf("; %d points, %d beyond; special cases %d of %d\n", n, n_bad, n_special - n_wrong, n_special);
  if (n_bad && worst < 1e6 && s->compute == s->d) {
    printf("%s %s: it would have to declare %.4g\n", s->name, ref_dtype_name(s->d), ceil(worst * 100) / 100);
  }
  for (int k = 0; k < n_operands; k++) free(memory[k]);
  for (int k = 0; k < s->n_in; k++) free(x[k]);
  return n_bad > 0;
}

/* ---- Derivatives ------------------------------------------------------------------------------------------------ */

static ref_real size_of(ref_real x) {
  return REAL_F(fabs)(x);
}

/* How much the body changes from a step of h to one side of x[which], by that step. */
static ref_real difference(const slope *s, ref_real *x, const ref_real *param, ref_real y, ref_real h) {
  const ref_real kept = x[s->which];
  x[s->which] = kept + h;
  const ref_real beside = s->body(x, param);
  x[s->which] = kept;
  return (beside - y) / h;
}

/* 1: it is not the derivative. Points where the body has a kink, a jump, an end or no value are left out. */
static int compare_slope(const slope *s) {
  int n = 0, n_wrong = 0;
  double at[MAX_INPUTS] = {0}, got = 0, wanted = 0;
  ref_real param[16];
  for (int k = 0; k < 16; k++) param[k] = s->param[k];
  for (int i = 0; i < 4000; i++) {
    ref_real x[MAX_INPUTS], in[MAX_INPUTS];
    for (int k = 0; k < s->n_in; k++) {
      double v = s->low + (s->high - s->low) * random_unit();
      if (next_random() % 4 == 0) v = fmin(fmax(ldexp(2 * random_unit() - 1, 3 - (int)(next_random() % 16)), s->low), s->high);
      x[k] = s->conditions >> k & 1 ? (ref_real)(next_random() & 1) : (ref_real)v;
    }
    const ref_real y = s->body(x, param), step = size_of(x[s->which]) + 0x1p-20;
    const ref_real above = difference(s, x, param, y, step * 0x1p-34), below = difference(s, x, param, y, -step * 0x1p-34);
    const ref_real exact = (above + below) / 2, size = size_of(above) + size_of(below);
    const ref_real near = (difference(s, x, param, y, step * 0x1p-35) + difference(s, x, param, y, -step * 0x1p-35)) / 2;
    const ref_real within = size * 0x1p-20 + size_of(y) * 0x1p-40;
    if (!(size_of(above - below) <= size * 0x1p-10 + within) || !(size_of(near - exact) <= within)) continue;
    if (!(size < (ref_real)INFINITY)) continue;
    for (int k = 0; k < s->n_given; k++) in[k] = s->given[k] == OF_GRAD ? 1 : s->given[k] == OF_RESULT ? y : x[s->given[k]];
    const ref_real value = s->exact(in, param);
    n++;
    if (size_of(value - exact) <= within) continue;
    if (n_wrong++ == 0) {
      for (int k = 0; k < s->n_in; k++) at[k] = (double)x[k];
      got = (double)value, wanted = (double)exact;
    }
  }
  if (n == 0) {
    printf("%s: by %s: not compared with differences of %s: there is no point where it is smooth\n", s->name, s->by, s->op);
  } else if (n_wrong == 0) {
    printf("%s: by %s: ok: as differences of %s have it, at %d points\n", s->name, s->by, s->op, n);
  } else {
    printf("%s: by %s: NOT the derivative of %s: at ", s->name, s->by, s->op);
    for (int k = 0; k < s->n_in; k++) printf("%s%.9g", k ? ", " : "", at[k]);
    printf(" it is %.9g, and differences give %.9g; %d of %d points\n", got, wanted, n_wrong, n);
  }
  return n_wrong > 0;
}

int main(int argc, char **argv) {
  const int n = (int)(sizeof subjects / sizeof *subjects);
  int status = 0;
  progress_begin(argc > 1 ? argv[1] : "never");
  for (int k = 0; k < n; k++) {
    progress_show(subjects[k].name, ref_dtype_name(subjects[k].d), k + 1, n);
    status |= measure(&subjects[k]);
    fflush(stdout);
  }
  progress_wipe();
  for (const slope *s = slopes; s->name; s++) status |= compare_slope(s);
  return status;
}
