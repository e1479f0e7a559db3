/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_backward.c: see accuracy_backward.h. First the formulas, then what is measured. */
#include "accuracy_backward.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy_error.h"
#include "accuracy_functions.h"
#include "tensors.h"

#define PRECISION 200
#define R MPFR_RNDN

/* ---- Formulas --------------------------------------------------------------------------------------------------
 * z = the derivative by one input, of which grad is a multiple, at v[1], v[2] ...: the inputs of the backward op behind grad, in
 * its order. t: to compute with. */

typedef void formula(mpfr_ptr z, mpfr_t *v, mpfr_t *t);
#define FORMULA(name) static void of_##name(mpfr_ptr z, mpfr_t *v, mpfr_t *t)
#define UNUSED_ARGUMENTS ((void)v, (void)t)

FORMULA(one) { UNUSED_ARGUMENTS, mpfr_set_ui(z, 1, R); }
FORMULA(sqrt) { (void)t, mpfr_mul_ui(z, v[1], 2, R), mpfr_ui_div(z, 1, z, R); }
FORMULA(first) { (void)t, mpfr_set(z, v[1], R); }
FORMULA(second) { (void)t, mpfr_set(z, v[2], R); }
FORMULA(twice) { (void)t, mpfr_mul_ui(z, v[1], 2, R); }
FORMULA(inverse) { (void)t, mpfr_ui_div(z, 1, v[1], R); }
FORMULA(inverse_of_second) { (void)t, mpfr_ui_div(z, 1, v[2], R); }
FORMULA(reciprocal) { (void)t, mpfr_sqr(z, v[1], R), mpfr_neg(z, z, R); }
FORMULA(second_of_divide) { mpfr_sqr(t[0], v[2], R), mpfr_div(z, v[1], t[0], R), mpfr_neg(z, z, R); }
FORMULA(exp2) { mpfr_const_log2(t[0], R), mpfr_mul(z, v[1], t[0], R); }
FORMULA(expm1) { (void)t, mpfr_exp(z, v[1], R); }
FORMULA(log2) { mpfr_const_log2(t[0], R), mpfr_mul(z, v[1], t[0], R), mpfr_ui_div(z, 1, z, R); }
FORMULA(log10) { mpfr_log_ui(t[0], 10, R), mpfr_mul(z, v[1], t[0], R), mpfr_ui_div(z, 1, z, R); }
FORMULA(log1p) { (void)t, mpfr_add_ui(z, v[1], 1, R), mpfr_ui_div(z, 1, z, R); }
FORMULA(tanh) { (void)t, mpfr_sech(z, v[1], R), mpfr_sqr(z, z, R); }
FORMULA(sigmoid) { (void)t, mpfr_div_ui(z, v[1], 2, R), mpfr_sech(z, z, R), mpfr_sqr(z, z, R), mpfr_div_ui(z, z, 4, R); }
FORMULA(cbrt) { (void)t, mpfr_sqr(z, v[1], R), mpfr_mul_ui(z, z, 3, R), mpfr_ui_div(z, 1, z, R); }
FORMULA(sinh) { (void)t, mpfr_cosh(z, v[1], R); }
FORMULA(cosh) { (void)t, mpfr_sinh(z, v[1], R); }
FORMULA(atan) { (void)t, mpfr_sqr(z, v[1], R), mpfr_add_ui(z, z, 1, R), mpfr_ui_div(z, 1, z, R); }
FORMULA(asinh) { (void)t, mpfr_sqr(z, v[1], R), mpfr_add_ui(z, z, 1, R), mpfr_rec_sqrt(z, z, R); }
FORMULA(atanh) { mpfr_ui_sub(t[0], 1, v[1], R), mpfr_add_ui(z, v[1], 1, R), mpfr_mul(z, z, t[0], R), mpfr_ui_div(z, 1, z, R); }
FORMULA(asin) { mpfr_ui_sub(t[0], 1, v[1], R), mpfr_add_ui(z, v[1], 1, R), mpfr_mul(z, z, t[0], R), mpfr_rec_sqrt(z, z, R); }
FORMULA(acos) { of_asin(z, v, t), mpfr_neg(z, z, R); }
FORMULA(sin) { (void)t, mpfr_cos(z, v[1], R); }
FORMULA(cos) { (void)t, mpfr_sin(z, v[1], R), mpfr_neg(z, z, R); }
FORMULA(tan) { (void)t, mpfr_sqr(z, v[1], R), mpfr_add_ui(z, z, 1, R); }
FORMULA(radians) { UNUSED_ARGUMENTS, mpfr_const_pi(z, R), mpfr_div_ui(z, z, 180, R); }
FORMULA(degrees) { of_radians(z, v, t), mpfr_ui_div(z, 1, z, R); }

