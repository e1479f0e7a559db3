/* SPDX-License-Identifier: Apache-2.0
 *
 * t300-accuracy: the declared ULP bounds, measured. f32 functions at every 64th bit pattern against double-precision
 * libm (good to 2^-28 of an f32 ULP), at all of them with QUERN_TEST_EXHAUSTIVE=1; f64 at 10^5 random and the hard points
 * against 200-bit MPFR; functions of two in both; f16 and bf16 at every pattern. The worst of each is printed. */
#include <mpfr.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tensors.h"

#define N_WORKERS 2

static const ref_op functions[] = {REF_EXP, REF_LOG, REF_TANH, REF_ERF, REF_SIGMOID, REF_GELU,
                                   REF_SIN, REF_COS, REF_TAN, REF_DEGREES, REF_RADIANS, REF_SINC, REF_ATAN, REF_ASIN, REF_ACOS,
                                   REF_EXP2, REF_EXPM1, REF_LOG2, REF_LOG10, REF_LOG1P, REF_SINH, REF_COSH,
                                   REF_ASINH, REF_ACOSH, REF_ATANH, REF_ERFC, REF_CBRT};
#define N_FUNCTIONS (int)(sizeof functions / sizeof *functions)
static const ref_op pair_functions[] = {REF_POW, REF_ATAN2, REF_HYPOT, REF_LOGADDEXP, REF_LOGADDEXP2};
#define N_PAIR_FUNCTIONS (int)(sizeof pair_functions / sizeof *pair_functions)

static quern_status call_on(ref_op op, ref_dtype d, int64_t n, const void *x, const void *y, void *out) {
  DLTensor a = {.data = (void *)(uintptr_t)x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(d), .shape = &n}, b = a, c = a, *in[2] = {&a, &b}, *outs = &c;
  b.data = (void *)(uintptr_t)y;
  c.data = out;
  return quern_op_call(the_op(op), y ? 2 : 1, in, 1, &outs, NULL);
}

/* The worst point of a search. */
typedef struct worst {
  double ulp;
  double x, y;
  uint64_t got;
  long long n, n_bad;
} worst;

static void note(worst *w, double ulp, double x, double y, uint64_t got, double bound) {
  w->n++;
  if (!(ulp <= bound)) w->n_bad++;
  if (!(ulp <= w->ulp)) {
    w->ulp = ulp;
    w->x = x;
    w->y = y;
    w->got = got;
  }
}

static void merge(worst *into, const worst *w) {
  into->n += w->n;
  into->n_bad += w->n_bad;
  if (!(w->ulp <= into->ulp)) {
    into->ulp = w->ulp;
    into->x = w->x;
    into->y = w->y;
    into->got = w->got;
  }
}

static void report(ref_op op, ref_dtype d, const worst *w) {
  const ref_op_info *info = ref_op_describe(op);
  char got[64];
  char second[40] = "";
  if (info->n_in == 2) snprintf(second, sizeof second, ", %a", w->y);
  diag("%s %s: worst %.4f ULP at %a%s, got %s; declared %.2f; %lld points", info->name, ref_dtype_name(d), w->ulp, w->x, second,
       ref_text(d, w->got, got), info->ulp, w->n);
  ok(w->n > 0 && w->n_bad == 0, "%s %s: within %.2f ULP, and within 1", info->name, ref_dtype_name(d), info->ulp);
}

static double bound_of(ref_op op) {
  double u = ref_op_describe(op)->ulp;
  return u < 1 ? u : 1;
}

/* ---- f32 -------------------------------------------------------------------------------------------------------- */

static double log_of_sum(ref_op op, double x, double y) {
  double m = x > y ? x : y, d = x > y ? y - x : x - y;
  if (x != x || y != y) return NAN;
  if (isinf(m)) return m;
  return op == REF_LOGADDEXP ? m + log1p(exp(d)) : m + log1p(exp2(d)) / 0.693147180559945309417;
}

static double sinc_in_double(double x) {
  double whole = rint(x), r = x - whole;
  if (x == 0) return 1;
  if (r == 0) return 0;
  return (fmod(whole, 2) == 0 ? 1 : -1) * sin(M_PI * r) / (M_PI * x);
}

