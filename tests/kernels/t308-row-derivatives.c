/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t308-row-derivatives: grad(expression, x) through ops that reduce, of any shapes and axes, f32 and f64, beside differences along a random
 * direction, and beside formulas; the same bits interpreted, on one thread and several, and compiled by Clang and by cc, a third of the expressions
 * by each every day. What is refused. */
#include "expressions.h"

/* @ is replaced by the axes. of: what is differentiated by x, an expression of x and y; same: what is right, or NULL */
static const struct {
  const char *of, *same;
} gradients[] = {
    {"sum(x, @)", "x - x + 1"},
    {"sum(x * y, @)", "y + (x - x)"},
    {"y - sum(x, @)", "x - x - sum(y == y ? (f64)1 : (f64)0, @)"},
    {"mean(x, @)", "x - x + 1 / sum(y == y ? (f64)1 : (f64)0, @)"},
    {"x * x + sum(y, @)", "x + x"},
    {"max(x, @) * y", "x == max(x, @) ? sum(y, @) / sum(x == max(x, @) ? (f64)1 : (f64)0, @) : 0"},
    {"softmax(x, @)", "(x - x) * 0"},
    {"logsumexp(x, @)", "softmax(x, @)"},
    {"layer_norm(x, 0.25, @)", NULL}, /* what they reduce of the derivative by their result is 1 */
    {"log_softmax(x, @)", "x - x + 1 - softmax(x, @) * sum(y == y ? (f64)1 : (f64)0, @)"},
    {"softmax(x * y, @) * y", NULL},
    {"exp(x - max(x, @)) / sum(exp(x), @)", NULL},
    {"log(sum(exp(x), @)) * var(x, 1, @) - x * y", NULL},
    {"layer_norm(x, 0.25, @) * y - mean(x, @)", NULL},
    {"rms_norm_affine(x, y, 0.25, @) + x", NULL},
    {"x > y ? x * sum(x * y, @) : y * mean(sin(x), @)", NULL},
    {"normalize(x * y, @)", NULL},
    {"cosine_similarity(x, y, @) * std(x, @)", NULL},
    {"f64 m = mean(x, @); f64 v = mean((x - m) * (x - m), @); (x - m) / sqrt(v + 0.5) * y", NULL},
    {"vector_norm(x * y, 3, @) * vector_norm(y - x, 1.5, @)", NULL},
    {"f64 p = softmax(x, @); sum(-(p * log_softmax(y * x, @)), @)", NULL},
    {"average(x * x, y * y + 1, @) * reduce_log_sum(x * x + 1, @)", NULL},
    {"prod(x * 0.5 + 1, @) * ptp(x, @)", NULL},
};

enum { MOST_NDIM = 3, MOST_TEXT = 1500, N_WAYS = 5 };
static quern_ctx *ways[N_WAYS];
static const char *const way_names[N_WAYS] = {"interpreted", "on three threads", "on eight threads", "by Clang", "by cc"};

static void expand(const char *form, const char *axes, char *text) {
  for (; *form; form++) text += sprintf(text, "%.*s", *form == '@' ? (int)strlen(axes) : 1, *form == '@' ? axes : form);
}

static void text_axes(int ndim, int axes, char *text) {
  int n = 0, length = sprintf(text, "axis=(");
  for (int k = 0; k < ndim; k++)
    if (axes >> k & 1) length += sprintf(text + length, "%s%d", n++ ? ", " : "", k % 2 ? k : k - ndim);
  sprintf(text + length, n == 1 ? ",)" : ")");
}

