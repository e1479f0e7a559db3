/* SPDX-License-Identifier: Apache-2.0
 *
 * t306-backward: derivatives. Each backward op against its formula in 113 bits, within the bound that its spec declares; every
 * backward op there is against differences of its op in f64; what they give at kinks and where the naive forms fail; and
 * grad(expression, x) against differences, the same bits interpreted and compiled. */
#include "tensors.h"

#include <math.h>

#ifdef __aarch64__
#define REAL(name) name##l
#else
#define REAL(name) name##f128
extern ref_real expf128(ref_real), logf128(ref_real), coshf128(ref_real), sinhf128(ref_real), cosf128(ref_real), sinf128(ref_real),
    sqrtf128(ref_real), fabsf128(ref_real), erfcf128(ref_real), hypotf128(ref_real, ref_real), powf128(ref_real, ref_real),
    atanf128(ref_real);
#endif

#define MAX_IN 5
#define MAX_OUT 3

static quern_op *op_of(const char *name) {
  quern_op *op = NULL;
  return quern_op_find(NULL, name, &op) ? NULL : op;
}

/* Arrays of n elements of one dtype, inputs then outputs. */
static quern_status call_on(quern_op *op, ref_dtype d, int64_t n, int n_in, void *const *in, int n_out, void *const *out) {
  DLTensor t[MAX_IN + MAX_OUT], *ins[MAX_IN], *outs[MAX_OUT];
  for (int k = 0; k < n_in + n_out; k++) {
    t[k] = (DLTensor){.data = k < n_in ? in[k] : out[k - n_in], .device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(d), .shape = &n};
    *(k < n_in ? &ins[k] : &outs[k - n_in]) = &t[k];
  }
  return quern_op_call(op, n_in, ins, n_out, outs, NULL);
}

/* ---- Formulas ---- */

#define PI_113 (4 * REAL(atan)((ref_real)1))
#define LN2_113 REAL(log)((ref_real)2)
#define ONE ((ref_real)1)

static ref_real exp_of(ref_real x) { return REAL(exp)(x); }
static ref_real squared(ref_real x) { return x * x; }

/* A backward op's inputs are v[0], grad, and then v[1], v[2] ... */
#define FORMULA(name, value) \
  static ref_real of_##name(const ref_real *v) { return v[0] * (value); }
FORMULA(sqrt, ONE / (2 * v[1]))
FORMULA(exp, v[1])
FORMULA(exp2, v[1] * LN2_113)
FORMULA(expm1, exp_of(v[1]))
FORMULA(log, ONE / v[1])
FORMULA(log2, ONE / (v[1] * LN2_113))
FORMULA(log10, ONE / (v[1] * REAL(log)((ref_real)10)))
FORMULA(log1p, ONE / (1 + v[1]))
FORMULA(tanh, ONE / squared(REAL(cosh)(v[1])))
FORMULA(sigmoid, ONE / squared(2 * REAL(cosh)(v[1] / 2)))
FORMULA(erf, 2 / REAL(sqrt)(PI_113) * exp_of(-v[1] * v[1]))
FORMULA(erfc, -2 / REAL(sqrt)(PI_113) * exp_of(-v[1] * v[1]))
FORMULA(gelu, REAL(erfc)(-v[1] / REAL(sqrt)((ref_real)2)) / 2 + v[1] * exp_of(-v[1] * v[1] / 2) / REAL(sqrt)(2 * PI_113))
FORMULA(cbrt, ONE / (3 * v[1] * v[1]))
FORMULA(sinh, REAL(cosh)(v[1]))
FORMULA(cosh, REAL(sinh)(v[1]))
FORMULA(asinh, ONE / REAL(hypot)(v[1], 1))
FORMULA(acosh, ONE / REAL(sqrt)((v[1] - 1) * (v[1] + 1)))
FORMULA(atanh, ONE / ((1 - v[1]) * (1 + v[1])))
FORMULA(sin, REAL(cos)(v[1]))
FORMULA(cos, -REAL(sin)(v[1]))
FORMULA(tan, 1 + v[1] * v[1])
FORMULA(asin, ONE / REAL(sqrt)((1 - v[1]) * (1 + v[1])))
FORMULA(acos, -ONE / REAL(sqrt)((1 - v[1]) * (1 + v[1])))
FORMULA(atan, ONE / (1 + v[1] * v[1]))
FORMULA(degrees, 180 / PI_113)
FORMULA(radians, PI_113 / 180)
FORMULA(first_of_pow, v[2] * v[3] / v[1])
FORMULA(second_of_pow, v[3] * REAL(log)(v[1]))
FORMULA(first_of_hypot, v[1] / v[3])
FORMULA(second_of_hypot, v[2] / v[3])
FORMULA(first_of_atan2, v[2] / (v[1] * v[1] + v[2] * v[2]))
FORMULA(second_of_atan2, -v[1] / (v[1] * v[1] + v[2] * v[2]))
FORMULA(first_of_logaddexp, 1 / (1 + exp_of(v[2] - v[1])))
FORMULA(second_of_logaddexp, 1 / (1 + exp_of(v[1] - v[2])))
FORMULA(first_of_logaddexp2, 1 / (1 + exp_of((v[2] - v[1]) * LN2_113)))
FORMULA(second_of_logaddexp2, 1 / (1 + exp_of((v[1] - v[2]) * LN2_113)))