static double in_double(ref_op op, double x, double y) {
  switch (op) {
    case REF_EXP: return exp(x);
    case REF_LOG: return log(x);
    case REF_TANH: return tanh(x);
    case REF_ERF: return erf(x);
    case REF_SIGMOID: return 1 / (1 + exp(-x));
    case REF_GELU: return x == -INFINITY ? -0.0 : 0.5 * x * erfc(-x * 0x1.6a09e667f3bcdp-1);
    case REF_SQRT: return sqrt(x);
    case REF_SIN: return sin(x);
    case REF_COS: return cos(x);
    case REF_TAN: return tan(x);
    case REF_DEGREES: return x * (180 / M_PI);
    case REF_RADIANS: return x * (M_PI / 180);
    case REF_SINC: return sinc_in_double(x);
    case REF_POW: return pow(x, y);
    case REF_ATAN: return atan(x);
    case REF_ATAN2: return atan2(x, y);
    case REF_ASIN: return asin(x);
    case REF_ACOS: return acos(x);
    case REF_HYPOT: return hypot(x, y);
    case REF_LOGADDEXP:
    case REF_LOGADDEXP2: return log_of_sum(op, x, y);
    case REF_EXP2: return exp2(x);
    case REF_EXPM1: return expm1(x);
    case REF_LOG2: return log2(x);
    case REF_LOG10: return log10(x);
    case REF_LOG1P: return log1p(x);
    case REF_SINH: return sinh(x);
    case REF_COSH: return cosh(x);
    case REF_ASINH: return asinh(x);
    case REF_ACOSH: return acosh(x);
    case REF_ATANH: return atanh(x);
    case REF_ERFC: return erfc(x);
    case REF_CBRT: return cbrt(x);
    default: abort();
  }
}

/* |got - exact| in f32 ULPs; a NaN must be the one NaN, a zero must have exact's sign. */
static double f32_error(float got, double exact) {
  uint32_t bits;
  memcpy(&bits, &got, 4);
  if (exact != exact) return bits == 0x7fc00000u ? 0 : INFINITY;
  if (got != got) return INFINITY;
  if (!signbit(got) != !signbit(exact)) return INFINITY;
  if (isinf(exact)) return isinf(got) ? 0 : INFINITY;
  double g = got;
  if (isinf(g)) g = copysign(0x1p128, g);
  if (fabs(exact) >= 0x1p128) exact = copysign(0x1p128, exact);
  int e = exact == 0 ? -126 : ilogb(exact);
  if (e < -126) e = -126;
  if (e > 127) e = 127;
  return fabs(g - exact) * ldexp(1, 23 - e);
}

typedef struct f32_work {
  ref_op op;
  uint64_t step, first;
  worst w;
} f32_work;

#define CHUNK 16384

static void *f32_run(void *arg) {
  f32_work *work = arg;
  float *x = malloc(sizeof *x * CHUNK), *y = malloc(sizeof *y * CHUNK);
  double bound = bound_of(work->op);
  /* Worker k takes chunks k, k + N_WORKERS, ...; pattern (i * step + phase): the low bits vary too. */
  for (uint64_t base = work->first * CHUNK * work->step; base < (uint64_t)1 << 32; base += N_WORKERS * CHUNK * work->step) {
    int n = 0;
    for (uint64_t p = base; n < CHUNK && p < (uint64_t)1 << 32; p += work->step) {
      uint32_t bits = (uint32_t)(p + (p / work->step * 29) % work->step);
      memcpy(&x[n++], &bits, 4);
    }
    if (call_on(work->op, REF_F32, n, x, NULL, y)) {
      work->w.n_bad++;
      break;
    }
    for (int i = 0; i < n; i++) {
      uint32_t bits;
      memcpy(&bits, &y[i], 4);
      note(&work->w, f32_error(y[i], in_double(work->op, x[i], 0)), x[i], 0, bits, bound);
    }
  }
  free(x);
  free(y);
  return NULL;
}

static void test_f32(void) {
  const char *all = getenv("QUERN_TEST_EXHAUSTIVE");
  uint64_t step = SANITIZED ? 4096 : all && *all == '1' ? 1 : 64; /* sanitised kernels are slow: a sample */
  for (int f = 0; f < N_FUNCTIONS + 1; f++) {
    ref_op op = f < N_FUNCTIONS ? functions[f] : REF_SQRT;
    if (!has_op(op)) continue;
    pthread_t threads[N_WORKERS];
    f32_work work[N_WORKERS];
    worst w = {.ulp = -1};
    for (int i = 0; i < N_WORKERS; i++) {
      work[i] = (f32_work){.op = op, .step = step, .first = (uint64_t)i, .w = {.ulp = -1}};
      pthread_create(&threads[i], NULL, f32_run, &work[i]);
    }
    for (int i = 0; i < N_WORKERS; i++) {
      pthread_join(threads[i], NULL);
      merge(&w, &work[i].w);
    }
    if (w.n != (long long)(((uint64_t)1 << 32) / step)) w.n_bad++;
    report(op, REF_F32, &w);
  }
}

/* ---- Functions of two: pairs ------------------------------------------------------------------------------------ */