FORMULA(acosh) {
  mpfr_sub_ui(t[0], v[1], 1, R), mpfr_add_ui(z, v[1], 1, R), mpfr_mul(z, z, t[0], R), mpfr_rec_sqrt(z, z, R);
  if (mpfr_cmp_ui(v[1], 1) < 0) mpfr_set_nan(z);
}

/* e^(-x^2 / by), by / 2 times the square of the normal distribution's scale */
static void bell(mpfr_ptr z, mpfr_srcptr x, unsigned by) {
  mpfr_sqr(z, x, R), mpfr_div_ui(z, z, by, R), mpfr_neg(z, z, R), mpfr_exp(z, z, R);
}

FORMULA(erf) {
  bell(z, v[1], 1);
  mpfr_const_pi(t[0], R), mpfr_rec_sqrt(t[0], t[0], R), mpfr_mul(z, z, t[0], R), mpfr_mul_ui(z, z, 2, R);
}

FORMULA(erfc) { of_erf(z, v, t), mpfr_neg(z, z, R); }

/* Phi(x) + x phi(x), which is below 0 towards -inf; beyond 100 it rounds to 1 and to -0 */
FORMULA(gelu) {
  if (!mpfr_nan_p(v[1]) && mpfr_cmpabs_ui(v[1], 100) > 0) {
    if (mpfr_sgn(v[1]) > 0) mpfr_set_ui(z, 1, R);
    else mpfr_set_zero(z, -1);
    return;
  }
  mpfr_sqrt_ui(t[0], 2, R), mpfr_div(t[0], v[1], t[0], R), mpfr_neg(t[0], t[0], R);
  mpfr_erfc(z, t[0], R), mpfr_div_ui(z, z, 2, R);
  bell(t[0], v[1], 2);
  mpfr_const_pi(t[1], R), mpfr_mul_ui(t[1], t[1], 2, R), mpfr_rec_sqrt(t[1], t[1], R);
  mpfr_mul(t[0], t[0], t[1], R), mpfr_mul(t[0], t[0], v[1], R), mpfr_add(z, z, t[0], R);
}

/* z = 1 / (1 + e^-x) */
static void sigmoid_of(mpfr_ptr z, mpfr_srcptr x) {
  mpfr_neg(z, x, R), mpfr_exp(z, z, R), mpfr_add_ui(z, z, 1, R), mpfr_ui_div(z, 1, z, R);
}

/* The derivative of x s(x) by the share s and its derivative, at z and t: s + x t; beyond 2000 it rounds to 1 and to -0 */
static void share_by_parts(mpfr_ptr z, mpfr_srcptr x, mpfr_ptr t) {
  if (!mpfr_nan_p(x) && mpfr_cmpabs_ui(x, 2000) > 0) {
    if (mpfr_sgn(x) > 0) mpfr_set_ui(z, 1, R);
    else mpfr_set_zero(z, -1);
    return;
  }
  mpfr_mul(t, t, x, R), mpfr_add(z, z, t, R);
}

/* z = s, t = s (1 - s) for s = sigmoid(x), by the sigmoid of -x */
static void sigmoid_parts(mpfr_ptr z, mpfr_ptr t, mpfr_srcptr x, mpfr_ptr negative) {
  mpfr_neg(negative, x, R), sigmoid_of(t, negative), sigmoid_of(z, x), mpfr_mul(t, t, z, R);
}

FORMULA(silu) { sigmoid_parts(z, t[0], v[1], t[1]), share_by_parts(z, v[1], t[0]); }