/* Calls an expression of x and y. */
static void run(quern_ctx *ctx, const char *text, operand *x, operand *y, operand *out, rng *r) {
  quern_op *op = op_from(ctx, text);
  const quern_op_info *info = quern_op_describe(op);
  quern_shape shape = {.size = sizeof shape};
  DLTensor *in[2], *outs[1] = {&out->t};
  for (int k = 0; k < info->n_in; k++) in[k] = *info->args[k].name == 'x' ? &x->t : &y->t;
  if (quern_op_measure(op, info->n_in, in, 1, &shape, NULL)) bail("%s: %s", text, quern_last_error());
  operand_make(out, ref_dtype_of(shape.dtype), shape.ndim, shape.shape, NULL, r);
  if (quern_op_call(op, info->n_in, in, 1, outs, NULL)) bail("%s: %s", text, quern_last_error());
  quern_op_release(op);
}

static int64_t count_of(const operand *o) {
  int64_t n = 1;
  for (int k = 0; k < o->t.ndim; k++) n *= o->t.shape[k];
  return n;
}

static double *numbers(const operand *o) { return o->t.data; }

static double total(quern_ctx *ctx, const char *text, operand *x, operand *y, rng *r) {
  operand out;
  double sum = 0;
  run(ctx, text, x, y, &out, r);
  for (int64_t i = 0; i < count_of(&out); i++) sum += numbers(&out)[i];
  operand_free(&out);
  return sum;
}

static void draw(operand *o, int ndim, const int64_t *shape, rng *r) {
  operand_make(o, REF_F64, ndim, shape, NULL, r);
  for (int64_t i = 0; i < count_of(o); i++) numbers(o)[i] = 2 * rng_unit(r) - 1;
}

/* The derivative along a direction d: that of the sum of all results. */
static double along(const char *text, operand *x, operand *y, const double *d, rng *r) {
  const double step = 1e-5;
  double side[2];
  for (int k = 0; k < 2; k++) {
    operand moved;
    operand_make(&moved, REF_F64, x->t.ndim, x->shape, NULL, r);
    for (int64_t i = 0; i < count_of(x); i++) numbers(&moved)[i] = numbers(x)[i] + (k ? step : -step) * d[i];
    side[k] = total(ways[0], text, &moved, y, r);
    operand_free(&moved);
  }
  return (side[1] - side[0]) / (2 * step);
}

/* Whether expression e goes this way today: compiles are what this test costs. */
static int is_way(int way, int e) {
  const int part = way >= 3 ? test_part(6) : -1;
  return ways[way] && (part < 0 || (e + way) % 6 == part);
}

/* The same expression of f32: the same bits in every way, near those of f64. */
static void compare_f32(const char *text, int e, operand *x, operand *y, rng *r) {
  operand narrow[2], first;
  operand *const wide[2] = {x, y};
  char of_f32[2 * MOST_TEXT];
  char *to = of_f32;
  for (const char *at = text; *at; at++) to += sprintf(to, "%.*s", 1, at);
  for (char *at; (at = strstr(of_f32, "f64"));) memcpy(at, "f32", 3);
  for (int k = 0; k < 2; k++) {
    operand_make(&narrow[k], REF_F32, wide[k]->t.ndim, wide[k]->shape, NULL, r);
    for (int64_t i = 0; i < count_of(wide[k]); i++) ((float *)narrow[k].t.data)[i] = (float)numbers(wide[k])[i];
  }
  for (int way = 0; way < N_WAYS; way++) {
    operand out;
    if (!is_way(way, e)) continue;
    run(ways[way], of_f32, &narrow[0], &narrow[1], &out, r);
    group_count(1);
    if (way == 0) first = out;
    else if (!same_elements(&first, &out)) group_fail("%s: other bits %s", of_f32, way_names[way]);
    if (way) operand_free(&out);
  }
  operand_free(&first);
  for (int k = 0; k < 2; k++) operand_free(&narrow[k]);
}