/* Pairs whose power is finite and not trivial, mostly. */
static void pow_pair(rng *r, ref_dtype d, double *x, double *y) {
  double top = d == REF_F32 ? 128 : 1024, bottom = d == REF_F32 ? -150 : -1075;
  double b; /* log2 of x */
  switch (rng_below(r, 8)) {
    case 0: *x = ldexp(1 + rng_unit(r), (int)rng_range(r, (int64_t)bottom, (int64_t)top - 1)); break;
    case 1: *x = 1 + (rng_unit(r) - 0.5) * ldexp(1, -(int)rng_below(r, d == REF_F32 ? 22 : 50)); break;
    case 2: *x = (double)(1 + rng_below(r, 1000)); break;
    case 3: *x = 0.5 + rng_unit(r); break;
    case 4: *x = 1 + ldexp((double)(1 + rng_below(r, 9)), d == REF_F32 ? -23 : -52) * (rng_below(r, 2) ? 1 : -0.5); break;
    default: *x = 10 * rng_unit(r) + 1e-3; break;
  }
  if (d == REF_F32) *x = (float)*x;
  if (!(*x > 0)) *x = 1.5;
  b = log2(*x);
  switch (rng_below(r, 6)) {
    case 0: *y = (double)rng_range(r, -20, 20); break;
    case 1: *y = rng_unit(r) * 4 - 2; break;
    case 2: *y = (rng_below(r, 2) ? top : bottom) / b * (1 + (rng_unit(r) - 0.5) * 0x1p-10); break; /* near the ends */
    case 3: *y = (bottom + 30 * rng_unit(r)) / b; break;                                              /* subnormal results */
    default: *y = (bottom + (top - bottom) * rng_unit(r)) / b; break;
  }
  if (d == REF_F32) *y = (float)*y;
  if (rng_below(r, 8) == 0) {
    *x = -*x;
    *y = rint(*y);
    if (d == REF_F32) *y = (float)*y;
  }
}

/* Points in all directions, most of them off the axes; of any size, up to where quotients overflow and underflow. */
static void atan2_pair(rng *r, ref_dtype d, double *y, double *x) {
  int top = d == REF_F32 ? 127 : 1023, bottom = d == REF_F32 ? -149 : -1074;
  *x = 1 + rng_unit(r);
  *y = 1 + rng_unit(r);
  switch (rng_below(r, 8)) {
    case 0: *y = ldexp(*y, (int)rng_range(r, -20, 20)); break;
    case 1: { /* of one size, whatever size */
      int e = (int)rng_range(r, bottom, top - 1);
      *x = ldexp(*x, e);
      *y = ldexp(*y, e + (int)rng_range(r, -2, 1));
      break;
    }
    case 2: *x = ldexp(*x, (int)rng_range(r, bottom, top)), *y = ldexp(*y, (int)rng_range(r, bottom, top)); break;
    case 3: { /* subnormal quotients */
      int e = (int)rng_range(r, 0, top);
      *x = ldexp(*x, e);
      *y = ldexp(*y, e + bottom + (int)rng_range(r, 0, 24));
      break;
    }
    case 4: *y = *x * 0.6 * (1 + (rng_unit(r) - 0.5) * ldexp(1, -(int)rng_below(r, 24))); break; /* where pieces meet */
    case 5: *y = *x * (1 + (rng_unit(r) - 0.5) * ldexp(1, -(int)rng_below(r, 24))); break;
    default: *y = 8 * rng_unit(r), *x = 8 * rng_unit(r); break;
  }
  if (rng_below(r, 2)) *x = -*x;
  if (rng_below(r, 2)) *y = -*y;
  if (rng_below(r, 2)) {
    double z = *x;
    *x = *y;
    *y = z;
  }
}

/* Vectors of any size, most of them with both parts worth something; whole multiples of a subnormal too. */
static void hypot_pair(rng *r, ref_dtype d, double *x, double *y) {
  int top = d == REF_F32 ? 127 : 1023, bottom = d == REF_F32 ? -149 : -1074, digits = d == REF_F32 ? 24 : 53;
  int e = (int)rng_range(r, bottom, top);
  *x = 1 + rng_unit(r);
  *y = 1 + rng_unit(r);
  switch (rng_below(r, 8)) {
    case 0: *x = ldexp(*x, (int)rng_range(r, bottom, top)), *y = ldexp(*y, e); break;
    case 1: *x = ldexp(*x, top - 1), *y = ldexp(*y, top - (int)rng_below(r, 3)); break;
    case 2:
      *x = ldexp(*x, bottom + (int)rng_below(r, (uint64_t)digits + 2));
      *y = ldexp(*y, bottom + (int)rng_below(r, (uint64_t)digits + 2));
      break;
    case 3: *x = 8 * rng_unit(r), *y = 8 * rng_unit(r); break;
    default: *x = ldexp(*x, e), *y = ldexp(*y, e + (int)rng_range(r, -digits / 2, 0)); break;
  }
  if (rng_below(r, 2)) *x = -*x;
  if (rng_below(r, 2)) {
    double z = *x;
    *x = *y;
    *y = z;
  }
}

/* At distances that count, mostly. */
static void sum_pair(rng *r, ref_dtype d, double *x, double *y) {
  double reach = d == REF_F32 ? 110 : 760;
  switch (rng_below(r, 4)) {
    case 0: *x = rng_unit(r) * 4 - 2; break;
    case 1: *x = ldexp(2 * rng_unit(r) - 1, (int)rng_range(r, -60, 40)); break;
    default: *x = (2 * rng_unit(r) - 1) * reach; break;
  }
  *y = *x + (2 * rng_unit(r) - 1) * (rng_below(r, 3) ? 8 : reach);
  if (d == REF_F32) *x = (float)*x, *y = (float)*y;
}

