/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_functions.c: a row for each op with an exact value by MPFR: that value, and the hard points. An op without
 * a row is measured all the same, against the 113 bits of ref.c. */
#include "accuracy_functions.h"

#include <math.h>
#include <string.h>

/* ---- Compositions of libm's and MPFR's functions ---------------------------------------------------------------- */

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}

static double gelu(double x) {
  return x == -INFINITY ? -0.0 : 0.5 * x * erfc(-x * 0x1.6a09e667f3bcdp-1);
}

static double degrees(double x) {
  return x * (180 / M_PI);
}

static double radians(double x) {
  return x * (M_PI / 180);
}

static double sinc(double x) {
  double whole = rint(x), r = x - whole;
  if (x == 0) return 1;
  if (r == 0) return 0;
  return (fmod(whole, 2) == 0 ? 1 : -1) * sin(M_PI * r) / (M_PI * x);
}

static double larger(double x, double y) {
  return x > y ? x : y;
}

static double larger_size(double x, double y, double normal) {
  (void)normal;
  return fabs(larger(x, y));
}

/* x times a share that is 0 at -infinity and 1 at infinity; the limit there is -0 */
static double shared(double x, double share) {
  return x == -INFINITY ? -0.0 : x * share;
}

static double silu(double x) {
  return shared(x, sigmoid(x));
}

static double gelu_tanh(double x) {
  return shared(x, sigmoid(x * (0x1.9884533d43651p0 + 0x1.2444f2a4d8b4bp-4 * x * x)));
}

static double softplus_of(double x) {
  return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

static double softplus(double x) {
  return x > 20 ? x : softplus_of(x);
}

static double log_sigmoid(double x) {
  return -softplus_of(-x);
}

static double mish(double x) {
  return shared(x, tanh(softplus_of(x)));
}

static double softsign(double x) {
  return isinf(x) ? copysign(1, x) : x / (1 + fabs(x));
}

static double elu(double x) {
  return x > 0 ? x : expm1(x);
}

static double selu(double x) {
  return x > 0 ? 0x1.0cfabd6a91132p0 * x : 0x1.c212cc640f031p0 * expm1(x);
}

static double hard_sigmoid(double x) {
  return x > 3 ? 1 : x <= -3 ? 0 : (x + 3) / 6;
}

static double hard_swish(double x) {
  return x > 3 ? x : x <= -3 ? -0.0 : x * (x + 3) / 6;
}

static double swiglu(double gate, double x) {
  return (isinf(x) ? gate : silu(gate)) * x;
}

static double geglu(double gate, double x) {
  return (isinf(x) ? gate : gelu(gate)) * x;
}

/* What the error of an activation that is subnormal comes to. */
static double gated_least(double gate, double x, double normal) {
  (void)gate;
  return fabs(x) * normal;
}

static double logaddexp(double x, double y) {
  double m = larger(x, y);
  if (x != x || y != y) return NAN;
  return isinf(m) ? m : m + log1p(exp(x > y ? y - x : x - y));
}

static double logaddexp2(double x, double y) {
  double m = larger(x, y);
  if (x != x || y != y) return NAN;
  return isinf(m) ? m : m + log1p(exp2(x > y ? y - x : x - y)) / 0.693147180559945309417;
}

static int sigmoid_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_rnd_t round) {
  mpfr_neg(z, x, round);
  mpfr_exp(z, z, round);
  mpfr_add_ui(z, z, 1, round);
  return mpfr_ui_div(z, 1, z, round);
}

static int gelu_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_rnd_t round) {
  if (mpfr_inf_p(x) || mpfr_zero_p(x)) {
    mpfr_set(z, x, round);
    if (mpfr_inf_p(x) && mpfr_sgn(x) < 0) mpfr_set_zero(z, -1);
    return 0;
  }
  mpfr_t root;
  mpfr_init2(root, mpfr_get_prec(z));
  mpfr_sqrt_ui(root, 2, round);
  mpfr_div(z, x, root, round);
  mpfr_neg(z, z, round);
  mpfr_erfc(z, z, round);
  mpfr_mul(z, z, x, round);
  mpfr_clear(root);
  return mpfr_div_ui(z, z, 2, round);
}