/* ulp: what the spec declares of f32 and f64. low, high: of the inputs but grad. least: the result's ULP is at least that of this
 * part of grad, near a zero. */
typedef struct formula {
  const char *op;
  double ulp[2], low, high;
  ref_real (*of[2])(const ref_real *);
  double least;
} formula;

static const formula formulas[] = {
    {"sqrt", {0.8, 0.8}, 0, 1e38, {of_sqrt}, 0},
    {"exp", {0.5, 0.5}, 0, 1e38, {of_exp}, 0},
    {"exp2", {1.7, 2}, 0, 1e38, {of_exp2}, 0},
    {"expm1", {2.8, 2.7}, -100, 88, {of_expm1}, 0},
    {"log", {0.5, 0.5}, 0, 1e38, {of_log}, 0},
    {"log2", {1.8, 1.7}, 0, 1e38, {of_log2}, 0},
    {"log10", {2.1, 1.9}, 0, 1e38, {of_log10}, 0},
    {"log1p", {1.8, 1.8}, -1, 1e30, {of_log1p}, 0},
    {"tanh", {4.1, 4.3}, -50, 50, {of_tanh}, 0},
    {"sigmoid", {4.6, 4}, -90, 90, {of_sigmoid}, 0},
    {"erf", {4.3, 3.5}, -10, 10, {of_erf}, 0},
    {"erfc", {4.3, 3.5}, -10, 10, {of_erfc}, 0},
    {"gelu", {3.2, 3.2}, -12, 12, {of_gelu}, 0.25},
    {"cbrt", {2.4, 2.5}, -1e12, 1e12, {of_cbrt}, 0},
    {"sinh", {2.8, 2.7}, -100, 100, {of_sinh}, 0},
    {"cosh", {2.8, 2.7}, -100, 100, {of_cosh}, 0},
    {"asinh", {1.8, 1.8}, -1e30, 1e30, {of_asinh}, 0},
    {"acosh", {3, 2.9}, 1, 1e30, {of_acosh}, 0},
    {"atanh", {2.6, 2.6}, -1, 1, {of_atanh}, 0},
    {"sin", {1.8, 1.8}, -100, 100, {of_sin}, 0},
    {"cos", {1.8, 1.7}, -100, 100, {of_cos}, 0},
    {"tan", {1.7, 1.8}, -1e18, 1e18, {of_tan}, 0},
    {"asin", {2.1, 2.3}, -1, 1, {of_asin}, 0},
    {"acos", {2.1, 2.3}, -1, 1, {of_acos}, 0},
    {"atan", {1.8, 1.7}, -1e18, 1e18, {of_atan}, 0},
    {"degrees", {1, 1}, 0, 1, {of_degrees}, 0},
    {"radians", {1, 1}, 0, 1, {of_radians}, 0},
    {"pow", {2.5, 2.4}, 0, 30, {of_first_of_pow, of_second_of_pow}, 0},
    {"hypot", {1.8, 1.8}, -1e15, 1e15, {of_first_of_hypot, of_second_of_hypot}, 0},
    {"atan2", {3.7, 3.6}, -1e15, 1e15, {of_first_of_atan2, of_second_of_atan2}, 0},
    {"logaddexp", {4, 3.7}, -80, 80, {of_first_of_logaddexp, of_second_of_logaddexp}, 0},
    {"logaddexp2", {3.6, 3.7}, -120, 120, {of_first_of_logaddexp2, of_second_of_logaddexp2}, 0},
};
#define N_FORMULAS (int)(sizeof formulas / sizeof *formulas)