/* The bounds of logaddexp are the result's where it is at least the larger operand: other pairs become others. */
static void avoid_zeros(ref_op op, double *x, double *y) {
  if (op != REF_LOGADDEXP && op != REF_LOGADDEXP2) return;
  if (fabs(log_of_sum(op, *x, *y)) < fabs(*x > *y ? *x : *y)) *x = fabs(*x);
}

static void any_pair(rng *r, ref_op op, ref_dtype d, double *x, double *y) {
  switch (op) {
    case REF_ATAN2: atan2_pair(r, d, x, y); break;
    case REF_HYPOT: hypot_pair(r, d, x, y); break;
    case REF_LOGADDEXP:
    case REF_LOGADDEXP2:
      sum_pair(r, d, x, y);
      avoid_zeros(op, x, y);
      break;
    default: pow_pair(r, d, x, y); break;
  }
}

static void test_pairs_f32(ref_op op) {
  enum { N = SANITIZED ? 100000 : 3000000 };
  rng r;
  rng_seed(&r, 1);
  float *x = malloc(sizeof *x * N), *y = malloc(sizeof *y * N), *z = malloc(sizeof *z * N);
  worst w = {.ulp = -1};
  for (int i = 0; i < N; i++) {
    double a, b;
    if (i % 8 == 7) { /* any bits */
      uint64_t bits = rng_u64(&r);
      memcpy(&x[i], &bits, 4);
      memcpy(&y[i], (char *)&bits + 4, 4);
      a = x[i];
      b = y[i];
      avoid_zeros(op, &a, &b);
      x[i] = (float)a;
      continue;
    }
    any_pair(&r, op, REF_F32, &a, &b);
    x[i] = (float)a;
    y[i] = (float)b;
  }
  if (call_on(op, REF_F32, N, x, y, z)) bail("%s", quern_last_error());
  for (int i = 0; i < N; i++) {
    uint32_t bits;
    memcpy(&bits, &z[i], 4);
    note(&w, f32_error(z[i], in_double(op, x[i], y[i])), x[i], y[i], bits, bound_of(op));
  }
  report(op, REF_F32, &w);
  free(x);
  free(y);
  free(z);
}

/* ---- f64 against MPFR ------------------------------------------------------------------------------------------- */

#define PRECISION 200

static void log_of_sum_in_mpfr(ref_op op, mpfr_t z, const mpfr_t x, const mpfr_t y) {
  mpfr_t m, two;
  if (mpfr_nan_p(x) || mpfr_nan_p(y)) {
    mpfr_set_nan(z);
    return;
  }
  mpfr_inits2(PRECISION, m, two, (mpfr_ptr)0);
  mpfr_max(m, x, y, MPFR_RNDN);
  if (mpfr_inf_p(m)) mpfr_set(z, m, MPFR_RNDN);
  else {
    mpfr_min(z, x, y, MPFR_RNDN);
    mpfr_sub(z, z, m, MPFR_RNDN);
    mpfr_const_log2(two, MPFR_RNDN);
    if (op == REF_LOGADDEXP2) mpfr_mul(z, z, two, MPFR_RNDN);
    mpfr_exp(z, z, MPFR_RNDN);
    mpfr_log1p(z, z, MPFR_RNDN);
    if (op == REF_LOGADDEXP2) mpfr_div(z, z, two, MPFR_RNDN);
    mpfr_add(z, z, m, MPFR_RNDN);
  }
  mpfr_clears(m, two, (mpfr_ptr)0);
}

/* sin(pi x) / (pi x); x less the nearest integer is exact. */
static void sinc_in_mpfr(mpfr_t z, const mpfr_t x) {
  if (mpfr_zero_p(x)) {
    mpfr_set_ui(z, 1, MPFR_RNDN);
    return;
  }
  mpfr_t pi, half;
  mpfr_inits2(PRECISION, pi, half, (mpfr_ptr)0);
  mpfr_const_pi(pi, MPFR_RNDN);
  mpfr_rint(z, x, MPFR_RNDN);
  mpfr_div_ui(half, z, 2, MPFR_RNDN);
  int is_odd = !mpfr_integer_p(half);
  mpfr_sub(z, x, z, MPFR_RNDN);
  if (mpfr_zero_p(z)) {
    mpfr_set_zero(z, 1);
  } else {
    mpfr_mul(z, z, pi, MPFR_RNDN);
    mpfr_sin(z, z, MPFR_RNDN);
    mpfr_div(z, z, pi, MPFR_RNDN);
    mpfr_div(z, z, x, MPFR_RNDN);
    if (is_odd) mpfr_neg(z, z, MPFR_RNDN);
  }
  mpfr_clears(pi, half, (mpfr_ptr)0);
}