/* z = pi / 180 */
static void set_degree(mpfr_ptr z, mpfr_rnd_t round) {
  mpfr_const_pi(z, round);
  mpfr_div_ui(z, z, 180, round);
}

static int degrees_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_rnd_t round) {
  set_degree(z, round);
  return mpfr_div(z, x, z, round);
}

static int radians_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_rnd_t round) {
  set_degree(z, round);
  return mpfr_mul(z, x, z, round);
}

static int reciprocal_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_rnd_t round) {
  return mpfr_ui_div(z, 1, x, round);
}

/* sin(pi x) / (pi x); x less the nearest integer is exact. */
static int sinc_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_rnd_t round) {
  if (mpfr_zero_p(x)) return mpfr_set_ui(z, 1, round);
  mpfr_t pi, half;
  mpfr_inits2(mpfr_get_prec(z), pi, half, (mpfr_ptr)0);
  mpfr_const_pi(pi, round);
  mpfr_rint(z, x, round);
  mpfr_div_ui(half, z, 2, round);
  int is_odd = !mpfr_integer_p(half);
  mpfr_sub(z, x, z, round);
  if (mpfr_zero_p(z)) {
    mpfr_set_zero(z, 1);
  } else {
    mpfr_mul(z, z, pi, round);
    mpfr_sin(z, z, round);
    mpfr_div(z, z, pi, round);
    mpfr_div(z, z, x, round);
    if (is_odd) mpfr_neg(z, z, round);
  }
  mpfr_clears(pi, half, (mpfr_ptr)0);
  return 0;
}

/* The larger, and the logarithm to base 2 or e of 1 + what the smaller adds. */
static int log_of_sum(mpfr_ptr z, mpfr_srcptr x, mpfr_srcptr y, int is_base_2, mpfr_rnd_t round) {
  mpfr_t m, two;
  if (mpfr_nan_p(x) || mpfr_nan_p(y)) {
    mpfr_set_nan(z);
    return 0;
  }
  mpfr_inits2(mpfr_get_prec(z), m, two, (mpfr_ptr)0);
  mpfr_max(m, x, y, round);
  if (mpfr_inf_p(m)) mpfr_set(z, m, round);
  else {
    mpfr_min(z, x, y, round);
    mpfr_sub(z, z, m, round);
    mpfr_const_log2(two, round);
    if (is_base_2) mpfr_mul(z, z, two, round);
    mpfr_exp(z, z, round);
    mpfr_log1p(z, z, round);
    if (is_base_2) mpfr_div(z, z, two, round);
    mpfr_add(z, z, m, round);
  }
  mpfr_clears(m, two, (mpfr_ptr)0);
  return 0;
}

static int logaddexp_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
  return log_of_sum(z, x, y, 0, round);
}

static int logaddexp2_mpfr(mpfr_ptr z, mpfr_srcptr x, mpfr_srcptr y, mpfr_rnd_t round) {
  return log_of_sum(z, x, y, 1, round);
}

/* ---- Random points ---------------------------------------------------------------------------------------------- */

double accuracy_draw_one(const accuracy_function *f, uint64_t i, rng *r) {
  double u = rng_unit(r), v, reach = f->reach ? f->reach : 760;
  uint64_t bits = rng_u64(r);
  switch (i % 4) {
    case 0: memcpy(&v, &bits, 8); return v;
    case 1: return ldexp(2 * u - 1, (int)rng_range(r, -40, 11));
    case 2: return f->is_near_1 ? 1 + (u - 0.5) * ldexp(1, -(int)rng_below(r, 50)) : (2 * u - 1) * reach;
    default: return (2 * u - 1) * 2;
  }
}