/* Within [low, high], small as often as large. */
static double draw(rng *r, double low, double high) {
  const double reach = fabs(low) > fabs(high) ? fabs(low) : fabs(high);
  for (;;) {
    double x = reach * rng_unit(r);
    switch (rng_below(r, 4)) {
      case 0: x = reach * exp2(-rng_unit(r) * (reach > 1e3 ? 200 : 30)); break;
      case 1: x = 1 - exp2(-30 * rng_unit(r)); break;
      case 2: x = 4 * rng_unit(r); break;
      default: break;
    }
    if (rng_below(r, 2)) x = -x;
    if (x >= low && x <= high) return x;
  }
}

/* Of any size that leaves the products normal, mostly. */
static double draw_grad(rng *r) {
  double x = 2 * rng_unit(r) - 1;
  return rng_below(r, 3) ? x : ldexp(x, (int)rng_range(r, -24, 24));
}

static void test_formula(const formula *f, ref_dtype d) {
  enum { N = SANITIZED ? 4000 : 60000 };
  char name[64];
  snprintf(name, sizeof name, "%s_backward", f->op);
  quern_op *op = op_of(name);
  if (!op) return skip(1, "this build has no %s", name);
  const quern_op_info *info = quern_op_describe(op);
  const int n_in = info->n_in, n_out = info->n_out, size = ref_dtype_size(d);
  void *in[MAX_IN], *out[MAX_OUT];
  const double bound = f->ulp[d == REF_F64];
  double worst = -1;
  rng r;
  rng_seed(&r, 305);
  for (int k = 0; k < n_in; k++) in[k] = malloc((size_t)(N * size));
  for (int k = 0; k < n_out; k++) out[k] = malloc((size_t)(N * size));
  for (int i = 0; i < N; i++) {
    uint64_t bits[MAX_IN];
    for (int k = 0; k < n_in; k++) {
      double x = k ? draw(&r, f->low, f->high) : draw_grad(&r);
      bits[k] = ref_from_double(d, x);
    }
    /* what the op gave is an input of these: it is that, or close to it */
    if (strcmp(f->op, "pow") == 0) bits[3] = ref_from_double(d, pow((double)ref_value(d, bits[1]), (double)ref_value(d, bits[2])));
    if (strcmp(f->op, "hypot") == 0) bits[3] = ref_from_double(d, hypot((double)ref_value(d, bits[1]), (double)ref_value(d, bits[2])));
    for (int k = 0; k < n_in; k++) ref_put(d, (char *)in[k] + i * size, bits[k]);
  }
  group_begin("%s %s: within %.2f ULP", name, ref_dtype_name(d), bound);
  if (call_on(op, d, N, n_in, in, n_out, out)) group_fail("%s", quern_last_error());
  for (int i = 0; i < N; i++) {
    ref_real v[MAX_IN];
    for (int k = 0; k < n_in; k++) v[k] = ref_value(d, ref_get(d, (char *)in[k] + i * size));
    for (int k = 0; k < n_out; k++) {
      const uint64_t got = ref_get(d, (char *)out[k] + i * size);
      const ref_real exact = f->of[k](v), least = REAL(fabs)(v[0]) * (ref_real)f->least;
      const ref_real size_of = REAL(fabs)(exact);
      /* of two inputs: where a factor is no normal number, another order of them would be better, or worse elsewhere */
      const ref_real factor = REAL(fabs)(exact / v[0]), least_normal = (ref_real)(d == REF_F32 ? 0x1p-126 : 0x1p-1022);
      int is_normal = factor > least_normal && factor < 1 / least_normal;
      for (int j = 1; j < n_in; j++) is_normal &= REAL(fabs)(v[j]) > least_normal && REAL(fabs)(v[j]) < 1 / least_normal;
      if (f->of[1] && !is_normal) continue;
      double ulp = ref_ulp_error(d, got, exact);
      if (size_of < least) ulp = (double)(REAL(fabs)(ref_value(d, got) - exact) / ref_ulp(d, least));
      group_count(1);
      if (!(ulp <= worst)) worst = ulp;
      if (!(ulp <= bound)) {
        char text[64];
        group_fail("%s: at grad %a, %a, %a: got %s, wanted %a, %.3f ULP", info->args[n_in + k].name, (double)v[0],
                   n_in > 1 ? (double)v[1] : 0, n_in > 2 ? (double)v[2] : 0, ref_text(d, got, text), (double)exact, ulp);
      }
    }
  }
  group_end();
  diag("%s %s: worst %.4f ULP; declared %.2f", name, ref_dtype_name(d), worst, bound);
  for (int k = 0; k < n_in; k++) free(in[k]);
  for (int k = 0; k < n_out; k++) free(out[k]);
  quern_op_release(op);
}