static void in_mpfr(ref_op op, mpfr_t z, const mpfr_t x, const mpfr_t y) {
  switch (op) {
    case REF_EXP: mpfr_exp(z, x, MPFR_RNDN); return;
    case REF_LOG: mpfr_log(z, x, MPFR_RNDN); return;
    case REF_TANH: mpfr_tanh(z, x, MPFR_RNDN); return;
    case REF_ERF: mpfr_erf(z, x, MPFR_RNDN); return;
    case REF_POW: mpfr_pow(z, x, y, MPFR_RNDN); return;
    case REF_ATAN: mpfr_atan(z, x, MPFR_RNDN); return;
    case REF_ATAN2: mpfr_atan2(z, x, y, MPFR_RNDN); return;
    case REF_ASIN: mpfr_asin(z, x, MPFR_RNDN); return;
    case REF_ACOS: mpfr_acos(z, x, MPFR_RNDN); return;
    case REF_HYPOT: mpfr_hypot(z, x, y, MPFR_RNDN); return;
    case REF_LOGADDEXP:
    case REF_LOGADDEXP2: log_of_sum_in_mpfr(op, z, x, y); return;
    case REF_EXP2: mpfr_exp2(z, x, MPFR_RNDN); return;
    case REF_EXPM1: mpfr_expm1(z, x, MPFR_RNDN); return;
    case REF_LOG2: mpfr_log2(z, x, MPFR_RNDN); return;
    case REF_LOG10: mpfr_log10(z, x, MPFR_RNDN); return;
    case REF_LOG1P: mpfr_log1p(z, x, MPFR_RNDN); return;
    case REF_SINH: mpfr_sinh(z, x, MPFR_RNDN); return;
    case REF_COSH: mpfr_cosh(z, x, MPFR_RNDN); return;
    case REF_ASINH: mpfr_asinh(z, x, MPFR_RNDN); return;
    case REF_ACOSH: mpfr_acosh(z, x, MPFR_RNDN); return;
    case REF_ATANH: mpfr_atanh(z, x, MPFR_RNDN); return;
    case REF_ERFC: mpfr_erfc(z, x, MPFR_RNDN); return;
    case REF_CBRT: mpfr_cbrt(z, x, MPFR_RNDN); return;
    case REF_SIN: mpfr_sin(z, x, MPFR_RNDN); return;
    case REF_COS: mpfr_cos(z, x, MPFR_RNDN); return;
    case REF_TAN: mpfr_tan(z, x, MPFR_RNDN); return;
    case REF_SINC: sinc_in_mpfr(z, x); return;
    case REF_DEGREES:
    case REF_RADIANS: {
      mpfr_t unit; /* pi / 180 */
      mpfr_init2(unit, PRECISION);
      mpfr_const_pi(unit, MPFR_RNDN);
      mpfr_div_ui(unit, unit, 180, MPFR_RNDN);
      if (op == REF_DEGREES) mpfr_div(z, x, unit, MPFR_RNDN);
      else mpfr_mul(z, x, unit, MPFR_RNDN);
      mpfr_clear(unit);
      return;
    }
    case REF_SIGMOID:
      mpfr_neg(z, x, MPFR_RNDN);
      mpfr_exp(z, z, MPFR_RNDN);
      mpfr_add_ui(z, z, 1, MPFR_RNDN);
      mpfr_ui_div(z, 1, z, MPFR_RNDN);
      return;
    case REF_GELU: {
      if (mpfr_inf_p(x) || mpfr_zero_p(x)) {
        mpfr_set(z, x, MPFR_RNDN);
        if (mpfr_inf_p(x) && mpfr_sgn(x) < 0) mpfr_set_zero(z, -1);
        return;
      }
      mpfr_t root;
      mpfr_init2(root, PRECISION);
      mpfr_sqrt_ui(root, 2, MPFR_RNDN);
      mpfr_div(z, x, root, MPFR_RNDN);
      mpfr_neg(z, z, MPFR_RNDN);
      mpfr_erfc(z, z, MPFR_RNDN);
      mpfr_mul(z, z, x, MPFR_RNDN);
      mpfr_div_ui(z, z, 2, MPFR_RNDN);
      mpfr_clear(root);
      return;
    }
    default: abort();
  }
}

/* Error in ULPs of f64; exact may have any exponent. */
static double f64_error(double got, const mpfr_t exact, mpfr_t scratch) {
  uint64_t bits;
  memcpy(&bits, &got, 8);
  if (mpfr_nan_p(exact)) return bits == 0x7ff8000000000000u ? 0 : INFINITY;
  if (got != got || !signbit(got) != !mpfr_signbit(exact)) return INFINITY;
  if (mpfr_inf_p(exact)) return isinf(got) ? 0 : INFINITY;
  int e = mpfr_zero_p(exact) || mpfr_get_exp(exact) - 1 < -1022 ? -1022 : mpfr_get_exp(exact) - 1 > 1023 ? 1024 : (int)mpfr_get_exp(exact) - 1;
  if (e > 1023) { /* beyond the largest binade: infinity is right, the largest number is as far off as 2^1024 is */
    if (isinf(got)) return 0;
    return fabs(got) == 0x1.fffffffffffffp1023 ? 1 : INFINITY;
  }
  if (isinf(got)) mpfr_set_d(scratch, copysign(0x1p1023, got), MPFR_RNDN), mpfr_mul_ui(scratch, scratch, 2, MPFR_RNDN);
  else mpfr_set_d(scratch, got, MPFR_RNDN);
  mpfr_sub(scratch, scratch, exact, MPFR_RNDN);
  mpfr_abs(scratch, scratch, MPFR_RNDN);
  mpfr_mul_2si(scratch, scratch, 52 - e, MPFR_RNDN);
  return mpfr_get_d(scratch, MPFR_RNDU);
}