/* Of any sizes, most of them near each other's; or whole. */
static void any_pair(rng *r, const accuracy_format *f, double *x, double *y) {
  int e = (int)rng_range(r, f->bottom, f->top - 1);
  *x = 1 + rng_unit(r);
  *y = 1 + rng_unit(r);
  switch (rng_below(r, 6)) {
    case 0: *x = ldexp(*x, e), *y = ldexp(*y, (int)rng_range(r, f->bottom, f->top - 1)); break;
    case 1: *x = ldexp(*x, e), *y = ldexp(*y, e + (int)rng_range(r, -f->digits, 1)); break;
    case 2: *x = ldexp(*x, e), *y = ldexp(*y, (int)rng_range(r, f->bottom, f->top) - e); break; /* products near the ends */
    case 3: *x = (double)rng_range(r, 0, 3000), *y = (double)rng_range(r, 0, 3000); break;
    case 4: *y = *x * (1 + (rng_unit(r) - 0.5) * ldexp(1, -(int)rng_below(r, (uint64_t)f->digits))); break;
    default: *x *= 8 * rng_unit(r), *y *= 8 * rng_unit(r); break;
  }
  if (rng_below(r, 2)) *x = -*x;
  if (rng_below(r, 2)) *y = -*y;
}

static double rounded(const accuracy_format *f, double x) {
  return f->digits < 53 ? (float)x : x;
}

/* A pair. Most of the powers are finite and not trivial. */
static void pow_pair(rng *r, const accuracy_format *f, double *x, double *y) {
  double top = f->top, bottom = f->bottom - 1;
  double b; /* log2 of x */
  switch (rng_below(r, 8)) {
    case 0: *x = ldexp(1 + rng_unit(r), (int)rng_range(r, (int64_t)bottom, (int64_t)top - 1)); break;
    case 1: *x = 1 + (rng_unit(r) - 0.5) * ldexp(1, -(int)rng_below(r, (uint64_t)f->digits - 2)); break;
    case 2: *x = (double)(1 + rng_below(r, 1000)); break;
    case 3: *x = 0.5 + rng_unit(r); break;
    case 4: *x = 1 + ldexp((double)(1 + rng_below(r, 9)), 1 - f->digits) * (rng_below(r, 2) ? 1 : -0.5); break;
    case 5: *x = (double)(96 + rng_below(r, 97)) / 128 + (rng_unit(r) - 0.5) * 0x1p-10; break; /* where tables may begin */
    default: *x = 10 * rng_unit(r) + 1e-3; break;
  }
  *x = rounded(f, *x);
  if (!(*x > 0)) *x = 1.5;
  b = log2(*x);
  switch (rng_below(r, 6)) {
    case 0: *y = (double)rng_range(r, -20, 20); break;
    case 1: *y = rng_unit(r) * 4 - 2; break;
    case 2: *y = (rng_below(r, 2) ? top : bottom) / b * (1 + (rng_unit(r) - 0.5) * 0x1p-10); break; /* near the ends */
    case 3: *y = (bottom + 30 * rng_unit(r)) / b; break;                                              /* subnormal results */
    default: *y = (bottom + (top - bottom) * rng_unit(r)) / b; break;
  }
  switch (rng_below(r, 16)) {
    case 0: *x = (double)rng_range(r, 1, 3000), *y = (double)rng_range(r, -4, 8); break; /* exact and half-way cases */
    case 1: *x = (double)rng_range(r, 1, 3000), *x *= *x, *y = 0.5; break;
    default: break;
  }
  if (rng_below(r, 8) == 0) *x = -*x, *y = rint(*y);
}