static void test_gradient(int e, rng *r) {
  group_begin("grad(%s, x)", gradients[e].of);
  for (int round = 0; round < 5; round++) {
    int64_t shape[MOST_NDIM];
    const int ndim = 1 + round % MOST_NDIM, axes = 1 + (int)rng_below(r, (1u << ndim) - 1);
    char named[100], of[MOST_TEXT], same[MOST_TEXT], text[MOST_TEXT + 100];
    const char *last;
    operand x, y, wanted, first;
    for (int k = 0; k < ndim; k++) shape[k] = 2 + (int64_t)rng_below(r, 8);
    if (round == 3) shape[0] = 3000; /* in blocks */
    draw(&x, ndim, shape, r);
    draw(&y, ndim, shape, r);
    text_axes(ndim, axes, named);
    expand(gradients[e].of, named, of);
    last = strrchr(of, ';'); /* statements before it stay before it */
    if (last) sprintf(text, "%.*s; grad(%s, x)", (int)(last - of), of, last + 1);
    else sprintf(text, "grad(%s, x)", of);
    for (int way = 0; way < N_WAYS; way++) {
      operand out;
      if (!is_way(way, e) || (way >= 3 && round % 3)) continue;
      run(ways[way], text, &x, &y, &out, r);
      group_count(1);
      if (out.t.ndim != ndim || count_of(&out) != count_of(&x)) group_fail("%s: not the shape of x", text);
      if (way == 0) first = out;
      else if (!same_elements(&first, &out)) group_fail("%s: other bits %s", text, way_names[way]);
      if (way) operand_free(&out);
    }
    double *d = malloc((size_t)count_of(&x) * sizeof *d), got = 0, size = 1;
    for (int64_t i = 0; i < count_of(&x); i++) {
      d[i] = 2 * rng_unit(r) - 1;
      got += d[i] * numbers(&first)[i];
      size += fabs(numbers(&first)[i]);
    }
    const double differences = along(of, &x, &y, d, r);
    if (!(fabs(got - differences) <= 1e-6 * size)) group_fail("%s: %.9g along a direction, wanted %.9g", text, got, differences);
    if (gradients[e].same) {
      expand(gradients[e].same, named, same);
      run(ways[0], same, &x, &y, &wanted, r);
      for (int64_t i = 0; i < count_of(&x); i++)
        if (!(fabs(numbers(&first)[i] - numbers(&wanted)[i]) <= 1e-13 * (1 + fabs(numbers(&wanted)[i]))))
          group_fail("%s: %.17g, wanted %.17g", text, numbers(&first)[i], numbers(&wanted)[i]);
      operand_free(&wanted);
    }
    if (round < 2) compare_f32(text, e, &x, &y, r);
    free(d);
    operand_free(&first);
    operand_free(&x);
    operand_free(&y);
  }
  group_end();
}