typedef struct f64_work {
  ref_op op;
  const double *x, *y, *z;
  int n, first;
  worst w;
} f64_work;

static void *f64_run(void *arg) {
  f64_work *work = arg;
  mpfr_t x, y, z, scratch;
  mpfr_inits2(PRECISION, x, y, z, scratch, (mpfr_ptr)0);
  for (int i = work->first; i < work->n; i += N_WORKERS) {
    uint64_t bits;
    mpfr_set_d(x, work->x[i], MPFR_RNDN);
    mpfr_set_d(y, work->y[i], MPFR_RNDN);
    in_mpfr(work->op, z, x, y);
    memcpy(&bits, &work->z[i], 8);
    note(&work->w, f64_error(work->z[i], z, scratch), work->x[i], work->y[i], bits, bound_of(work->op));
  }
  mpfr_clears(x, y, z, scratch, (mpfr_ptr)0);
  mpfr_free_cache();
  return NULL;
}

/* Is it at 1 that the result is hard to get? */
static int near_one(ref_op op) {
  return op == REF_LOG || op == REF_LOG2 || op == REF_LOG10 || op == REF_ACOSH;
}

/* Random points are drawn up to this size; beyond it nothing happens. */
static double reach(ref_op op) {
  switch (op) {
    case REF_ERF: return 6.2;
    case REF_TANH: return 22;
    case REF_GELU: return 39;
    case REF_ERFC: return 27.5;
    case REF_EXP2: return 1080;
    case REF_EXPM1: return 45;
    case REF_LOG1P:
    case REF_ATANH: return 1;
    case REF_ASINH: return 4;
    case REF_ATAN: return 3;
    case REF_ASIN:
    case REF_ACOS: return 1.01;
    default: return 760;
  }
}