/* Points in all directions, most of them off the axes; of any size, up to where quotients overflow and underflow. */
static void atan2_pair(rng *r, const accuracy_format *f, double *y, double *x) {
  int top = f->top - 1, bottom = f->bottom;
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
static void hypot_pair(rng *r, const accuracy_format *f, double *x, double *y) {
  int top = f->top - 1, bottom = f->bottom, digits = f->digits, e = (int)rng_range(r, bottom, top);
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
  if (rng_below(r, 16) == 0) *x = (double)rng_range(r, 1, 3000), *y = (double)rng_range(r, 1, 3000);
  if (rng_below(r, 2)) *x = -*x;
  if (rng_below(r, 2)) {
    double z = *x;
    *x = *y;
    *y = z;
  }
}

/* At distances that count, mostly; subnormals with subnormal sums. */
static void sum_pair(rng *r, const accuracy_format *f, double *x, double *y) {
  double reach = f->digits < 53 ? 110 : 760;
  if (rng_below(r, 8) == 0) {
    *x = ldexp(2 * rng_unit(r) - 1, f->bottom + (int)rng_below(r, (uint64_t)f->digits));
    *y = (f->bottom + f->digits * rng_unit(r)) * (rng_below(r, 2) ? 1 : 0.69314718055994531);
    return;
  }
  switch (rng_below(r, 4)) {
    case 0: *x = rng_unit(r) * 4 - 2; break;
    case 1: *x = ldexp(2 * rng_unit(r) - 1, (int)rng_range(r, -60, 40)); break;
    default: *x = (2 * rng_unit(r) - 1) * reach; break;
  }
  *y = *x + (2 * rng_unit(r) - 1) * (rng_below(r, 3) ? 8 : reach);
}

/* Gates of all sizes that count; now and then a large factor where they are near their limit. */
static void gated_pair(rng *r, const accuracy_format *f, double *gate, double *x) {
  static const double reach[] = {2, 8, 40, 120, 800};
  *gate = (2 * rng_unit(r) - 1) * reach[rng_below(r, 5)];
  if (rng_below(r, 8) == 0) *gate = ldexp(*gate, (int)rng_range(r, f->bottom, 0));
  *x = 2 * rng_unit(r) - 1;
  if (rng_below(r, 4) == 0) *x = ldexp(*x, (int)rng_range(r, f->bottom, f->top));
}

void accuracy_draw(const accuracy_function *function, rng *r, const accuracy_format *f, double *x, double *y) {
  (function->draw ? function->draw : any_pair)(r, f, x, y);
}

/* ---- The rows --------------------------------------------------------------------------------------------------- */

static const accuracy_function functions[] = {
    {.op = REF_SQRT, .f1 = sqrt, .m1 = mpfr_sqrt},
    {.op = REF_SQUARE, .m1 = mpfr_sqr},
    {.op = REF_RECIPROCAL, .m1 = reciprocal_mpfr},
    {.op = REF_CBRT, .f1 = cbrt, .m1 = mpfr_cbrt},
    {.op = REF_EXP, .f1 = exp, .m1 = mpfr_exp},
    {.op = REF_EXP2, .f1 = exp2, .m1 = mpfr_exp2, .reach = 1080},
    {.op = REF_EXPM1, .f1 = expm1, .m1 = mpfr_expm1, .reach = 45},
    {.op = REF_LOG, .f1 = log, .m1 = mpfr_log, .is_near_1 = 1},
    {.op = REF_LOG2, .f1 = log2, .m1 = mpfr_log2, .is_near_1 = 1},
    {.op = REF_LOG10, .f1 = log10, .m1 = mpfr_log10, .is_near_1 = 1},
    {.op = REF_LOG1P, .f1 = log1p, .m1 = mpfr_log1p, .reach = 1},
    {.op = REF_SIN, .f1 = sin, .m1 = mpfr_sin},
    {.op = REF_COS, .f1 = cos, .m1 = mpfr_cos},
    {.op = REF_TAN, .f1 = tan, .m1 = mpfr_tan},
    {.op = REF_ASIN, .f1 = asin, .m1 = mpfr_asin, .reach = 1.01},
    {.op = REF_ACOS, .f1 = acos, .m1 = mpfr_acos, .reach = 1.01},
    {.op = REF_ATAN, .f1 = atan, .m1 = mpfr_atan, .reach = 3},
    {.op = REF_SINH, .f1 = sinh, .m1 = mpfr_sinh},
    {.op = REF_COSH, .f1 = cosh, .m1 = mpfr_cosh},
    {.op = REF_TANH, .f1 = tanh, .m1 = mpfr_tanh, .reach = 22},
    {.op = REF_ASINH, .f1 = asinh, .m1 = mpfr_asinh, .reach = 4},
    {.op = REF_ACOSH, .f1 = acosh, .m1 = mpfr_acosh, .is_near_1 = 1},
    {.op = REF_ATANH, .f1 = atanh, .m1 = mpfr_atanh, .reach = 1},
    {.op = REF_ERF, .f1 = erf, .m1 = mpfr_erf, .reach = 6.2},
    {.op = REF_ERFC, .f1 = erfc, .m1 = mpfr_erfc, .reach = 27.5},
    {.op = REF_SIGMOID, .f1 = sigmoid, .m1 = sigmoid_mpfr},
    {.op = REF_GELU, .f1 = gelu, .m1 = gelu_mpfr, .reach = 39},
    {.op = REF_SILU, .f1 = silu},
    {.op = REF_GELU_TANH, .f1 = gelu_tanh, .reach = 24},
    {.op = REF_MISH, .f1 = mish},
    {.op = REF_SOFTPLUS, .f1 = softplus},
    {.op = REF_LOG_SIGMOID, .f1 = log_sigmoid},
    {.op = REF_SOFTSIGN, .f1 = softsign, .reach = 4},
    {.op = REF_ELU, .f1 = elu, .reach = 45},
    {.op = REF_CELU, .f1 = elu, .reach = 45},
    {.op = REF_SELU, .f1 = selu, .reach = 45},
    {.op = REF_HARD_SIGMOID, .f1 = hard_sigmoid, .reach = 4},
    {.op = REF_HARD_SWISH, .f1 = hard_swish, .reach = 4},
    {.op = REF_SWIGLU, .f2 = swiglu, .draw = gated_pair, .least = gated_least},
    {.op = REF_GEGLU, .f2 = geglu, .draw = gated_pair, .least = gated_least},
    {.op = REF_SINC, .f1 = sinc, .m1 = sinc_mpfr},
    {.op = REF_DEGREES, .f1 = degrees, .m1 = degrees_mpfr},
    {.op = REF_RADIANS, .f1 = radians, .m1 = radians_mpfr},
    {.op = REF_POW, .f2 = pow, .m2 = mpfr_pow, .draw = pow_pair},
    {.op = REF_FLOAT_POWER, .f2 = pow, .m2 = mpfr_pow, .draw = pow_pair},
    {.op = REF_ATAN2, .f2 = atan2, .m2 = mpfr_atan2, .draw = atan2_pair},
    {.op = REF_HYPOT, .f2 = hypot, .m2 = mpfr_hypot, .draw = hypot_pair},
    {.op = REF_LOGADDEXP, .f2 = logaddexp, .m2 = logaddexp_mpfr, .draw = sum_pair, .least = larger_size},
    {.op = REF_LOGADDEXP2, .f2 = logaddexp2, .m2 = logaddexp2_mpfr, .draw = sum_pair, .least = larger_size},
    {.op = REF_ADD, .m2 = mpfr_add},
    {.op = REF_SUBTRACT, .m2 = mpfr_sub},
    {.op = REF_MULTIPLY, .m2 = mpfr_mul},
    {.op = REF_DIVIDE, .m2 = mpfr_div},
    {.op = REF_FMA, .m3 = mpfr_fma},
};

const accuracy_function *accuracy_function_of(ref_op op) {
  static const accuracy_function none;
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (functions[i].op == op) return &functions[i];
  }
  return &none;
}

