/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t306-backward: derivatives. Each backward op that rounds against MPFR, within the bound that its spec declares, as ACCURACY.md
 * has it, at fewer points where its text is that of which its row was measured, but a twelfth of the rows, another each day; every
 * backward op of elements there is against differences of its op in f64 (t024 has those of ops that reduce); what they give at kinks and where the naive forms fail; and
 * grad(expression, x) against differences, the same bits interpreted and compiled. */
#include <math.h>

#include "accuracy_rows.h"
#include "tensors.h"

#define MAX_IN 5
#define MAX_OUT 3

static quern_op *op_of(const char *name) {
  quern_op *op = NULL;
  return quern_op_find(NULL, name, &op) ? NULL : op;
}

/* ---- Formulas ---- */

static backward_row published[BACKWARD_MAX_ROWS][REF_N_DTYPES][BACKWARD_MAX_OUT];

static accuracy_programs measured, now; /* what ACCURACY.md's rows are of, and what there is */

/* Whether the row is measured at many points. */
static int is_due(int k, ref_dtype d) {
  char name[64];
  const int part = test_part(12);
  snprintf(name, sizeof name, "%s_backward", backward_op(k));
  const char *digest = accuracy_program(&now, name, ref_dtype_name(d));
  return part < 0 || !*digest || strcmp(digest, accuracy_program(&measured, name, ref_dtype_name(d))) != 0 ||
         (k * 4 + (int)d) % 12 == part;
}