/* ---- Differences ---- */

/* An op of doubles, one element. */
static int value_of(quern_op *op, int n_in, const double *in, int n_out, double *out) {
  void *ins[MAX_IN], *outs[MAX_OUT];
  double kept[MAX_IN];
  for (int k = 0; k < n_in; k++) {
    kept[k] = in[k];
    ins[k] = &kept[k];
  }
  for (int k = 0; k < n_out; k++) outs[k] = &out[k];
  DLTensor t[MAX_IN + MAX_OUT], *in_t[MAX_IN], *out_t[MAX_OUT];
  const quern_op_info *info = quern_op_describe(op);
  uint8_t conditions[MAX_IN];
  for (int k = 0; k < n_in + n_out; k++) {
    t[k] = (DLTensor){.data = k < n_in ? ins[k] : outs[k - n_in], .device = {kDLCPU, 0}, .dtype = ref_dtype_dl(REF_F64)};
    if (k < n_in && strcmp(info->args[k].dtypes, "bool") == 0) {
      conditions[k] = in[k] > 0;
      t[k].data = &conditions[k];
      t[k].dtype = ref_dtype_dl(REF_BOOL);
    }
    *(k < n_in ? &in_t[k] : &out_t[k - n_in]) = &t[k];
  }
  return quern_op_call(op, n_in, in_t, n_out, out_t, NULL) == QUERN_OK;
}

/* step: relative to x[k], or to 1 */
static double by_difference(quern_op *op, int n_in, const double *x, int k, double step) {
  double at[MAX_IN], high, low, h = step * (fabs(x[k]) > 1 ? fabs(x[k]) : 1);
  memcpy(at, x, sizeof at);
  at[k] = x[k] + h;
  if (!value_of(op, n_in, at, 1, &high)) return NAN;
  const double above = at[k];
  at[k] = x[k] - h;
  if (!value_of(op, n_in, at, 1, &low)) return NAN;
  return (high - low) / (above - at[k]);
}