/* Other inputs, of other ranks; broadcast ones, which have a derivative for each element; axes that differ. */
static void test_shapes(rng *r) {
  static const struct {
    const char *text;
    int x[2], y[2]; /* shapes; 0: there is no such dimension */
    quern_status status;
    const char *words; /* of an error; else the derivative */
  } cases[] = {
      {"grad(y - sum(x, axis=0), x)", {4, 0}, {3, 4}, QUERN_OK, "y - y - 4"},
      {"grad(mean(x, axis=0), x)", {4, 3}, {0, 0}, QUERN_OK, "x - x + 0.25"},
      {"grad(y * sum(x, axis=1), x)", {4, 3}, {4, 1}, QUERN_OK, "3 * y + (x - x)"}, /* three results a row */
      {"grad(y * x - sum(x, axis=1), y)", {4, 3}, {1, 3}, QUERN_OK, "x + (y - y)"},
      {"grad(sum(x, axis=0) * sum(x, axis=1), x)", {4, 3}, {0, 0}, QUERN_E_UNSUPPORTED, "different axes"},
      {"grad(mean(x, axis=0), x) + grad(mean(x, axis=1), x)", {4, 3}, {0, 0}, QUERN_E_UNSUPPORTED, "different axes"},
      {"grad(mean(x, axis=0), x) + sum(x, axis=1)", {4, 3}, {0, 0}, QUERN_E_UNSUPPORTED, "different axes"},
      {"grad(mean(x, axis=2), x)", {4, 3}, {0, 0}, QUERN_E_ARGUMENT, "axis 2 of an argument of 2 dimensions"},
      {"grad(sum(x, axis=2), x)", {4, 3}, {0, 0}, QUERN_E_ARGUMENT, "axis 2 of an argument of 2 dimensions"},
      {"grad(argmax(x), x)", {4, 3}, {0, 0}, QUERN_E_DTYPE, "grad of a i64"},
      {"grad(max_backward(max(x), x, max(x)), x)", {4, 3}, {0, 0}, QUERN_E_DTYPE, "second derivatives go through operators"},
      {"grad(grad(sum(x * x * x, axis=1), x), x)", {4, 3}, {0, 0}, QUERN_E_DTYPE, "sum_backward has no derivative"},
      {"grad(grad(softmax(x) * y, x), x)", {4, 3}, {4, 3}, QUERN_E_DTYPE, "softmax_backward has no derivative"},
      {"grad(rms_norm_affine(x, y, axis=1), y)", {4, 3}, {4, 3}, QUERN_E_DTYPE, "no derivative by its argument weight"},
      {"grad(layer_norm_affine(y, y, exp(x), axis=1), x)", {4, 3}, {4, 3}, QUERN_E_DTYPE, "no derivative by its argument bias"},
      {"grad(grad(exp(mean(x)), x), x)", {4, 3}, {0, 0}, QUERN_E_DTYPE, "mean_backward has no derivative"},
  };
  for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
    operand in[2], out;
    int64_t shape[2];
    quern_op *op = op_from(ways[0], cases[i].text);
    const quern_op_info *info = quern_op_describe(op);
    quern_shape measured = {.size = sizeof measured};
    DLTensor *ins[2], *outs[1] = {&out.t};
    for (int k = 0; k < 2; k++) {
      const int *dims = k ? cases[i].y : cases[i].x;
      int ndim = 0;
      while (ndim < 2 && dims[ndim]) shape[ndim] = dims[ndim], ndim++;
      draw(&in[k], ndim, shape, r);
    }
    for (int k = 0; k < info->n_in; k++) ins[k] = *info->args[k].name == 'x' ? &in[0].t : &in[1].t;
    quern_status status = quern_op_measure(op, info->n_in, ins, 1, &measured, NULL);
    if (status == QUERN_OK) {
      operand_make(&out, REF_F64, measured.ndim, measured.shape, NULL, r);
      status = quern_op_call(op, info->n_in, ins, 1, outs, NULL);
    }
    is_int(status, cases[i].status, "%s: %s", cases[i].text, status ? quern_last_error() : "");
    if (cases[i].status) has_str(quern_last_error(), cases[i].words, "  says so");
    if (status == QUERN_OK) {
      operand wanted;
      run(ways[0], cases[i].words, &in[0], &in[1], &wanted, r);
      ok(same_elements(&wanted, &out), "  it is %s", cases[i].words);
      operand_free(&wanted);
    }
    if (status == QUERN_OK) operand_free(&out);
    for (int k = 0; k < 2; k++) operand_free(&in[k]);
    quern_op_release(op);
  }
}

int main(void) {
  rng r;
  forget_environment();
  ways[0] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1});
  ways[1] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 3});
  ways[2] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 8});
  if (compiles_with(NULL, "clang")) ways[3] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2});
  if (compiles_with("cc", "cc")) ways[4] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2, .cc = "cc"});
  rng_seed(&r, 308);
  for (int e = 0; e < (int)(sizeof gradients / sizeof *gradients); e++) test_gradient(e, &r);
  test_shapes(&r);
  for (int k = 0; k < N_WAYS; k++) quern_ctx_release(ways[k]);
  return done_testing();
}