/* twice the tanh's argument and its derivative: a (x + b x^3), a (1 + 3 b x^2) */
FORMULA(gelu_tanh) {
  mpfr_const_pi(t[0], R), mpfr_ui_div(t[0], 8, t[0], R), mpfr_sqrt(t[0], t[0], R);
  mpfr_sqr(t[1], v[1], R), mpfr_mul_ui(t[1], t[1], 44715, R), mpfr_div_ui(t[1], t[1], 1000000, R);
  mpfr_add_ui(t[2], t[1], 1, R), mpfr_mul(t[2], t[2], v[1], R), mpfr_mul(t[2], t[2], t[0], R);
  mpfr_mul_ui(t[1], t[1], 3, R), mpfr_add_ui(t[1], t[1], 1, R), mpfr_mul(t[1], t[1], t[0], R);
  mpfr_t slope;
  mpfr_init2(slope, PRECISION);
  sigmoid_parts(z, t[0], t[2], slope);
  mpfr_clear(slope);
  mpfr_mul(t[0], t[0], t[1], R), share_by_parts(z, v[1], t[0]);
}

/* tanh(p) + x sech(p)^2 sigmoid(x), p = log(1 + e^x) */
FORMULA(mish) {
  mpfr_exp(t[0], v[1], R), mpfr_log1p(t[0], t[0], R);
  mpfr_tanh(z, t[0], R), mpfr_sech(t[0], t[0], R), mpfr_sqr(t[0], t[0], R);
  sigmoid_of(t[1], v[1]), mpfr_mul(t[0], t[0], t[1], R), share_by_parts(z, v[1], t[0]);
}

/* e^x below 0, above 0 1, each times a constant */
static void elu_slope(mpfr_ptr z, mpfr_srcptr x, const char *above, const char *below, mpfr_ptr t) {
  const int is_above = !mpfr_nan_p(x) && mpfr_sgn(x) > 0;
  mpfr_set_str(t, is_above ? above : below, 10, R);
  if (is_above) mpfr_set(z, t, R);
  else mpfr_exp(z, x, R), mpfr_mul(z, z, t, R);
}

FORMULA(elu) { elu_slope(z, v[1], "1", "1", t[0]); }
FORMULA(selu) {
  elu_slope(z, v[1], "1.0507009873554804934193349852946", "1.75809934084737685994021752081231934206024580891220831", t[0]);
}
FORMULA(softplus) {
  (void)t;
  if (!mpfr_nan_p(v[1]) && mpfr_cmp_ui(v[1], 20) > 0) mpfr_set_ui(z, 1, R);
  else sigmoid_of(z, v[1]);
}
FORMULA(log_sigmoid) { mpfr_neg(t[0], v[1], R), sigmoid_of(z, t[0]); }
FORMULA(softsign) { (void)t, mpfr_abs(z, v[1], R), mpfr_add_ui(z, z, 1, R), mpfr_sqr(z, z, R), mpfr_ui_div(z, 1, z, R); }
/* Where a function is flat its derivative is 0 whatever grad is: a factor that is too small to show, and no number of the dtype. */
static void flat(mpfr_ptr z) { mpfr_set_ui_2exp(z, 1, -10000, R); }

FORMULA(hard_sigmoid) {
  (void)t;
  if (!mpfr_nan_p(v[1]) && mpfr_cmpabs_ui(v[1], 3) >= 0) flat(z);
  else mpfr_set_ui(z, 1, R), mpfr_div_ui(z, z, 6, R);
}
FORMULA(hard_swish) {
  (void)t;
  if (!mpfr_nan_p(v[1]) && mpfr_cmp_si(v[1], -3) <= 0) flat(z);
  else if (!mpfr_nan_p(v[1]) && mpfr_cmp_ui(v[1], 3) >= 0) mpfr_set_ui(z, 1, R);
  else mpfr_mul_ui(z, v[1], 2, R), mpfr_add_ui(z, z, 3, R), mpfr_div_ui(z, z, 6, R);
}
FORMULA(first_of_prelu) {
  (void)t;
  if (mpfr_sgn(v[1]) > 0) mpfr_set_ui(z, 1, R);
  else mpfr_set(z, v[2], R);
}
FORMULA(second_of_prelu) {
  (void)t;
  if (mpfr_sgn(v[1]) > 0) mpfr_set_zero(z, 1);
  else mpfr_set(z, v[1], R);
}
FORMULA(first_of_swiglu) { of_silu(z, v, t), mpfr_mul(z, z, v[2], R); }
FORMULA(second_of_swiglu) { (void)t, sigmoid_of(z, v[1]), mpfr_mul(z, z, v[1], R); }
FORMULA(first_of_geglu) { of_gelu(z, v, t), mpfr_mul(z, z, v[2], R); }
FORMULA(second_of_geglu) {
  mpfr_sqrt_ui(t[0], 2, R), mpfr_div(t[0], v[1], t[0], R), mpfr_neg(t[0], t[0], R);
  mpfr_erfc(z, t[0], R), mpfr_div_ui(z, z, 2, R), mpfr_mul(z, z, v[1], R);
}