static void test_differences(void) {
  const int32_t n = quern_op_count(NULL);
  int n_ops = 0;
  for (int32_t i = 0; i < n; i++) {
    quern_op *op = NULL, *backward = NULL;
    if (quern_op_at(NULL, i, &op)) bail("%s", quern_last_error());
    const quern_op_info *info = quern_op_describe(op);
    if (info->backward && quern_op_find(NULL, info->backward, &backward) == QUERN_OK) {
      const quern_op_info *of_backward = quern_op_describe(backward);
      rng r;
      rng_seed(&r, 306);
      n_ops++;
      group_begin("%s against differences of %s", of_backward->name, info->name);
      for (int j = 0; j < 400; j++) {
        double x[MAX_IN], y, in[MAX_IN], out[MAX_OUT];
        for (int k = 0; k < info->n_in; k++) x[k] = 6 * rng_unit(&r) - 3;
        if (!value_of(op, info->n_in, x, 1, &y)) group_fail("%s", quern_last_error());
        if (y != y) continue; /* outside of its domain */
        for (int k = 0; k < of_backward->n_in; k++) {
          const char *name = of_backward->args[k].name;
          in[k] = y;
          if (strcmp(name, "grad") == 0) in[k] = 4 * rng_unit(&r) - 2;
          for (int m = 0; m < info->n_in; m++)
            if (strcmp(name, info->args[m].name) == 0) in[k] = x[m];
        }
        if (!value_of(backward, of_backward->n_in, in, of_backward->n_out, out)) group_fail("%s", quern_last_error());
        for (int k = 0; k < of_backward->n_out; k++) {
          const char *by = of_backward->args[of_backward->n_in + k].name;
          int m = 0;
          while (m < info->n_in && strcmp(by + strlen("grad_"), info->args[m].name) != 0) m++;
          if (m == info->n_in) {
            group_fail("an output %s", by);
            continue;
          }
          const double wanted = in[0] * by_difference(op, info->n_in, x, m, 1e-6);
          /* not across a jump, where half the step gives twice the slope; not beside a kink or the end of the domain */
          double beside[MAX_IN], d_beside, d_half = in[0] * by_difference(op, info->n_in, x, m, 5e-7);
          memcpy(beside, x, sizeof beside);
          beside[m] += 1e-3;
          d_beside = in[0] * by_difference(op, info->n_in, beside, m, 1e-6);
          if (fabs(d_half - wanted) > 0.1 * (1 + fabs(wanted))) continue;
          if (wanted != wanted || d_beside != d_beside || fabs(d_beside - wanted) > 0.02 * (1 + fabs(wanted))) continue;
          group_count(1);
          if (!(fabs(out[k] - wanted) <= 1e-6 * (1 + fabs(wanted) + fabs(y))))
            group_fail("%s at %g, %g, grad %g: got %.9g, differences give %.9g", by, x[0], info->n_in > 1 ? x[1] : 0, in[0], out[k],
                       wanted);
        }
      }
      group_end();
    }
    quern_op_release(backward);
    quern_op_release(op);
  }
  ok(n_ops > 0, "%d ops have derivatives", n_ops);
}

/* ---- Where others choose, and where the naive forms fail ---- */

static const struct point {
  const char *op;
  double in[4];
  double out[2];
  double within; /* relative; 0: these bits */
} points[] = {
    {"relu", {3, 0}, {0}, 0}, {"relu", {3, -0.0}, {0}, 0}, {"relu", {3, 2}, {3}, 0}, {"relu", {INFINITY, -2}, {0}, 0},
    {"leaky_relu", {3, 0}, {3 * 0.01}, 1e-15}, {"leaky_relu", {3, 2}, {3}, 0},
    {"abs", {3, 0}, {0}, 0}, {"abs", {3, -2}, {-3}, 0}, {"abs", {3, 2}, {3}, 0},
    {"maximum", {3, 1, 1}, {1.5, 1.5}, 0}, {"maximum", {3, 2, 1}, {3, 0}, 0}, {"maximum", {3, 1, 2}, {0, 3}, 0},
    {"minimum", {3, 1, 1}, {1.5, 1.5}, 0}, {"minimum", {3, 2, 1}, {0, 3}, 0}, {"minimum", {3, 1, 2}, {3, 0}, 0},
    {"clip", {3, 5}, {3}, 0},
    {"add", {3}, {3, 3}, 0}, {"subtract", {3}, {3, -3}, 0}, {"multiply", {3, 5, 7}, {21, 15}, 0},
    {"divide", {8, 6, 2}, {4, -12}, 0},
    {"pow", {3, 0, 1, 0}, {3, 0}, 0}, {"pow", {3, 2, 0, 1}, {0, 3 * 0.69314718055994531}, 1e-15}, {"pow", {3, 0, 2, 0}, {0, 0}, 0},
    {"hypot", {5, 3, 4, 5}, {3, 4}, 1e-15},
    {"sigmoid", {1, 40}, {4.248354255291589e-18}, 1e-14}, {"sigmoid", {1, -40}, {4.248354255291589e-18}, 1e-14},
    {"tanh", {1, 30}, {4 * 8.7565107626965204e-27}, 1e-14}, {"erf", {1, 6}, {2.6173e-16}, 1e-4},
    {"log1p", {1, -1}, {INFINITY}, 0}, {"sqrt", {1, 0}, {INFINITY}, 0}, {"log", {1, 0}, {INFINITY}, 0},
    {"logaddexp", {1, 1000, 0}, {1, 0}, 0}, {"logaddexp", {2, 5, 5}, {1, 1}, 0},
    {"logaddexp", {1, -700, 0}, {9.8596765437597709e-305, 1}, 1e-13},
    {"sinc", {3, 0}, {0}, 0}, {"sinc", {3, 1}, {-3}, 1e-15}, {"sinc", {3, -2}, {-1.5}, 1e-15}, {"sinc", {3, INFINITY}, {NAN}, 0},
    {"sinc", {1, 1e-300}, {-3.2898681336964528e-300}, 1e-15}, {"sinc", {1, 1e300}, {1e-300}, 1e-15},
    {"gelu", {1, 0}, {0.5}, 0}, {"gelu", {1, INFINITY}, {1}, 0}, {"gelu", {1, -INFINITY}, {0}, 0}, {"gelu", {1, NAN}, {NAN}, 0},
};