/* ---- Hard points ------------------------------------------------------------------------------------------------ */

int accuracy_hard_points(const accuracy_function *function, double *x) {
  int n = 0;
  static const double seams[] = {
    0, 0x1p-1074, 0x1p-1022, 0x1p-60, 0x1p-54, 0x1p-53, 0x1p-28, 0x1p-27, 0x1p-26, 1e-5, 0.0625, 0.125, 0.25,
    0.3465735902799726, 0.34657359027997264, 0.375, 0.5, 0.625, 0.6931471805599453, 0.70710678118654752, 0.75,
    0.84375, 0.875, 0.9375, 1, 1.0397207708399179, 1.25, 1.4142135623730951, 1.5, 2, 2.75, 2.857142857142857, 3, 3.5,
    4, 5, 5.5, 5.92158719, 5.921587195794507, 6, 8, 8.29, 9, 10, 16, 18.714973875118524, 19.06, 20, 22, 26.5, 27.226,
    28, 32, 36.04, 36.7, 37, 37.5, 37.68, 38, 38.4, 38.6, 40, 44, 100, 512, 700, 708.39641853226408,
    708.3964185322641, 709, 709.78271289338397, 709.78271289338409, 709.7827128933841, 710, 744.44007192138122,
    710.47586007394386, 710.4758600739439, 745, 745.13321910194111, 745.1332191019412, 745.14, 746, 1024, 1075,
    0.16666666666666666, 0.2857142857142857, 0.41421356237309503, 1e3, 1e6, 1e17, 0x1p52, 0x1p53, 0x1p54, 0x1p1023,
    0x1.fffffffffffffp1023, INFINITY, NAN,
    /* printed hard cases of exp, log (Lefevre and Muller) and their neighbours */
    0x1.9e9cbbfd6080bp-31, 0x1.83d4bcdebb3f4p2, 0x1.accfbe46b4ef0p-1, 0x1.2e5d0e5a6f6a5p-1, 0x1.62e42fefa39efp-1,
    0x1.0p-10, 0x1.fffffffffffffp-1, 0x1.0000000000001p0,
    /* atan, asin, acos: pieces, tangents and sines of pi/8, pi/6, pi/3, 3 pi/8, pi/2 */
    0.6, 0.41421356237309503, 0.57735026918962573, 1.5574077246549023, 1.7320508075688772, 2.4142135623730949,
    0.38268343236508978, 0.8660254037844386, 0.92387953251128674, 0x1.d02967c31cdb5p53,
    /* the worst found in 2 10^7 random points: atan, asin */
    0x1.8d25562185d37p+0, 0x1.0e3dbf99933cep-1,
    /* the worst found in 3 10^6 random points: erf, gelu, sigmoid, tanh, exp */
    0x1.d36852d7bfa82p-1, 0x1.c6a0797136bcp-1, 0x1.3a8fd894fa318p-2, 0x1.33b4a71c966d8p-2, 0x1.265ec166dd5d8p-2,
    0x1.1aa3850d7767p+0, 0x1.83155c93cb89p-3, 0x1.9f0b12b85a408p-2, 0x1.dc22f3e89762ep+0, 0x1.bd1ec84157adfp-1,
    /* where far angles begin; the f64s nearest to multiples of pi/2 (convergents of 2^e 2/pi); the worst found of cos and tan */
    0x1.9p25, 1e22, 0x1.6ac5b262ca1ffp+849, 0x1.6ac5b262ca1ffp+850, 0x1.6c6cbc45dc8dep+5, 0x1.6c6cbc45dc8dep+6,
    0x1.b951f1572eba5p+23, 0x1.504cac51f1eafp+131, 0x1.e009c53148be1p+991, 0x1.4c96c11134d36p+577,
    0x1.cfe484285f8edp+860, 0x1.db41f3cb71d7bp+680, 0x1.e7e44a78ac18cp+197, 0x1.91735b8a5d1d2p-1,
    0x1.8c12621de4541p-1,
  };
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
  for (int e = 1; e < 54; e++) { /* towards 1 */
    x[n++] = 1 - ldexp(1, -e);
    x[n++] = ldexp(1.4142135623730951, -e) - 1;
  }
  for (int e = -1074; e < 1024; e++) {
    double p = ldexp(1, e);
    x[n++] = p;
    x[n++] = nextafter(p, INFINITY);
    x[n++] = -nextafter(p, 0);
    x[n++] = nextafter(p, 1) - 1;
    if (function->is_near_1) x[n++] = ldexp(1.4142135623730951, e);
    if (function->is_near_1) x[n++] = nextafter(p, 0);
  }
  return n;
}