/* Where algorithms change: ends of ranges, seams of tables and reductions, zeros, the ends of subnormals. */
static int hard_points(ref_op op, double *x) {
  int n = 0;
  const double seams[] = {0, 0x1p-1074, 0x1p-1022, 0x1p-60, 0x1p-54, 0x1p-53, 0x1p-28, 0x1p-27, 0x1p-26, 1e-5, 0.0625, 0.125, 0.25, 0.3465735902799726, 0.34657359027997264, 0.375, 0.5, 0.625,
                          0.6931471805599453, 0.70710678118654752, 0.75, 0.84375, 0.875, 0.9375, 1, 1.0397207708399179, 1.25, 1.4142135623730951, 1.5, 2, 2.75, 2.857142857142857, 3, 3.5, 4, 5,
                          5.5, 5.92158719, 5.921587195794507, 6, 8, 8.29, 9, 10, 16, 18.714973875118524, 19.06, 20, 22, 26.5, 27.226, 28, 32, 36.04, 36.7, 37, 37.5, 37.68, 38, 38.4, 38.6, 40, 44, 100, 512, 700,
                          708.39641853226408, 708.3964185322641, 709, 709.78271289338397, 709.78271289338409, 709.7827128933841, 710, 744.44007192138122, 710.47586007394386, 710.4758600739439, 745, 745.13321910194111, 745.1332191019412, 745.14, 746, 1024, 1075,
                          0.16666666666666666, 0.2857142857142857, 0.41421356237309503, 1e3, 1e6, 1e17,
                          0x1p52, 0x1p53, 0x1p54, 0x1p1023, 0x1.fffffffffffffp1023, INFINITY, NAN,
                          /* printed hard cases of exp, log (Lefevre and Muller) and their neighbours */
                          0x1.9e9cbbfd6080bp-31, 0x1.83d4bcdebb3f4p2, 0x1.accfbe46b4ef0p-1, 0x1.2e5d0e5a6f6a5p-1, 0x1.62e42fefa39efp-1, 0x1.0p-10, 0x1.fffffffffffffp-1, 0x1.0000000000001p0,
                          /* atan, asin, acos: pieces, tangents and sines of pi/8, pi/6, pi/3, 3 pi/8, pi/2 */
                          0.6, 0.41421356237309503, 0.57735026918962573, 1.5574077246549023, 1.7320508075688772, 2.4142135623730949,
                          0.38268343236508978, 0.8660254037844386, 0.92387953251128674, 0x1.d02967c31cdb5p53,
                          /* the worst found in 2 10^7 random points: atan, asin */
                          0x1.8d25562185d37p+0, 0x1.0e3dbf99933cep-1,
                          /* the worst found in 3 10^6 random points: erf, gelu, sigmoid, tanh, exp */
                          0x1.d36852d7bfa82p-1, 0x1.c6a0797136bcp-1, 0x1.3a8fd894fa318p-2, 0x1.33b4a71c966d8p-2, 0x1.265ec166dd5d8p-2, 0x1.1aa3850d7767p+0, 0x1.83155c93cb89p-3, 0x1.9f0b12b85a408p-2, 0x1.dc22f3e89762ep+0, 0x1.bd1ec84157adfp-1,
                          /* where far angles begin; the f64s nearest to multiples of pi/2 (convergents of 2^e 2/pi); the worst
                             found of cos and tan */
                          0x1.9p25, 1e22, 0x1.6ac5b262ca1ffp+849, 0x1.6ac5b262ca1ffp+850, 0x1.6c6cbc45dc8dep+5, 0x1.6c6cbc45dc8dep+6, 0x1.b951f1572eba5p+23, 0x1.504cac51f1eafp+131,
                          0x1.e009c53148be1p+991, 0x1.4c96c11134d36p+577, 0x1.cfe484285f8edp+860, 0x1.db41f3cb71d7bp+680, 0x1.e7e44a78ac18cp+197, 0x1.91735b8a5d1d2p-1, 0x1.8c12621de4541p-1};
  for (size_t i = 0; i < sizeof seams / sizeof *seams; i++) {
    double up = seams[i], down = seams[i];
    for (int k = 0; k < 4; k++) {
      x[n++] = up;
      x[n++] = -up;
      x[n++] = down;
      x[n++] = -down;
      up = nextafter(up, INFINITY);
      down = nextafter(down, -INFINITY);
    }
  }
  /* Multiples of ln2 / 2, of 1/32 and 1/128 and of powers of two, each with its neighbours. */
  for (int k = -2200; k <= 2200; k++) {
    double p = k * 0.34657359027997264;
    x[n++] = p;
    x[n++] = nextafter(p, INFINITY);
    x[n++] = nextafter(p, -INFINITY);
  }
  /* Multiples of pi / 4, and thirds of them between. */
  for (int k = 1; k <= 3000; k++) {
    double p = k * 0.26179938779914943654;
    x[n++] = p;
    x[n++] = nextafter(p, INFINITY);
    x[n++] = -nextafter(p, 0);
  }
  for (int k = -1300; k <= 1300; k++) {
    x[n++] = k / 32.0;
    x[n++] = nextafter(k / 128.0, INFINITY);
    x[n++] = nextafter(k / 128.0, -INFINITY);
  }
  if (op == REF_ASIN || op == REF_ACOS) { /* towards 1 */
    for (int e = 1; e < 54; e++) {
      x[n++] = 1 - ldexp(1, -e);
      x[n++] = ldexp(1.4142135623730951, -e) - 1;
    }
  }
  for (int e = -1074; e < 1024; e++) {
    double p = ldexp(1, e);
    x[n++] = p;
    x[n++] = nextafter(p, INFINITY);
    x[n++] = -nextafter(p, 0);
    if (near_one(op)) x[n++] = ldexp(1.4142135623730951, e);
    if (near_one(op)) x[n++] = nextafter(p, 0);
    if (op == REF_LOG1P || op == REF_ATANH) x[n++] = nextafter(p, 1) - 1;
  }
  return n;
}

static void test_f64(void) {
  enum { RANDOM = SANITIZED ? 5000 : 100000, MAX = RANDOM + 60000 };
  static double x[MAX], y[MAX], z[MAX];
  rng r;
  rng_seed(&r, 2);
  for (int f = 0; f < N_FUNCTIONS + N_PAIR_FUNCTIONS; f++) {
    ref_op op = f < N_FUNCTIONS ? functions[f] : pair_functions[f - N_FUNCTIONS];
    int is_pair = f >= N_FUNCTIONS;
    if (!has_op(op)) continue;
    int n = 0;
    memset(y, 0, sizeof y);
    if (is_pair) {
      while (n < RANDOM + 20000) {
        if (n % 16 == 0) {
          uint64_t a = rng_u64(&r), b = rng_u64(&r);
          memcpy(&x[n], &a, 8);
          memcpy(&y[n], &b, 8);
          avoid_zeros(op, &x[n], &y[n]);
        } else {
          any_pair(&r, op, REF_F64, &x[n], &y[n]);
        }
        n++;
      }
      /* Exact and half-way cases: small integers, squares, roots. */
      for (int i = 0; i < 5000; i++) {
        double base = (double)rng_range(&r, 1, 3000);
        double power = op == REF_POW ? (double)rng_range(&r, -4, 8) : (double)rng_range(&r, -3000, 3000);
        x[n] = i % 3 ? base : base * base;
        y[n++] = i % 3 ? power : 0.5;
      }
    } else {
      n = hard_points(op, x);
      for (int i = 0; i < RANDOM; i++) {
        double u = rng_unit(&r), v;
        uint64_t bits = rng_u64(&r);
        switch (i % 4) {
          case 0: memcpy(&v, &bits, 8); break;
          case 1: v = ldexp(2 * u - 1, (int)rng_range(&r, -40, 11)); break;
          case 2: v = op == REF_EXP ? u * 1460 - 748 : near_one(op) ? 1 + (u - 0.5) * ldexp(1, -(int)rng_below(&r, 50)) : (2 * u - 1) * reach(op); break;
          default: v = (2 * u - 1) * 2; break;
        }
        x[n++] = v;
      }
    }
    if (n > MAX) bail("too many points");
    if (call_on(op, REF_F64, n, x, is_pair ? y : NULL, z)) bail("%s", quern_last_error());
    pthread_t threads[N_WORKERS];
    f64_work work[N_WORKERS];
    worst w = {.ulp = -1};
    for (int i = 0; i < N_WORKERS; i++) {
      work[i] = (f64_work){.op = op, .x = x, .y = y, .z = z, .n = n, .first = i, .w = {.ulp = -1}};
      pthread_create(&threads[i], NULL, f64_run, &work[i]);
    }
    for (int i = 0; i < N_WORKERS; i++) {
      pthread_join(threads[i], NULL);
      merge(&w, &work[i].w);
    }
    report(op, REF_F64, &w);
  }
}