/* (cos(pi x) - sin(pi x) / (pi x)) / x; x less the nearest integer is exact. Near 0 the first term of its series */
FORMULA(sinc) {
  mpfr_const_pi(t[0], R);
  if (mpfr_zero_p(v[1]) || (mpfr_regular_p(v[1]) && mpfr_get_exp(v[1]) < -60)) {
    mpfr_sqr(z, t[0], R), mpfr_div_si(z, z, -3, R), mpfr_mul(z, z, v[1], R);
    return;
  }
  mpfr_rint(t[1], v[1], R), mpfr_sub(t[2], v[1], t[1], R), mpfr_mul(t[2], t[2], t[0], R);
  mpfr_div_ui(t[1], t[1], 2, R);
  const int is_odd = !mpfr_integer_p(t[1]);
  mpfr_sin_cos(z, t[1], t[2], R);
  mpfr_div(z, z, t[0], R), mpfr_div(z, z, v[1], R), mpfr_sub(z, t[1], z, R), mpfr_div(z, z, v[1], R);
  if (is_odd) mpfr_neg(z, z, R);
}

FORMULA(first_of_pow) { (void)t, mpfr_div(z, v[3], v[1], R), mpfr_mul(z, z, v[2], R); }
FORMULA(second_of_pow) { mpfr_log(t[0], v[1], R), mpfr_mul(z, v[3], t[0], R); }
FORMULA(first_of_hypot) { (void)t, mpfr_div(z, v[1], v[3], R); }
FORMULA(second_of_hypot) { (void)t, mpfr_div(z, v[2], v[3], R); }
FORMULA(first_of_atan2) { mpfr_hypot(t[0], v[1], v[2], R), mpfr_sqr(t[0], t[0], R), mpfr_div(z, v[2], t[0], R); }
FORMULA(second_of_atan2) {
  mpfr_hypot(t[0], v[1], v[2], R), mpfr_sqr(t[0], t[0], R), mpfr_div(z, v[1], t[0], R), mpfr_neg(z, z, R);
}
FORMULA(remainder) { (void)t, mpfr_div(z, v[1], v[2], R), mpfr_floor(z, z), mpfr_neg(z, z, R); }
FORMULA(fmod) { (void)t, mpfr_div(z, v[1], v[2], R), mpfr_trunc(z, z), mpfr_neg(z, z, R); }

/* The share of e^x (2^x) in e^x + e^y */
static void share(mpfr_ptr z, mpfr_srcptr x, mpfr_srcptr y, mpfr_ptr t, int is_base_2) {
  mpfr_sub(z, y, x, R);
  if (is_base_2) mpfr_const_log2(t, R), mpfr_mul(z, z, t, R);
  mpfr_exp(z, z, R), mpfr_add_ui(z, z, 1, R), mpfr_ui_div(z, 1, z, R);
}

FORMULA(first_of_logaddexp) { share(z, v[1], v[2], t[0], 0); }
FORMULA(second_of_logaddexp) { share(z, v[2], v[1], t[0], 0); }
FORMULA(first_of_logaddexp2) { share(z, v[1], v[2], t[0], 1); }
FORMULA(second_of_logaddexp2) { share(z, v[2], v[1], t[0], 1); }

/* ---- The rows -------------------------------------------------------------------------------------------------- */

/* Where a sum cancels, errors are counted in the ULPs of a part of grad. */
static long double least_of_gelu(int output, const double *v) { return (void)output, 0.25 * fabs(v[0]); }
static long double least_of_sinc(int output, const double *v) {
  return (void)output, fabs(v[1]) > 1 ? 0x1p-5 * fabs(v[0] / v[1] / v[1]) : 0;
}
static long double least_of_flat(int output, const double *v) { return (void)output, (void)v, 0x1p-1074; }
static long double least_of_gated(int output, const double *v) { return output == 0 ? 0.25L * fabsl((long double)v[0] * v[2]) : 0; }