static void test_points(void) {
  for (int i = 0; i < (int)(sizeof points / sizeof *points); i++) {
    const struct point *p = &points[i];
    char name[64];
    double out[MAX_OUT] = {0};
    snprintf(name, sizeof name, "%s_backward", p->op);
    quern_op *op = op_of(name);
    if (!op) {
      skip(1, "this build has no %s", name);
      continue;
    }
    const quern_op_info *info = quern_op_describe(op);
    int fine = value_of(op, info->n_in, p->in, info->n_out, out);
    for (int k = 0; k < info->n_out; k++) {
      const double wanted = p->out[k];
      fine &= wanted != wanted ? out[k] != out[k] : out[k] == wanted || fabs(out[k] - wanted) <= p->within * fabs(wanted);
    }
    ok(fine, "%s(%g, %g, %g): %.17g, %.17g", name, p->in[0], p->in[1], p->in[2], out[0], out[1]);
    quern_op_release(op);
  }
}

/* ---- In expressions ---- */

static const struct {
  const char *text;   /* of x, then y */
  const char *of;     /* whose differences are asked for; NULL: what is right is `same` */
  const char *same;
} expressions[] = {
    {"grad(x * x * x, x)", "x * x * x", NULL},
    {"grad(exp(x) * sin(x * y), x)", "exp(x) * sin(x * y)", NULL},
    {"f64 t = x * y; grad(gelu(t) / (1 + t * t), x)", "f64 t = x * y; gelu(t) / (1 + t * t)", NULL},
    {"grad(x > y ? log1p(x * x) : tanh(y - x), x)", "x > y ? log1p(x * x) : tanh(y - x)", NULL},
    {"grad(logaddexp(x, y) * maximum(x, y), x)", "logaddexp(x, y) * maximum(x, y)", NULL},
    {"param a; grad(pow(x * x + 1, a * 1.5 + 1), x)", "param a; pow(x * x + 1, a * 1.5 + 1)", NULL},
    {"grad(grad(x * x * x * y, x), x)", NULL, "6 * x * y"},
    {"grad(grad(x * x * y * y, x), y)", NULL, "4 * x * y"},
    {"grad(floor(x) * x, x)", NULL, "floor(x)"},
    {"grad((f64)(i32)x + x * 0, x)", NULL, "x - x"},
    {"grad(y * y, x)", NULL, "x - x"},
    {"grad(x > 0 ? log(x) : 0, x)", NULL, "x > 0 ? 1 / x : 0"},
    {"grad(clip(x, -1, 1) + where(x > y, x, y), x)", NULL, "(x >= -1 && x <= 1 ? 1 : x - x) + (x > y ? 1 : x - x)"},
};