/* ---- f16, bf16 -------------------------------------------------------------------------------------------------- */

/* Computed in f32 within the bound, rounded once: ref.c knows what may come out. */
static void test_halves(void) {
  for (int f = 0; f <= N_FUNCTIONS; f++) {
    ref_op op = f < N_FUNCTIONS ? functions[f] : REF_SQRT;
    if (!has_op(op)) continue;
    group_begin("%s: every f16 and bf16", ref_op_describe(op)->name);
    for (int d = REF_F16; d <= REF_BF16; d++) {
      static uint16_t x[65536], y[65536];
      double top = 0;
      unsigned at = 0;
      for (int i = 0; i < 65536; i++) x[i] = (uint16_t)i;
      if (call_on(op, (ref_dtype)d, 65536, x, NULL, y)) bail("%s", quern_last_error());
      for (int i = 0; i < 65536; i++) {
        uint64_t bits = x[i];
        ref_dtype in = (ref_dtype)d;
        ref_expect e = ref_eval(op, &in, &bits, NULL, (ref_dtype)d);
        double ulp = ref_ulp_error((ref_dtype)d, y[i], e.exact);
        if (ulp > top) {
          top = ulp;
          at = (unsigned)i;
        }
        group_count(1);
        if (!ref_within((ref_dtype)d, y[i], &e)) group_fail("%s %s of 0x%04x: got 0x%04x, wanted 0x%04x to 0x%04x", ref_op_describe(op)->name, ref_dtype_name((ref_dtype)d), i, y[i], (unsigned)e.low, (unsigned)e.high);
      }
      diag("%s %s: worst %.4f ULP at 0x%04x, all patterns", ref_op_describe(op)->name, ref_dtype_name((ref_dtype)d), top, at);
    }
    group_end();
  }
}

/* The bounds that the specs declare (the manifest has them) are the ones that ref.c holds the ops to. */
static void test_declared(void) {
  char path[4096], line[8192];
  const char *build = getenv("QUERN_BUILD_DIR");
  snprintf(path, sizeof path, "%s/generated/manifest.json", build ? build : "");
  FILE *f = build ? fopen(path, "r") : NULL;
  if (!f) {
    skip(1, "no manifest.json: QUERN_BUILD_DIR is %s", build ? build : "not set");
    return;
  }
  group_begin("declared bounds are ref.c's");
  while (fgets(line, sizeof line, f)) { /* one op a line */
    char name[100];
    const char *formula = strstr(line, "\"formula\""), *ulp = strstr(line, "\"ulp\": {");
    if (!formula || !ulp || sscanf(line, " {\"name\": \"%99[a-z0-9_.]\"", name) != 1) continue;
    ref_op op = ref_op_find(name);
    if (op == REF_N_OPS) continue;
    for (int d = REF_F32; d <= REF_F64; d++) {
      char key[16];
      snprintf(key, sizeof key, "\"%s\": ", ref_dtype_name((ref_dtype)d));
      const char *at = strstr(ulp, key);
      double declared = at ? strtod(at + strlen(key), NULL) : 0.5, held = ref_op_describe(op)->ulp;
      group_count(1);
      if (declared != held) group_fail("%s %s: the spec declares %g ULP, ref.c holds it to %g", name, ref_dtype_name((ref_dtype)d), declared, held);
    }
  }
  fclose(f);
  group_end();
}

int main(void) {
  test_declared();
  /* Found before threads ask. */
  for (int f = 0; f < N_FUNCTIONS; f++) {
    if (has_op(functions[f])) the_op(functions[f]);
  }
  if (has_op(REF_SQRT)) the_op(REF_SQRT);
  test_f32();
  for (int f = 0; f < N_PAIR_FUNCTIONS; f++) {
    if (has_op(pair_functions[f])) test_pairs_f32(pair_functions[f]);
  }
  test_f64();
  test_halves();
  return done_testing();
}