typedef struct row {
  const char *op;
  double ulp[2]; /* what the spec declares of f32 and f64 */
  formula *of[BACKWARD_MAX_OUT];
  long double (*least)(int output, const double *v); /* v: grad and the inputs */
} row;

static const row rows[] = {
    {"multiply", {0.5, 0.5}, {of_second, of_first}, NULL},
    {"divide", {2.4, 2.4}, {of_inverse_of_second, of_second_of_divide}, NULL},
    {"fma", {0.5, 0.5}, {of_second, of_first, of_one}, NULL},
    {"square", {1, 1}, {of_twice}, NULL},
    {"reciprocal", {1.6, 1.6}, {of_reciprocal}, NULL},
    {"remainder", {2.7, 2.6}, {of_one, of_remainder}, NULL},
    {"fmod", {2.7, 2.6}, {of_one, of_fmod}, NULL},
    {"float_power", {0.5, 2.6}, {of_first_of_pow, of_second_of_pow}, NULL},
    {"sqrt", {0.8, 0.8}, {of_sqrt}, NULL},
    {"exp", {0.5, 0.5}, {of_first}, NULL},
    {"exp2", {1.7, 2}, {of_exp2}, NULL},
    {"expm1", {2.6, 3}, {of_expm1}, NULL},
    {"log", {0.5, 0.5}, {of_inverse}, NULL},
    {"log2", {1.7, 1.7}, {of_log2}, NULL},
    {"log10", {2, 1.9}, {of_log10}, NULL},
    {"log1p", {1.7, 1.7}, {of_log1p}, NULL},
    {"tanh", {2.5, 3.1}, {of_tanh}, NULL},
    {"sigmoid", {2.8, 3.1}, {of_sigmoid}, NULL},
    {"erf", {3.6, 3.5}, {of_erf}, NULL},
    {"erfc", {4, 3.7}, {of_erfc}, NULL},
    {"gelu", {3.5, 3.5}, {of_gelu}, least_of_gelu},
    {"cbrt", {2.4, 2.4}, {of_cbrt}, NULL},
    {"sinh", {2.7, 3}, {of_sinh}, NULL},
    {"cosh", {2.7, 3}, {of_cosh}, NULL},
    {"asinh", {1.7, 1.7}, {of_asinh}, NULL},
    {"acosh", {2, 2}, {of_acosh}, NULL},
    {"atanh", {1.7, 1.7}, {of_atanh}, NULL},
    {"sin", {1.7, 1.7}, {of_sin}, NULL},
    {"cos", {1.7, 1.7}, {of_cos}, NULL},
    {"tan", {1.7, 1.7}, {of_tan}, NULL},
    {"asin", {2, 2}, {of_asin}, NULL},
    {"acos", {2, 2}, {of_acos}, NULL},
    {"atan", {1.7, 1.7}, {of_atan}, NULL},
    {"sinc", {2.6, 2.6}, {of_sinc}, least_of_sinc},
    {"degrees", {1, 1}, {of_degrees}, NULL},
    {"radians", {1, 1}, {of_radians}, NULL},
    {"pow", {2.5, 2.6}, {of_first_of_pow, of_second_of_pow}, NULL},
    {"hypot", {1.7, 1.7}, {of_first_of_hypot, of_second_of_hypot}, NULL},
    {"atan2", {3.8, 4}, {of_first_of_atan2, of_second_of_atan2}, NULL},
    {"logaddexp", {3.2, 3.2}, {of_first_of_logaddexp, of_second_of_logaddexp}, NULL},
    {"logaddexp2", {3.1, 3.2}, {of_first_of_logaddexp2, of_second_of_logaddexp2}, NULL},
    {"silu", {3.4, 3.2}, {of_silu}, least_of_gelu},
    {"gelu_tanh", {3.6, 3.5}, {of_gelu_tanh}, least_of_gelu},
    {"mish", {3.7, 3.9}, {of_mish}, least_of_gelu},
    {"softplus", {1.2, 1.1}, {of_softplus}, NULL},
    {"log_sigmoid", {1.2, 1.1}, {of_log_sigmoid}, NULL},
    {"softsign", {3.4, 3.4}, {of_softsign}, NULL},
    {"elu", {2.5, 2.8}, {of_elu}, NULL},
    {"celu", {2.5, 2.9}, {of_elu}, NULL},
    {"selu", {2.9, 3.4}, {of_selu}, NULL},
    {"hard_sigmoid", {0.5, 0.5}, {of_hard_sigmoid}, least_of_flat},
    {"hard_swish", {2, 2}, {of_hard_swish}, least_of_flat},
    {"prelu", {0.5, 0.5}, {of_first_of_prelu, of_second_of_prelu}, NULL},
    {"swiglu", {3.7, 3.7}, {of_first_of_swiglu, of_second_of_swiglu}, least_of_gated},
    {"geglu", {3.6, 3.7}, {of_first_of_geglu, of_second_of_geglu}, least_of_gated},
};
#define N_ROWS (int)(sizeof rows / sizeof *rows)
_Static_assert(N_ROWS <= BACKWARD_MAX_ROWS, "accuracy_rows.h has room for all");

