/* SPDX-License-Identifier: Apache-2.0
 *
 * accuracy_reductions.c: see accuracy_reductions.h. Bounds are texts of the expression language, and are evaluated as that: in f64,
 * interpreted. Exact results are written out here in MPFR, for one row of each op. */
#include "accuracy_reductions.h"

#include <math.h>
#include <mpfr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy_error.h"
#include "quern/quern.h"
#include "tap.h"

/* ---- Rows of numbers --------------------------------------------------------------------------------------------- */

enum { MOST_N = 1000003, MOST_ELEMENTS = 4097, N_SEEDS = 6 };

/* Numbers of elements; the first ones are a sample's. Ops of many functions, and those with results of elements, have none above
 * MOST_ELEMENTS. */
static const int lengths[] = {1, 2, 3, 7, 16, 17, 100, 255, 257, 1000, 15, 31, 33, 64, 256, 511, 513, 4097, 65536, 65537, 300007, MOST_N};
enum { N_LENGTHS = sizeof lengths / sizeof *lengths, N_SAMPLED = 10 };

enum { UNIFORM = 1, NORMAL = 2, SIGNS = 4, WIDE = 8, THIRD = 16, OFFSET = 32, NEAR_ONE = 64 };
static const struct {
  const char *name;
  int mark;
} kinds[] = {{"uniform", UNIFORM}, {"normal", NORMAL}, {"signs", SIGNS}, {"wide", WIDE}, {"third", THIRD}, {"offset", OFFSET}, {"near-one", NEAR_ONE}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

typedef struct sample {
  int n;
  double *in[3];
  int64_t target;
  double ord, correction, eps; /* eps: as the op has it, in the dtype that it computes in */
} sample;

static double *const inputs[3] = {(double[MOST_N]){0}, (double[MOST_N]){0}, (double[MOST_N]){0}};

static uint64_t next_random(uint64_t *state) {
  uint64_t z = *state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

static double uniform(uint64_t *state) { return (double)(next_random(state) >> 11) * 0x1p-53; }

static double drawn(int kind, ref_dtype d, uint64_t *state) {
  const double x = uniform(state);
  double normal = 0; /* nearly */
  for (int k = 0; k < 4 && (kind & (NORMAL | OFFSET)); k++) normal += 2 * uniform(state) - 1;
  switch (kind) {
    case UNIFORM: return x;
    case NORMAL: return 3 * normal;
    case SIGNS: return (next_random(state) >> 63 ? 1 : -1) * (1 + x);
    case WIDE: return ldexp(next_random(state) >> 63 ? 1 + x : -1 - x, (int)(next_random(state) % 17) * (d >= REF_F32 ? 3 : 1) - 8);
    case THIRD: return 1.0 / 3;
    case OFFSET: return 1000 + normal;
    default: return 1 + (x - 0.5) / 64;
  }
}

/* The bits of a number of the dtype beside x: of integers, of x in steps of a part of their range. */
static uint64_t bits_beside(ref_dtype d, double x) {
  if (ref_dtype_kind(d) == REF_KIND_FLOAT) return accuracy_bits(d, x);
  if (d == REF_BOOL) return x > 0.5;
  const int bits = 8 * ref_dtype_size(d) - (d <= REF_I64); /* below the sign */
  const double item = trunc(fmod(ldexp(x, bits - 2), ldexp(1, bits > 52 ? 62 : bits)));
  return d <= REF_I64 ? (uint64_t)(int64_t)item : (uint64_t)fabs(item);
}

/* Sets the first arrays of a sample, and their items as the dtype has them. */
static void draw(sample *s, ref_dtype d, int n, int n_arrays, int kind, int seed, unsigned char items[3][8 * MOST_N]) {
  static const double ords[] = {2, 1, 3, INFINITY, 0, 0.5, -INFINITY};
  const size_t size = (size_t)ref_dtype_size(d);
  uint64_t state = (uint64_t)n * 1000 + (uint64_t)(kind * 10 + seed);
  *s = (sample){.n = n, .in = {inputs[0], inputs[1], inputs[2]}, .ord = ords[seed % 7], .correction = seed % 2};
  s->target = (int64_t)(next_random(&state) % (uint64_t)n);
  for (int which = 0; which < n_arrays; which++)
    for (int k = 0; k < n; k++) {
      const double x = which == 1 && kind != NEAR_ONE ? 0.01 + uniform(&state) : drawn(kind, d, &state);
      const uint64_t bits = bits_beside(d, x);
      ref_put(d, items[which] + (size_t)k * size, bits);
      inputs[which][k] = d == REF_F64 ? x : (double)ref_value(d, ref_get(d, items[which] + (size_t)k * size));
    }
}

/* ---- Exact results ----------------------------------------------------------------------------------------------- */

enum { PRECISION = 300 };
static mpfr_t term, total, mean_of, scale, most, rest; /* made by prepare */
static mpfr_t *exact;                                  /* the results */

typedef void term_of(const sample *s, int k); /* sets `term` */

static void add_up(mpfr_t to, const sample *s, term_of *of) {
  mpfr_set_zero(to, 1);
  for (int k = 0; k < s->n; k++) {
    of(s, k);
    mpfr_add(to, to, term, MPFR_RNDN);
  }
}

static void of_x(const sample *s, int k) { mpfr_set_d(term, s->in[0][k], MPFR_RNDN); }
static void of_size(const sample *s, int k) { mpfr_set_d(term, fabs(s->in[0][k]), MPFR_RNDN); }
static void of_square(const sample *s, int k) { of_x(s, k), mpfr_sqr(term, term, MPFR_RNDN); }
static void of_product(const sample *s, int k) { of_x(s, k), mpfr_mul_d(term, term, s->in[1][k], MPFR_RNDN); }
static void of_y(const sample *s, int k) { mpfr_set_d(term, s->in[1][k], MPFR_RNDN); }
static void of_y_square(const sample *s, int k) { of_y(s, k), mpfr_sqr(term, term, MPFR_RNDN); }
static void of_deviation(const sample *s, int k) { of_x(s, k), mpfr_sub(term, term, mean_of, MPFR_RNDN); }
static void of_deviation_square(const sample *s, int k) { of_deviation(s, k), mpfr_sqr(term, term, MPFR_RNDN); }
static void of_shifted(const sample *s, int k) { of_x(s, k), mpfr_sub(term, term, most, MPFR_RNDN); }
static void of_exp(const sample *s, int k) { of_shifted(s, k), mpfr_exp(term, term, MPFR_RNDN); }

static void exact_sum(const sample *s) { add_up(exact[0], s, of_x); }
static void exact_l1(const sample *s) { add_up(exact[0], s, of_size); }
static void exact_square(const sample *s) { add_up(exact[0], s, of_square); }
static void exact_dot(const sample *s) { add_up(exact[0], s, of_product); }

static void exact_prod(const sample *s) {
  mpfr_set_ui(exact[0], 1, MPFR_RNDN);
  for (int k = 0; k < s->n; k++) mpfr_mul_d(exact[0], exact[0], s->in[0][k], MPFR_RNDN);
}

static void exact_mean(const sample *s) { exact_sum(s), mpfr_div_si(exact[0], exact[0], s->n, MPFR_RNDN); }

/* exact[0] and mean_of. */
static void exact_var(const sample *s) {
  exact_mean(s);
  mpfr_set(mean_of, exact[0], MPFR_RNDN);
  add_up(exact[0], s, of_deviation_square);
  mpfr_div_d(exact[0], exact[0], s->n - s->correction, MPFR_RNDN);
}

static void exact_std(const sample *s) { exact_var(s), mpfr_sqrt(exact[0], exact[0], MPFR_RNDN); }
static void exact_var_mean(const sample *s) { exact_var(s), mpfr_set(exact[1], mean_of, MPFR_RNDN); }
static void exact_std_mean(const sample *s) { exact_std(s), mpfr_set(exact[1], mean_of, MPFR_RNDN); }

static void exact_average(const sample *s) {
  add_up(total, s, of_y);
  exact_dot(s);
  mpfr_div(exact[0], exact[0], total, MPFR_RNDN);
}

static void exact_l2(const sample *s) { exact_square(s), mpfr_sqrt(exact[0], exact[0], MPFR_RNDN); }
static void exact_log_sum(const sample *s) { exact_sum(s), mpfr_log(exact[0], exact[0], MPFR_RNDN); }

static void of_power(const sample *s, int k) {
  of_size(s, k);
  mpfr_set_d(rest, s->ord, MPFR_RNDN);
  mpfr_pow(term, term, rest, MPFR_RNDN);
}

static void exact_norm(const sample *s) {
  double bound = fabs(s->in[0][0]), n_set = 0;
  for (int k = 0; k < s->n; k++) {
    const double size = fabs(s->in[0][k]);
    bound = s->ord > 0 ? fmax(bound, size) : fmin(bound, size);
    n_set += size != 0;
  }
  if (isinf(s->ord) || s->ord == 0) {
    mpfr_set_d(exact[0], s->ord == 0 ? n_set : bound, MPFR_RNDN);
  } else {
    add_up(total, s, s->ord == 2 ? of_square : of_power);
    mpfr_set_d(rest, s->ord, MPFR_RNDN);
    mpfr_ui_div(rest, 1, rest, MPFR_RNDN);
    mpfr_pow(exact[0], total, rest, MPFR_RNDN);
  }
}

static void exact_normalize(const sample *s) {
  exact_l2(s);
  mpfr_set(scale, exact[0], MPFR_RNDN);
  if (mpfr_cmp_d(scale, s->eps) < 0) mpfr_set_d(scale, s->eps, MPFR_RNDN);
  for (int k = 0; k < s->n; k++) mpfr_d_div(exact[k], s->in[0][k], scale, MPFR_RNDN);
}

static void exact_cosine(const sample *s) {
  add_up(scale, s, of_square);
  add_up(total, s, of_y_square);
  mpfr_sqrt(scale, scale, MPFR_RNDN);
  mpfr_sqrt(total, total, MPFR_RNDN);
  if (mpfr_cmp_d(scale, s->eps) < 0) mpfr_set_d(scale, s->eps, MPFR_RNDN);
  if (mpfr_cmp_d(total, s->eps) < 0) mpfr_set_d(total, s->eps, MPFR_RNDN);
  exact_dot(s);
  mpfr_mul(scale, scale, total, MPFR_RNDN);
  mpfr_div(exact[0], exact[0], scale, MPFR_RNDN);
}

/* `most`, and `total`: the sum of the exponentials. */
static void exact_exponentials(const sample *s) {
  double largest = s->in[0][0];
  for (int k = 1; k < s->n; k++) largest = fmax(largest, s->in[0][k]);
  mpfr_set_d(most, largest, MPFR_RNDN);
  add_up(total, s, of_exp);
}

static void exact_softmax(const sample *s) {
  exact_exponentials(s);
  for (int k = 0; k < s->n; k++) of_exp(s, k), mpfr_div(exact[k], term, total, MPFR_RNDN);
}

static void exact_softmin(const sample *s) {
  sample turned = *s;
  for (int k = 0; k < s->n; k++) s->in[0][k] = -s->in[0][k];
  exact_softmax(&turned);
  for (int k = 0; k < s->n; k++) s->in[0][k] = -s->in[0][k];
}

static void exact_log_softmax(const sample *s) {
  exact_exponentials(s);
  mpfr_log(total, total, MPFR_RNDN);
  for (int k = 0; k < s->n; k++) of_shifted(s, k), mpfr_sub(exact[k], term, total, MPFR_RNDN);
}

static void exact_logsumexp(const sample *s) {
  exact_exponentials(s);
  mpfr_log(total, total, MPFR_RNDN);
  mpfr_add(exact[0], total, most, MPFR_RNDN);
}

static void exact_cross_entropy(const sample *s) {
  exact_logsumexp(s);
  mpfr_sub_d(exact[0], exact[0], s->in[0][s->target], MPFR_RNDN);
}

/* `scale`: 1 / sqrt(exact[0] + eps) */
static void make_scale(const sample *s) {
  mpfr_add_d(scale, exact[0], s->eps, MPFR_RNDN);
  mpfr_rec_sqrt(scale, scale, MPFR_RNDN);
}

static void exact_rms_norm(const sample *s) {
  exact_square(s);
  mpfr_div_si(exact[0], exact[0], s->n, MPFR_RNDN);
  make_scale(s);
  for (int k = 0; k < s->n; k++) mpfr_mul_d(exact[k], scale, s->in[0][k], MPFR_RNDN);
}

static void exact_layer_norm(const sample *s) {
  sample plain = *s;
  plain.correction = 0;
  exact_var(&plain);
  make_scale(s);
  for (int k = 0; k < s->n; k++) of_deviation(s, k), mpfr_mul(exact[k], term, scale, MPFR_RNDN);
}

static void exact_rms_norm_affine(const sample *s) {
  exact_rms_norm(s);
  for (int k = 0; k < s->n; k++) mpfr_mul_d(exact[k], exact[k], s->in[1][k], MPFR_RNDN);
}

static void exact_layer_norm_affine(const sample *s) {
  exact_layer_norm(s);
  for (int k = 0; k < s->n; k++) {
    mpfr_mul_d(exact[k], exact[k], s->in[1][k], MPFR_RNDN);
    mpfr_add_d(exact[k], exact[k], s->in[2][k], MPFR_RNDN);
  }
}

/* ---- Scans ---- */

static void exact_cumulative_sum(const sample *s) {
  mpfr_set_zero(total, 1);
  for (int k = 0; k < s->n; k++) of_x(s, k), mpfr_add(total, total, term, MPFR_RNDN), mpfr_set(exact[k], total, MPFR_RNDN);
}

static void exact_cumulative_prod(const sample *s) {
  mpfr_set_ui(total, 1, MPFR_RNDN);
  for (int k = 0; k < s->n; k++) mpfr_mul_d(total, total, s->in[0][k], MPFR_RNDN), mpfr_set(exact[k], total, MPFR_RNDN);
}

static void exact_logcumsumexp(const sample *s) {
  exact_exponentials(s); /* for `most` */
  mpfr_set_zero(total, 1);
  for (int k = 0; k < s->n; k++) {
    of_exp(s, k);
    mpfr_add(total, total, term, MPFR_RNDN);
    mpfr_log(exact[k], total, MPFR_RNDN);
    mpfr_add(exact[k], exact[k], most, MPFR_RNDN);
  }
}

/* ---- The ops ----------------------------------------------------------------------------------------------------- */

enum { SUMS = UNIFORM | NORMAL | SIGNS | WIDE | THIRD, MOMENTS = UNIFORM | NORMAL | SIGNS | THIRD | OFFSET,
       EXPONENTS = UNIFORM | NORMAL | SIGNS | THIRD | OFFSET, POSITIVE = UNIFORM | THIRD | OFFSET | NEAR_ONE };

static const struct subject {
  const char *name;
  void (*exact)(const sample *s);
  int n_out, is_element, is_short, data; /* is_short: of at most MOST_ELEMENTS */
} subjects[] = {
    {"sum", exact_sum, 1, 0, 0, SUMS},
    {"nansum", exact_sum, 1, 0, 0, SUMS},
    {"prod", exact_prod, 1, 0, 1, NEAR_ONE},
    {"nanprod", exact_prod, 1, 0, 1, NEAR_ONE},
    {"mean", exact_mean, 1, 0, 0, SUMS},
    {"nanmean", exact_mean, 1, 0, 0, SUMS},
    {"var", exact_var, 1, 0, 0, MOMENTS},
    {"nanvar", exact_var, 1, 0, 0, MOMENTS},
    {"std", exact_std, 1, 0, 0, MOMENTS},
    {"nanstd", exact_std, 1, 0, 0, MOMENTS},
    {"var_mean", exact_var_mean, 2, 0, 0, MOMENTS},
    {"std_mean", exact_std_mean, 2, 0, 0, MOMENTS},
    {"average", exact_average, 1, 0, 0, SUMS},
    {"vecdot", exact_dot, 1, 0, 0, SUMS},
    {"reduce_l1", exact_l1, 1, 0, 0, SUMS},
    {"reduce_l2", exact_l2, 1, 0, 0, SUMS},
    {"reduce_sum_square", exact_square, 1, 0, 0, SUMS},
    {"reduce_log_sum", exact_log_sum, 1, 0, 0, POSITIVE},
    {"logsumexp", exact_logsumexp, 1, 0, 1, EXPONENTS},
    {"vector_norm", exact_norm, 1, 0, 1, SUMS},
    {"softmax", exact_softmax, 1, 1, 1, EXPONENTS},
    {"softmin", exact_softmin, 1, 1, 1, EXPONENTS},
    {"log_softmax", exact_log_softmax, 1, 1, 1, EXPONENTS},
    {"cross_entropy", exact_cross_entropy, 1, 0, 1, EXPONENTS},
    {"normalize", exact_normalize, 1, 1, 1, SUMS},
    {"cosine_similarity", exact_cosine, 1, 0, 1, SUMS},
    {"rms_norm", exact_rms_norm, 1, 1, 1, SUMS},
    {"rms_norm_affine", exact_rms_norm_affine, 1, 1, 1, SUMS},
    {"layer_norm", exact_layer_norm, 1, 1, 1, MOMENTS},
    {"layer_norm_affine", exact_layer_norm_affine, 1, 1, 1, MOMENTS},
    {"cumulative_sum", exact_cumulative_sum, 1, 1, 1, SUMS},
    {"cumulative_prod", exact_cumulative_prod, 1, 1, 1, NEAR_ONE},
    {"logcumsumexp", exact_logcumsumexp, 1, 1, 1, EXPONENTS},
};

static const struct subject *subject_of(const char *name) {
  for (size_t k = 0; k < sizeof subjects / sizeof *subjects; k++)
    if (strcmp(subjects[k].name, name) == 0) return &subjects[k];
  return NULL;
}

static ref_dtype dtype_named(const char *name) {
  int d = 0;
  while (d < REF_N_DTYPES && strcmp(ref_dtype_name((ref_dtype)d), name) != 0) d++;
  return (ref_dtype)d;
}

static void prepare(void) {
  if (exact) return;
  mpfr_inits2(PRECISION, term, total, mean_of, scale, most, rest, (mpfr_ptr)0);
  exact = malloc(sizeof *exact * MOST_ELEMENTS);
  if (!exact) bail("no memory");
  for (int k = 0; k < MOST_ELEMENTS; k++) mpfr_init2(exact[k], PRECISION);
}

int reduction_is_known(const reduction_row *row) { return subject_of(row->name) && dtype_named(row->dtype) < REF_N_DTYPES; }

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

enum { MOST_PARAMS = 16 };

/* An operand of one dimension, or of none. */
typedef struct row_tensor {
  DLTensor t;
  int64_t shape[1];
} row_tensor;

static void describe(row_tensor *r, void *data, ref_dtype d, int ndim, int64_t n) {
  *r = (row_tensor){.shape = {n}};
  r->t = (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = ndim, .dtype = ref_dtype_dl(d), .shape = r->shape};
}

static double value_of(const sample *s, const char *param, double otherwise) {
  return strcmp(param, "ord") == 0 ? s->ord : strcmp(param, "correction") == 0 ? s->correction : strcmp(param, "eps") == 0 ? s->eps : otherwise;
}

/* The number of an input's array by its name, -1: the class. */
static int array_of(const char *name) {
  return strcmp(name, "t") == 0 ? -1 : strcmp(name, "bias") == 0 ? 2 : strcmp(name, "x") == 0 ? 0 : 1;
}

/* Calls an op of a sample; inputs are `in`, of dtype d. params: those of the call, by name. */
static void call(quern_op *op, const sample *s, const void *const *in, ref_dtype d, void *const *out, ref_dtype of_out, int is_element,
                 const quern_scalar *params) {
  const quern_op_info *info = quern_op_describe(op);
  row_tensor ins[4], outs[2];
  DLTensor *of_ins[4], *of_outs[2];
  for (int k = 0; k < info->n_in; k++) {
    const int which = array_of(info->args[k].name);
    if (which < 0) describe(&ins[k], (void *)(uintptr_t)&s->target, REF_I64, 1, 1);
    else describe(&ins[k], (void *)(uintptr_t)in[which], d, 1, s->n);
    of_ins[k] = &ins[k].t;
  }
  for (int k = 0; k < info->n_out; k++) {
    describe(&outs[k], out[k], of_out, is_element, s->n);
    of_outs[k] = &outs[k].t;
  }
  const quern_call given = {.size = sizeof given, .params = params, .n_params = info->n_params};
  if (quern_op_call(op, info->n_in, of_ins, info->n_out, of_outs, &given) != QUERN_OK) bail("%s: %s", info->name, quern_last_error());
}

/* The op of a row's bound: its text with its names as parameters. */
static quern_op *bound_op(const reduction_row *row) {
  static const char *const names[] = {"u", "depth", "count", "correction", "ord", "eps"};
  char text[2000];
  int at = 0;
  quern_op *op;
  for (size_t k = 0; k < sizeof names / sizeof *names; k++) at += sprintf(text + at, "param %s; ", names[k]);
  snprintf(text + at, sizeof text - (size_t)at, "%s", row->bound);
  if (quern_op_compile(NULL, text, &op) != QUERN_OK) bail("%s: %s", row->name, quern_last_error());
  return op;
}

/* The largest number of additions that an element takes part in: docs/reductions.md. */
static double depth_of(int n) {
  int depth = 19;
  for (int chunks = (n + 255) / 256; chunks > 1; chunks = (chunks + 1) / 2) depth++;
  return depth;
}

static int at_most(int x, int most) { return x < most ? x : most; }

/* The same of a scan: within a segment of 16, of segments, of chunks of 256, of spans of 65536. */
static double scan_depth(int n) { return at_most(n - 1, 15) + at_most((n - 1) / 16, 15) + at_most((n - 1) / 256, 255) + (n - 1) / 65536; }

static int is_scan(const quern_op_info *info) {
  for (int k = 0; k < info->n_params; k++)
    if (quern_param_role(info, k) == QUERN_ROLE_AXIS) return 1;
  return 0;
}

/* What is measured with: the op, and that of its bound. */
typedef struct measuring {
  const reduction_row *row;
  const struct subject *subject;
  ref_dtype d, of_out;
  quern_op *op, *bound;
} measuring;

static void measuring_begin(measuring *m, const reduction_row *row) {
  *m = (measuring){.row = row, .subject = subject_of(row->name), .d = dtype_named(row->dtype)};
  m->of_out = ref_dtype_kind(m->d) == REF_KIND_FLOAT ? m->d : ref_floating(m->d);
  if (quern_op_find(NULL, row->name, &m->op) != QUERN_OK) bail("%s: %s", row->name, quern_last_error());
  if (row->ulp == 0) m->bound = bound_op(row);
  prepare();
}

static void measuring_end(measuring *m) { quern_op_release(m->op), quern_op_release(m->bound); }

/* The error of one result: in ULPs, or as a part of the bound and of the last rounding, if the result is narrower than what is
 * computed in. Negative: it has none, for it overflows. */
static double error_of(const measuring *m, uint64_t bits, mpfr_t right, double bound) {
  if (m->row->ulp != 0) return accuracy_error(m->of_out, bits, right, 0);
  const double got = (double)ref_value(m->of_out, bits), size = fabs(mpfr_get_d(right, MPFR_RNDN)) + bound;
  if (size >= ldexp(1, ref_largest_exponent(m->of_out))) return -1;
  if (ldexp(1, -ref_digits(m->of_out)) > m->row->u) bound += (double)ref_ulp(m->of_out, (ref_real)size) / 2;
  mpfr_sub_d(right, right, got, MPFR_RNDN);
  const double error = fabs(mpfr_get_d(right, MPFR_RNDA));
  return got != got ? INFINITY : error == 0 ? 0 : error / bound;
}

/* The largest error of the results for one sample; *n_points: how many results. */
static double measure_one(const measuring *m, int n, int kind, int seed, long long *n_points) {
  static unsigned char items[3][8 * MOST_N], results[2][8 * MOST_ELEMENTS];
  static double bounds[2][MOST_ELEMENTS];
  const int is_element = m->subject->is_element, n_results = is_element ? n : 1;
  const quern_op_info *info = quern_op_describe(m->op);
  quern_scalar params[MOST_PARAMS], of_bound[] = {{QUERN_F64, {.f = {m->row->u}}}, {QUERN_F64, {.f = {is_scan(info) ? scan_depth(n) : depth_of(n)}}}, {QUERN_F64, {.f = {n}}},
                                                  {QUERN_F64, {.f = {0}}}, {QUERN_F64, {.f = {0}}}, {QUERN_F64, {.f = {0}}}};
  double worst = -1;
  int n_arrays = 0;
  sample s;
  for (int k = 0; k < info->n_in; k++) n_arrays = array_of(info->args[k].name) >= n_arrays ? array_of(info->args[k].name) + 1 : n_arrays;
  draw(&s, m->d, n, n_arrays, kind, seed, items);
  if (n - s.correction <= 0) s.correction = 0;
  for (int k = 0; k < info->n_params; k++) {
    params[k] = info->params[k].value;
    if (strcmp(info->params[k].name, "eps") == 0) s.eps = m->of_out == REF_F64 ? params[k].v.f[0] : (double)(float)params[k].v.f[0];
  }
  for (int k = 0; k < info->n_params; k++)
    if (params[k].kind == QUERN_F64 || strcmp(info->params[k].name, "correction") == 0 || strcmp(info->params[k].name, "ord") == 0)
      params[k] = (quern_scalar){QUERN_F64, {.f = {value_of(&s, info->params[k].name, params[k].v.f[0])}}};
  of_bound[3].v.f[0] = s.correction, of_bound[4].v.f[0] = s.ord, of_bound[5].v.f[0] = s.eps;
  call(m->op, &s, (const void *[]){items[0], items[1], items[2]}, m->d, (void *[]){results[0], results[1]}, m->of_out, is_element, params);
  if (m->bound) {
    const int varies = quern_op_describe(m->bound)->n_in > 0 && is_element;
    call(m->bound, &s, (const void *[]){s.in[0], s.in[1], s.in[2]}, REF_F64, (void *[]){bounds[0], bounds[1]}, REF_F64, varies, of_bound);
  }
  m->subject->exact(&s);
  for (int output = 0; output < m->subject->n_out; output++)
    for (int k = 0; k < n_results; k++) {
      const uint64_t bits = ref_get(m->of_out, results[output] + (size_t)k * (size_t)ref_dtype_size(m->of_out));
      const double error = error_of(m, bits, exact[is_element ? k : output], bounds[output][k]);
      *n_points += error >= 0;
      if (error > worst) worst = error;
    }
  return worst;
}

double reduction_measure(reduction_row *row, int is_sample) {
  measuring m;
  double worst = -1;
  long long n_points = 0;
  measuring_begin(&m, row);
  for (int length = 0; length < (is_sample ? N_SAMPLED : N_LENGTHS); length++) {
    const int n = lengths[length];
    if (n > MOST_ELEMENTS && m.subject->is_short) continue;
    for (int kind = 0; kind < N_KINDS; kind++) {
      if (!(m.subject->data & kinds[kind].mark)) continue;
      for (int seed = 0; seed < (is_sample || n > 100000 ? 1 : N_SEEDS); seed++) {
        const double error = measure_one(&m, n, kinds[kind].mark, seed, &n_points);
        if (!(error > worst)) continue;
        worst = error;
        snprintf(row->at, sizeof row->at, "%d %s %d", n, kinds[kind].name, seed);
      }
    }
  }
  measuring_end(&m);
  snprintf(row->found, sizeof row->found, "%.4f", worst);
  snprintf(row->points, sizeof row->points, "%lld", n_points);
  return worst;
}

double reduction_error_at(const reduction_row *row, const char *at) {
  char name[32];
  int n, seed, kind = 0;
  long long n_points = 0;
  measuring m;
  if (sscanf(at, "%d %31s %d", &n, name, &seed) != 3 || n < 1 || n > MOST_N) return -1;
  while (kind < N_KINDS && strcmp(kinds[kind].name, name) != 0) kind++;
  if (kind == N_KINDS || !reduction_is_known(row)) return -1;
  measuring_begin(&m, row);
  const double error = measure_one(&m, n, kinds[kind].mark, seed, &n_points);
  measuring_end(&m);
  return error;
}

/* ---- What is declared, and the file -------------------------------------------------------------------------------- */

int reductions_declared(const char *root, reduction_rows *rows) {
  char command[4096], line[2000], kind[8];
  snprintf(command, sizeof command, "cd '%s' && lua5.4 tools/measure/bounds.lua", root);
  FILE *f = popen(command, "r");
  rows->n = 0;
  while (f && fgets(line, sizeof line, f)) {
    reduction_row r = {.ulp = 0};
    int at = 0;
    if (sscanf(line, "%63s %15s %7s %n", r.name, r.dtype, kind, &at) != 3 || rows->n == REDUCTION_MAX_ROWS) break;
    if (strcmp(kind, "ulp") == 0) {
      const ref_dtype d = dtype_named(r.dtype);
      r.ulp = d == REF_F16 || d == REF_BF16 ? 0.501 : strtod(line + at, NULL);
    } else {
      char *text;
      r.u = strtod(line + at, &text);
      text += strspn(text, "\t ");
      snprintf(r.bound, sizeof r.bound, "%.*s", (int)strcspn(text, "\n"), text);
    }
    if (ref_dtype_kind(dtype_named(r.dtype)) == REF_KIND_FLOAT || r.bound[0]) rows->rows[rows->n++] = r;
  }
  return f && pclose(f) == 0 && rows->n > 0;
}

int reductions_read(const char *file, reduction_rows *rows) {
  char line[2000], found[24], declared[1000];
  int n = 0;
  FILE *f = fopen(file, "r");
  while (f && fgets(line, sizeof line, f)) {
    reduction_row r = {.ulp = 0};
    if (sscanf(line, "| %63s | %15s | %999[^|]| %23s | %63[^|]| %31s |", r.name, r.dtype, declared, found, r.at, r.points) != 6) continue;
    for (int k = 0; k < rows->n; k++) {
      reduction_row *row = &rows->rows[k];
      char now[1010];
      if (row->ulp != 0) snprintf(now, sizeof now, "%g ", row->ulp);
      else snprintf(now, sizeof now, "`%s` ", row->bound);
      if (strcmp(row->name, r.name) != 0 || strcmp(row->dtype, r.dtype) != 0 || strcmp(now, declared) != 0) continue;
      r.at[strlen(r.at) - 1] = 0;
      memcpy(row->found, found, sizeof found), memcpy(row->at, r.at, sizeof r.at), memcpy(row->points, r.points, sizeof r.points);
      n++;
    }
  }
  if (f) fclose(f);
  return n;
}