static int run_expression(quern_ctx *ctx, const char *text, int64_t n, double *x, double *y, double *out) {
  quern_op *op = NULL;
  if (quern_op_compile(ctx, text, &op)) return 0;
  const quern_op_info *info = quern_op_describe(op);
  const quern_scalar a = {QUERN_F64, {.f = {1.0, 0}}};
  const quern_call call = {.size = sizeof call, .params = &a, .n_params = info->n_params};
  DLTensor t[3], *ins[2], *outs[1] = {&t[2]};
  for (int k = 0; k < 3; k++) t[k] = (DLTensor){.device = {kDLCPU, 0}, .ndim = 1, .dtype = ref_dtype_dl(REF_F64), .shape = &n};
  for (int k = 0; k < info->n_in; k++) {
    t[k].data = *info->args[k].name == 'x' ? x : y;
    ins[k] = &t[k];
  }
  t[2].data = out;
  const quern_status status = quern_op_call(op, info->n_in, ins, info->n_out > 1 ? 0 : 1, outs, &call);
  quern_op_release(op);
  return status == QUERN_OK;
}

static void test_expressions(void) {
  enum { N = 500 };
  static double x[N], y[N], above[N], below[N], got[N], compiled[N], high[N], low[N];
  quern_options off = {.size = sizeof off, .jit = QUERN_JIT_OFF}, sync = {.size = sizeof sync, .jit = QUERN_JIT_SYNC, .cache_dir = "none"};
  quern_ctx *plain = NULL, *fast = NULL;
  rng r;
  rng_seed(&r, 307);
  if (quern_ctx_create(&off, &plain) || quern_ctx_create(&sync, &fast)) bail("%s", quern_last_error());
  for (int i = 0; i < N; i++) {
    x[i] = 4 * rng_unit(&r) - 2;
    y[i] = 4 * rng_unit(&r) - 2;
    above[i] = x[i] + 1e-6;
    below[i] = x[i] - 1e-6;
  }
  for (int e = 0; e < (int)(sizeof expressions / sizeof *expressions); e++) {
    const char *text = expressions[e].text;
    group_begin("%s", text);
    if (!run_expression(plain, text, N, x, y, got) || !run_expression(fast, text, N, x, y, compiled)) {
      group_fail("%s", quern_last_error());
      group_end();
      continue;
    }
    if (memcmp(got, compiled, sizeof got)) group_fail("compiled it gives other bits");
    if (expressions[e].of) {
      if (!run_expression(plain, expressions[e].of, N, above, y, high) || !run_expression(plain, expressions[e].of, N, below, y, low))
        group_fail("%s", quern_last_error());
    } else if (!run_expression(plain, expressions[e].same, N, x, y, high)) {
      group_fail("%s", quern_last_error());
    }
    for (int i = 0; i < N; i++) {
      const double wanted = expressions[e].of ? (high[i] - low[i]) / (above[i] - below[i]) : high[i];
      const double within = expressions[e].of ? 1e-5 : 1e-14;
      group_count(1);
      if (expressions[e].of && (fabs(x[i] - y[i]) < 1e-5)) continue;
      if (!(fabs(got[i] - wanted) <= within * (1 + fabs(wanted)))) group_fail("at %g, %g: %.12g, wanted %.12g", x[i], y[i], got[i], wanted);
    }
    group_end();
  }
  quern_op *op = NULL;
  is_int(quern_op_compile(plain, "grad(x)", &op), QUERN_E_SYNTAX, "grad of one argument");
  has_str(quern_last_error(), "grad takes 2 arguments, got 1", "  says so");
  is_int(quern_op_compile(plain, "grad(x * y, x * y)", &op), QUERN_E_SYNTAX, "grad by what is no input");
  has_str(quern_last_error(), "x must be an input", "  says so");
  double one = 1;
  ok(!run_expression(plain, "grad(exp(x) + grad(exp(x), x), x)", 1, &one, &one, got), "a second derivative by way of an op");
  has_str(quern_last_error(), "exp_backward has no derivative", "  is refused");
  quern_ctx_release(plain);
  quern_ctx_release(fast);
}

int main(void) {
  if (is_subset()) skip_all("this build has some ops only, and few derivatives");
  for (int f = 0; f < N_FORMULAS; f++) {
    test_formula(&formulas[f], REF_F32);
    test_formula(&formulas[f], REF_F64);
  }
  test_differences();
  test_points();
  test_expressions();
  return done_testing();
}