const char *backward_op(int k) { return k < N_ROWS ? rows[k].op : NULL; }

double backward_declared(int k, ref_dtype d) { return ref_compute(d) != d ? 0.501 : rows[k].ulp[d == REF_F64]; }

/* ---- Points ---------------------------------------------------------------------------------------------------- */

typedef struct subject {
  const row *row;
  ref_dtype d;
  quern_op *op, *backward;
  const quern_op_info *info, *of_op;
  int from[BACKWARD_MAX_IN]; /* which input of the op each of the backward op's is; -1: grad; -2: the op's result */
  mpfr_t v[BACKWARD_MAX_IN], z, t[3];
} subject;

static int subject_open(subject *s, int k, ref_dtype d) {
  *s = (subject){.row = &rows[k], .d = d};
  ref_dtype given[REF_MAX_INPUTS] = {d, d, d}, result = d, compute;
  if (quern_op_find(NULL, rows[k].op, &s->op) || !quern_op_describe(s->op)->backward ||
      quern_op_find(NULL, quern_op_describe(s->op)->backward, &s->backward) ||
      ref_resolve(ref_op_find(rows[k].op), given, &result, &compute) || result != d) {
    quern_op_release(s->op), quern_op_release(s->backward); /* NULL where it was not found */
    return 0;
  }
  s->of_op = quern_op_describe(s->op);
  s->info = quern_op_describe(s->backward);
  for (int i = 0; i < s->info->n_in; i++) {
    s->from[i] = i ? -2 : -1;
    for (int j = 0; i && j < s->of_op->n_in; j++) {
      if (strcmp(s->info->args[i].name, s->of_op->args[j].name) == 0) s->from[i] = j;
    }
  }
  for (int i = 0; i < BACKWARD_MAX_IN; i++) mpfr_init2(s->v[i], PRECISION);
  for (int i = 0; i < 3; i++) mpfr_init2(s->t[i], PRECISION);
  mpfr_init2(s->z, PRECISION);
  return 1;
}

static void subject_close(subject *s) {
  for (int i = 0; i < BACKWARD_MAX_IN; i++) mpfr_clear(s->v[i]);
  for (int i = 0; i < 3; i++) mpfr_clear(s->t[i]);
  mpfr_clear(s->z);
  mpfr_free_cache();
  quern_op_release(s->op);
  quern_op_release(s->backward);
}

/* Arrays of n elements. */
static void call(const subject *s, quern_op *op, int64_t n, int n_in, void *const *in, int n_out, void *const *out) {
  DLTensor t[BACKWARD_MAX_IN + BACKWARD_MAX_OUT], *ins[BACKWARD_MAX_IN], *outs[BACKWARD_MAX_OUT];
  for (int k = 0; k < n_in + n_out; k++) {
    void *data = k < n_in ? in[k] : out[k - n_in];
    t[k] = (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(s->d), .shape = &n};
    *(k < n_in ? &ins[k] : &outs[k - n_in]) = &t[k];
  }
  if (quern_op_call(op, n_in, ins, n_out, outs, NULL)) bail("%s", quern_last_error());
}

static const double extremes[] = {
    0.0, -0.0, INFINITY, -INFINITY, NAN, 1, -1, 0x1p-149, -0x1p-1074, 0x1p-126, 0x1p-1022, 0x1.fffffep-127, 0x1.fffffep127,
    -0x1.fffffffffffffp1023, 0x1p-24, 65504};