static void test_formula(int k, ref_dtype d) {
  backward_accuracy a;
  const double bound = backward_declared(k, d);
  const char *dtype = ref_dtype_name(d);
  const int is_whole = is_due(k, d);
  if (!backward_measure(k, d, SANITIZED || !is_whole ? 2000 : 30000, &a))
    return skip(1, "no %s_backward of %s", backward_op(k), dtype);
  ok(a.n_bad == 0, "%s %s: within %g ULP at %lld points", a.name, dtype, bound, a.n);
  for (int j = 0; j < a.n_out; j++) {
    const backward_found *found = &a.found[j];
    const backward_row *row = &published[k][d][j];
    char at[200];
    diag("%s %s %s: worst %.4f ULP at %s: got %a, exact is %a; declared %g", a.name, dtype, a.outputs[j], found->worst,
         backward_place(&a, j, at, sizeof at), found->got, found->exact, bound);
    /* What ACCURACY.md says holds: nothing worse is among these points, which are among its, and its point has its error. */
    if (getenv("QUERN_TEST_SEED")) continue; /* other points than it was written from */
    const double ulp = strtod(row->found, NULL);
    const int is_there = strcmp(row->output, a.outputs[j]) == 0;
    ok(is_there && found->worst <= ulp + 0.0001, "  %s: as ACCURACY.md has it: %s ULP", a.outputs[j],
       is_there ? row->found : "no row");
    if (ulp == 0) continue;
    double x[BACKWARD_MAX_IN] = {0};
    char *next = (char *)(uintptr_t)row->at;
    for (int m = 0; m < a.n_in; m++) {
      x[m] = strtod(next, &next);
      if (*next == ',') next++;
    }
    const double again = backward_at(k, d, j, x);
    ok(fabs(again - ulp) <= 0.0001, "  at %s: %.4f ULP", row->at, again);
  }
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
    if (info->backward && !has_axes(info) && quern_op_find(NULL, info->backward, &backward) == QUERN_OK) {
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
            group_fail("%s at %g, %g, grad %g: got %.9g, differences give %.9g", by, x[0], info->n_in > 1 ? x[1] : 0, in[0],
                       out[k], wanted);
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
    {"maximum", {3, 0.0, -0.0}, {1.5, 1.5}, 0}, {"minimum", {3, INFINITY, INFINITY}, {1.5, 1.5}, 0},
    {"fmax", {3, 1, 1}, {1.5, 1.5}, 0}, {"fmax", {3, NAN, 1}, {0, 3}, 0}, {"fmax", {3, 1, NAN}, {3, 0}, 0},
    {"fmax", {3, NAN, NAN}, {3, 0}, 0}, {"fmin", {3, 1, 1}, {1.5, 1.5}, 0}, {"fmin", {3, NAN, NAN}, {3, 0}, 0},
    {"clip", {3, 5}, {3}, 0}, {"clip", {3, INFINITY}, {0}, 0}, {"clip", {3, NAN}, {0}, 0},
    {"sign", {3, 0}, {0}, 0}, {"sign", {3}, {0}, 0}, {"floor", {3, 1}, {0}, 0}, {"round", {3, 0.5}, {0}, 0},
    {"copysign", {3, 0, -1}, {0, 0}, 0}, {"copysign", {3, 2, -0.0}, {-3, 0}, 0}, {"copysign", {3, INFINITY, 1}, {3, 0}, 0},
    {"heaviside", {3, 0, 5}, {0, 3}, 0}, {"heaviside", {3, NAN, 5}, {0, 0}, 0},
    {"atan2", {3, 0, 0}, {0, 0}, 0}, {"atan2", {3, -0.0, -0.0}, {0, 0}, 0}, {"atan2", {3, 0, -2}, {-1.5, 0}, 0},
    {"hypot", {3, 0, 0, 0}, {NAN, NAN}, 0}, {"hypot", {3, -2, 0, 2}, {-3, 0}, 0},
    {"remainder", {3, 1, -INFINITY, -INFINITY}, {3, 3}, 0}, {"remainder", {3, 1, INFINITY, 1}, {3, 0}, 0},
    {"remainder", {3, 6, 2, 0}, {3, -9}, 0}, {"remainder", {3, -7, 2, 1}, {3, 12}, 0},
    {"remainder", {3, 1, 0, NAN}, {3, NAN}, 0}, {"fmod", {3, -7, 2, -1}, {3, 9}, 0},
    {"asin", {3, 1}, {INFINITY}, 0}, {"acos", {3, -1}, {-INFINITY}, 0}, {"atanh", {3, -1}, {INFINITY}, 0},
    {"acosh", {3, 1}, {INFINITY}, 0}, {"acosh", {3, -2}, {NAN}, 0}, {"cbrt", {3, 0}, {INFINITY}, 0},
    {"reciprocal", {3, -INFINITY}, {-INFINITY}, 0}, {"square", {3, 0}, {0}, 0}, {"leaky_relu", {3, NAN}, {0.03}, 1e-15},
    {"logaddexp", {1, INFINITY, INFINITY}, {NAN, NAN}, 0}, {"logaddexp", {1, INFINITY, 0}, {1, 0}, 0},
    {"logaddexp2", {2, -3, -3}, {1, 1}, 0}, {"pow", {3, 0, 0, 1}, {0, 0}, 0}, {"pow", {3, -2, 3, -8}, {36, NAN}, 0},
    {"pow", {3, 0, -1, INFINITY}, {-INFINITY, -INFINITY}, 0}, {"pow", {3, 0, 0.5, 0}, {INFINITY, 0}, 0},
    {"pow", {3, 0x1p-1040, 1, 0x1p-1040}, {3, 3 * 0x1p-1040 * -720.87306778234316}, 1e-9},
    {"pow", {3, 0x1p-1040, 0.5, 0x1p-520}, {1.5 * 0x1p520, 3 * 0x1p-520 * -720.87306778234316}, 1e-14},
    {"pow", {3, 0x1p-1040, 0x1p-20, 1}, {3 * 0x1p1020, -3 * 720.87306778234316}, 1e-14},
    {"atan2", {1e300, 1e300, 1}, {1e-300, -1}, 1e-15}, {"atan2", {1e-300, 1e-300, 0}, {0, -1}, 1e-15},
    {"sinc", {3, 0}, {0}, 0}, {"sinc", {3, 1}, {-3}, 1e-15}, {"sinc", {3, -2}, {-1.5}, 1e-15}, {"sinc", {3, INFINITY}, {NAN}, 0},
    {"sinc", {1, 1e-300}, {-3.2898681336964528e-300}, 1e-15}, {"sinc", {1, 1e300}, {1e-300}, 1e-15},
    {"add", {3}, {3, 3}, 0}, {"subtract", {3}, {3, -3}, 0}, {"multiply", {3, 5, 7}, {21, 15}, 0},
    {"divide", {8, 6, 2}, {4, -12}, 0},
    {"pow", {3, 0, 1, 0}, {3, 0}, 0}, {"pow", {3, 2, 0, 1}, {0, 3 * 0.69314718055994531}, 1e-15},
    {"pow", {3, 0, 2, 0}, {0, 0}, 0},
    {"hypot", {5, 3, 4, 5}, {3, 4}, 1e-15},
    {"sigmoid", {1, 40}, {4.248354255291589e-18}, 1e-14}, {"sigmoid", {1, -40}, {4.248354255291589e-18}, 1e-14},
    {"tanh", {1, 30}, {4 * 8.7565107626965204e-27}, 1e-14}, {"erf", {1, 6}, {2.6173e-16}, 1e-4},
    {"log1p", {1, -1}, {INFINITY}, 0}, {"sqrt", {1, 0}, {INFINITY}, 0}, {"log", {1, 0}, {INFINITY}, 0},
    {"logaddexp", {1, 1000, 0}, {1, 0}, 0}, {"logaddexp", {2, 5, 5}, {1, 1}, 0},
    {"logaddexp", {1, -700, 0}, {9.8596765437597709e-305, 1}, 1e-13},
    {"gelu", {1, 0}, {0.5}, 0}, {"gelu", {1, INFINITY}, {1}, 0}, {"gelu", {1, -INFINITY}, {0}, 0}, {"gelu", {1, NAN}, {NAN}, 0},
    {"silu", {1, 0}, {0.5}, 0}, {"silu", {1, INFINITY}, {1}, 0}, {"silu", {1, -INFINITY}, {0}, 0}, {"silu", {1, NAN}, {NAN}, 0},
    {"gelu_tanh", {1, 0}, {0.5}, 0}, {"gelu_tanh", {1, INFINITY}, {1}, 0}, {"gelu_tanh", {1, -INFINITY}, {0}, 0},
    {"mish", {1, 0}, {0.6}, 1e-15}, {"mish", {1, INFINITY}, {1}, 0}, {"mish", {1, -INFINITY}, {0}, 0}, {"mish", {1, NAN}, {NAN}, 0},
    {"softplus", {3, 0}, {1.5}, 0}, {"softplus", {3, 21}, {3}, 0}, {"softplus", {3, -INFINITY}, {0}, 0},
    {"softplus", {1, -700}, {9.8596765437597709e-305}, 1e-15}, {"softplus", {1e300, -760}, {8.633636377213887e-31}, 1e-14},
    {"log_sigmoid", {3, 0}, {1.5}, 0}, {"log_sigmoid", {3, -INFINITY}, {3}, 0}, {"log_sigmoid", {3, INFINITY}, {0}, 0},
    {"softsign", {4, -1}, {1}, 0}, {"softsign", {3, INFINITY}, {0}, 0}, {"softsign", {3, 0}, {3}, 0},
    {"elu", {3, 0}, {3}, 0}, {"elu", {3, 2}, {3}, 0}, {"elu", {3, -INFINITY}, {0}, 0}, {"elu", {3, NAN}, {NAN}, 0},
    {"celu", {3, 0}, {3}, 0}, {"celu", {3, 2}, {3}, 0}, {"celu", {3, -INFINITY}, {0}, 0},
    {"selu", {1, 2}, {1.0507009873554805}, 0}, {"selu", {1, -INFINITY}, {0}, 0}, {"selu", {1, 0}, {1.7580993408473769}, 0},
    {"hard_sigmoid", {3, 3}, {0}, 0}, {"hard_sigmoid", {3, -3}, {0}, 0}, {"hard_sigmoid", {3, 1}, {0.5}, 0},
    {"hard_swish", {3, 3}, {3}, 0}, {"hard_swish", {3, -3}, {0}, 0}, {"hard_swish", {3, 0}, {1.5}, 0},
    {"hard_swish", {3, INFINITY}, {3}, 0}, {"hard_swish", {INFINITY, -INFINITY}, {0}, 0},
    {"thresholded_relu", {3, 1}, {0}, 0}, {"thresholded_relu", {3, 2}, {3}, 0},
    {"prelu", {3, 2, 0.5}, {3, 0}, 0}, {"prelu", {3, -2, 0.5}, {1.5, -6}, 0}, {"prelu", {3, 0, 0.5}, {1.5, 0}, 0},
    {"swiglu", {3, 0, 2}, {3, 0}, 0}, {"swiglu", {1, INFINITY, 2}, {2, INFINITY}, 0}, {"swiglu", {1, -INFINITY, 2}, {0, 0}, 0},
    {"geglu", {3, 0, 2}, {3, 0}, 0}, {"geglu", {1, -INFINITY, 2}, {0, 0}, 0},
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
  const char *of;     /* differences are taken of this; NULL: what is right is `same` */
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
  quern_options off = {.size = sizeof off, .jit = QUERN_JIT_OFF};
  quern_options sync = {.size = sizeof sync, .jit = QUERN_JIT_SYNC, .cache_dir = "none"};
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
      if (!run_expression(plain, expressions[e].of, N, above, y, high) ||
          !run_expression(plain, expressions[e].of, N, below, y, low))
        group_fail("%s", quern_last_error());
    } else if (!run_expression(plain, expressions[e].same, N, x, y, high)) {
      group_fail("%s", quern_last_error());
    }
    for (int i = 0; i < N; i++) {
      const double wanted = expressions[e].of ? (high[i] - low[i]) / (above[i] - below[i]) : high[i];
      const double within = expressions[e].of ? 1e-5 : 1e-14;
      group_count(1);
      if (expressions[e].of && (fabs(x[i] - y[i]) < 1e-5)) continue;
      if (!(fabs(got[i] - wanted) <= within * (1 + fabs(wanted))))
        group_fail("at %g, %g: %.12g, wanted %.12g", x[i], y[i], got[i], wanted);
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
  has_str(quern_last_error(),
          "exp_backward has no derivative: second derivatives go through operators and primitives, not through ops",
          "  is refused");
  quern_ctx_release(plain);
  quern_ctx_release(fast);
}

int main(void) {
  const char *root = getenv("QUERN_SOURCE_DIR") ? getenv("QUERN_SOURCE_DIR") : ".";
  accuracy_programs_read(root, &measured);
  ok(accuracy_programs_now(root, &now), "the digests of the ops' text");
  if (is_subset()) skip_all("this build has some ops only, and few derivatives");
  char path[4096];
  const char *source = getenv("QUERN_SOURCE_DIR");
  snprintf(path, sizeof path, "%s/ACCURACY.md", source ? source : ".");
  if (!accuracy_read_backward(path, published)) bail("%s cannot be read", path);
  for (int k = 0; backward_op(k); k++) {
    for (int d = REF_F16; d <= REF_F64; d++) test_formula(k, (ref_dtype)d);
  }
  test_differences();
  test_points();
  test_expressions();
  return done_testing();
}