#define N_EXTREMES (sizeof extremes / sizeof *extremes)

/* Of any size that leaves most products normal; now and then an extreme one. */
static double draw_grad(rng *r) {
  switch (rng_below(r, 8)) {
    case 0: return extremes[rng_below(r, N_EXTREMES)];
    case 1: return 1;
    case 2: return ldexp(2 * rng_unit(r) - 1, (int)rng_range(r, -24, 24));
    case 3: return ldexp(2 * rng_unit(r) - 1, (int)rng_range(r, -149, 128));
    default: return 2 * rng_unit(r) - 1;
  }
}

/* The inputs of the op, and grad, at n points; of the bit patterns of f16 and bf16 one of each `step`. */
static void fill(const subject *s, int64_t n, int64_t step, const double *hard, int n_hard, void *grad, void *const *x) {
  const accuracy_function *function = accuracy_function_of(ref_op_find(s->row->op));
  const int size = ref_dtype_size(s->d), n_in = s->of_op->n_in, is_half = size == 2;
  const accuracy_format format = accuracy_format_of(s->d);
  rng r;
  rng_seed(&r, (uint64_t)s->d + 400);
  const double other = 2 * rng_unit(&r) - 1;
  for (int64_t i = 0; i < n; i++) {
    double v[REF_MAX_INPUTS] = {0}, g = draw_grad(&r);
    const int64_t at = i * step + i * 29 % step;
    if (n_in > 1) accuracy_draw(function, &r, &format, &v[0], &v[1]), v[2] = v[0] + v[1];
    else if (is_half) g = at < 65536 ? 1 : other * (1 + (double)(at & 255) / 256);
    else v[0] = i < n_hard ? hard[i] : accuracy_draw_one(function, (uint64_t)i, &r);
    ref_put(s->d, (char *)grad + i * size, accuracy_bits(s->d, g));
    for (int k = 0; k < n_in; k++) {
      const uint64_t random = rng_u64(&r) >> (64 - 8 * size);
      ref_put(s->d, (char *)x[k] + i * size, n_in == 1 && is_half ? (uint64_t)at & 0xffff
                                             : n_in == 1 && i >= n_hard && i % 4 == 0 ? random : accuracy_bits(s->d, v[k]));
    }
  }
}

/* ---- Errors ---------------------------------------------------------------------------------------------------- */

static int is_normal(ref_dtype d, mpfr_srcptr x) {
  const accuracy_format format = accuracy_format_of(d), *f = &format;
  return mpfr_regular_p(x) && mpfr_get_exp(x) > f->bottom + f->digits && mpfr_get_exp(x) < f->top;
}

/* Of two inputs: where one of them, grad or the factor is no normal number, another order of operations would be better, or worse
 * elsewhere. Of one: where neither grad nor the factor is; when grad is 0 and the factor beyond the range, 0 times infinity is
 * NaN. */
static int is_in_range(const subject *s, mpfr_srcptr factor) {
  if (s->of_op->n_in == 1) return is_normal(s->d, factor) || !mpfr_regular_p(factor) || is_normal(s->d, s->v[0]);
  for (int k = 0; k < s->info->n_in; k++) {
    if (!is_normal(s->d, s->v[k])) return 0;
  }
  return is_normal(s->d, factor);
}

/* Of output k at the inputs `in`; negative: there is nothing to compare. */
static double error_of(subject *s, int k, const uint64_t *in, uint64_t got, double *exact) {
  for (int i = 0; i < s->info->n_in; i++) mpfr_set_d(s->v[i], (double)ref_value(s->d, in[i]), R);
  s->row->of[k](s->z, s->v, s->t);
  if (!is_in_range(s, s->z)) return -1;
  double v[BACKWARD_MAX_IN];
  for (int i = 0; i < s->info->n_in; i++) v[i] = mpfr_get_d(s->v[i], R);
  const double grad = v[0], end = ldexp(1, accuracy_format_of(s->d).top - 1);
  const long double least = s->row->least ? s->row->least(k, v) : 0;
  mpfr_mul(s->z, s->z, s->v[0], R);
  *exact = mpfr_get_d(s->z, R);
  if (s->row->least && grad == 0 && mpfr_zero_p(s->z)) return ref_value(s->d, got) == 0 ? 0 : INFINITY;
  if (!(least > end)) return accuracy_error(s->d, got, s->z, least == least ? (double)least : 0);
  return accuracy_error(s->d, got, s->z, isinf(least) ? 0 : end) * (isinf(least) ? 1 : (double)(end / least));
}

int backward_measure(int k, ref_dtype d, int n_random, backward_accuracy *result) {
  subject s;
  *result = (backward_accuracy){.n = 0};
  if (!subject_open(&s, k, d)) return 0;
  const accuracy_function *function = accuracy_function_of(ref_op_find(s.row->op));
  double *hard = malloc(sizeof *hard * ACCURACY_MAX_HARD);
  const int size = ref_dtype_size(d), n_in = s.info->n_in, n_out = s.info->n_out, is_half = size == 2;
  const int n_hard = s.of_op->n_in > 1 || is_half ? 0 : accuracy_hard_points(function, hard);
  const int64_t step = n_random < 10000 ? 16 : 1;
  const int64_t n = s.of_op->n_in == 1 && is_half ? 2 * 65536 / step : n_hard + n_random;
  void *x[BACKWARD_MAX_IN], *in[BACKWARD_MAX_IN], *out[BACKWARD_MAX_OUT];
  void *grad = malloc((size_t)(n * size)), *y = malloc((size_t)(n * size));
  for (int i = 0; i < s.of_op->n_in; i++) x[i] = malloc((size_t)(n * size));
  for (int i = 0; i < n_out; i++) out[i] = malloc((size_t)(n * size));
  fill(&s, n, step, hard, n_hard, grad, x);
  call(&s, s.op, n, s.of_op->n_in, x, 1, &y);
  for (int i = 0; i < n_in; i++) in[i] = s.from[i] == -1 ? grad : s.from[i] == -2 ? y : x[s.from[i]];
  call(&s, s.backward, n, n_in, in, n_out, out);
  *result = (backward_accuracy){.name = s.info->name, .n_in = n_in, .n_out = n_out, .n = n};
  result->is_complete = s.of_op->n_in == 1 && is_half && step == 1;
  for (int j = 0; j < n_out; j++) {
    backward_found *found = &result->found[j];
    result->outputs[j] = s.info->args[n_in + j].name;
    found->worst = -1;
    for (int64_t i = 0; i < n; i++) {
      uint64_t bits[BACKWARD_MAX_IN], got = ref_get(d, (char *)out[j] + i * size);
      double exact;
      for (int m = 0; m < n_in; m++) bits[m] = ref_get(d, (char *)in[m] + i * size);
      const uint64_t x_bits = ref_get(d, (char *)x[0] + i * size), y_bits = ref_get(d, (char *)y + i * size);
      if (ref_is_nan(d, y_bits) && !ref_is_nan(d, x_bits)) continue; /* outside of the op's domain */
      const double ulp = error_of(&s, j, bits, got, &exact);
      result->n_bad += ulp > backward_declared(k, d);
      if (ulp <= found->worst) continue;
      *found = (backward_found){.worst = ulp, .got = (double)ref_value(d, got), .exact = exact};
      for (int m = 0; m < n_in; m++) found->at[m] = (double)ref_value(d, bits[m]);
    }
  }
  for (int i = 0; i < s.of_op->n_in; i++) free(x[i]);
  for (int i = 0; i < n_out; i++) free(out[i]);
  free(grad), free(y), free(hard);
  subject_close(&s);
  return 1;
}

double backward_at(int k, ref_dtype d, int output, const double *at) {
  subject s;
  uint64_t bits[BACKWARD_MAX_IN], got[BACKWARD_MAX_OUT];
  void *in[BACKWARD_MAX_IN], *out[BACKWARD_MAX_OUT];
  double exact, ulp;
  if (!subject_open(&s, k, d)) return -1;
  for (int i = 0; i < s.info->n_in; i++) bits[i] = accuracy_bits(d, at[i]), in[i] = &bits[i];
  for (int i = 0; i < s.info->n_out; i++) got[i] = 0, out[i] = &got[i];
  call(&s, s.backward, 1, s.info->n_in, in, s.info->n_out, out);
  ulp = error_of(&s, output, bits, got[output], &exact);
  subject_close(&s);
  return ulp;
}

char *backward_place(const backward_accuracy *a, int output, char *text, int size) {
  return accuracy_text(a->found[output].at, a->n_in, text, size);
}
