/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t244-row-ops: ops that reduce and have several inputs, outputs or parameters: bit for bit what expressions of simpler ones give, over any
 * layout; class indices against plain loops; what is refused; the same bits on one thread and on several, down columns and along rows;
 * masked logits. */
#include "expressions.h"

#define NO_VALUE -12345.0

static const char names[] = "xyzw"; /* of inputs, in formulas */

/* An op's output, and an expression that gives the same of the inputs x, y, z, w, or behind ! an op that does. @ is replaced by the axes. */
static const struct {
  const char *op;
  int n_in, n_out, which;
  const char *dtypes, *formula;
  double param; /* the op's own one, or NO_VALUE */
  int rows;     /* bit k: input k has extent 1 along the axes */
} same[] = {
    {"var_mean", 1, 2, 0, "f16 bf16 f32 f64 i8 i64", "var(x, 1, @)", 1, 0},
    {"var_mean", 1, 2, 1, "f16 bf16 f32 f64 i8", "mean(x, @)", 1, 0},
    {"std_mean", 1, 2, 0, "f16 f32 f64 u32", "std(x, @)", NO_VALUE, 0},
    {"std_mean", 1, 2, 1, "f16 f32 f64", "mean(x, @)", NO_VALUE, 0},
    {"std", 1, 1, 0, "f32 f64", "sqrt(var(x, 1, @))", 1, 0},
    {"nanstd", 1, 1, 0, "f32 f64", "sqrt(nanvar(x, 1, @))", 1, 0},
    {"aminmax", 1, 2, 0, "f16 f32 f64 i8 u64", "min(x, @)", NO_VALUE, 0},
    {"aminmax", 1, 2, 1, "f16 f32 f64 i8 u64", "max(x, @)", NO_VALUE, 0},
    {"max_with_indices", 1, 2, 0, "f16 f32 f64 i8 u64", "max(x, @)", NO_VALUE, 0},
    {"min_with_indices", 1, 2, 0, "f16 f32 f64 i8 u64", "min(x, @)", NO_VALUE, 0},
    {"max_with_indices", 1, 2, 1, "f16 f32 f64 i8 u64", "!argmax", NO_VALUE, 0},
    {"min_with_indices", 1, 2, 1, "f16 f32 f64 i8 u64", "!argmin", NO_VALUE, 0},
    {"vecdot", 2, 1, 0, "f32 f64 i64 u64", "sum(x * y, @)", NO_VALUE, 0},
    {"vecdot", 2, 1, 0, "i8 i16 i32 bool", "sum((i64)x * (i64)y, @)", NO_VALUE, 0},
    {"average", 2, 1, 0, "f32 f64", "sum(x * y, @) / sum(y, @)", NO_VALUE, 0},
    {"rms_norm_affine", 2, 1, 0, "f32 f64", "x * (1 / sqrt(mean(x * x, @) + 0.25)) * y", 0.25, 0},
    {"layer_norm_affine", 3, 1, 0, "f32 f64",
     "(x - mean(x, @)) * (1 / sqrt(mean((x - mean(x, @)) * (x - mean(x, @)), @) + 0.25)) * y + z", 0.25, 0},
    {"cosine_similarity", 2, 1, 0, "f64", "sum((x / maximum(reduce_l2(x, @), 0.5)) * (y / maximum(reduce_l2(y, @), 0.5)), @)", 0.5, 0},
    {"cosine_similarity", 2, 1, 0, "f32",
     "(f32)(sum((f64)x * (f64)y, @) / (maximum(sqrt(sum((f64)x * (f64)x, @)), 0.5) * maximum(sqrt(sum((f64)y * (f64)y, @)), 0.5)))", 0.5, 0},
    {"vector_norm", 1, 1, 0, "f16 bf16 f32 f64 i32", "reduce_l2(x, @)", NO_VALUE, 0},
    {"vector_norm", 1, 1, 0, "f64", "sum(abs(x), @)", 1, 0},
    {"vector_norm", 1, 1, 0, "f32", "(f32)sum(abs((f64)x), @)", 1, 0},
    {"vector_norm", 1, 1, 0, "f32", "(f32)count_nonzero(x, @)", 0, 0},
    {"vector_norm", 1, 1, 0, "f16 bf16 f32 f64", "max(abs(x), @)", INFINITY, 0},
    {"vector_norm", 1, 1, 0, "f32 f64", "min(abs(x), @)", -INFINITY, 0},
    {"vector_norm", 1, 1, 0, "f32 f64", "vector_norm(x, 3, @)", 3, 0},
    {"lp_normalize", 1, 1, 0, "f32", "x / maximum((f32)vector_norm(x, 2, @), 1e-12)", 2, 0},
    {"lp_normalize", 1, 1, 0, "f64", "x / maximum(sum(abs(x), @), 1e-12)", 1, 0},
    {"mean_rstd", 1, 2, 0, "f16 f32 f64", "mean(x, @)", 0.25, 0},
    {"mean_rstd", 1, 2, 1, "f32 f64", "1 / sqrt(mean((x - mean(x, @)) * (x - mean(x, @)), @) + 0.25)", 0.25, 0},
    {"layer_norm_backward_affine", 4, 2, 0, "f16 f32 f64", "sum(x * ((y - z) * w), @)", NO_VALUE, 0},
    {"layer_norm_backward_affine", 4, 2, 1, "f16 f32 f64", "sum(x, @)", NO_VALUE, 0},
    {"rms_norm_backward_affine", 3, 1, 0, "f32 f64", "sum(x * (y * z), @)", NO_VALUE, 0},
    /* derivatives: x is grad, then the op's inputs, then its output */
    {"sum_backward", 2, 1, 0, "f16 bf16 f32 f64", "y == y ? x : x", NO_VALUE, 1},
    {"mean_backward", 2, 1, 0, "f32 f64", "x / (f32)sum((i64)(y == y || y != y), @)", NO_VALUE, 1},
    {"max_backward", 3, 1, 0, "f16 f32 f64", "(y == z ? x : 0) / (f32)sum((i64)(y == z), @)", NO_VALUE, 5},
    {"nanmin_backward", 3, 1, 0, "f32 f64", "(y == z ? x : 0) / (f32)sum((i64)(y == z), @)", NO_VALUE, 5},
    {"prod_backward", 3, 1, 0, "f32 f64",
     "y != 0 ? x * (z / y) : x * (sum((i64)(y == 0), @) == 1 ? prod(y == 0 ? 1 : y, @) : z)", NO_VALUE, 5},
    {"nansum_backward", 2, 1, 0, "f16 f32 f64", "y != y ? 0 : x", NO_VALUE, 1},
    {"ptp_backward", 2, 1, 0, "f32 f64",
     "(y == max(y, @) ? x : 0) / (f32)sum((i64)(y == max(y, @)), @) + (y == min(y, @) ? -x : 0) / (f32)sum((i64)(y == min(y, @)), @)", NO_VALUE, 1},
    {"softmax_backward", 2, 1, 0, "f16 bf16 f32 f64", "y * (x - sum(x * y, @))", NO_VALUE, 0},
    {"softmin_backward", 2, 1, 0, "f32", "y * (sum(x * y, @) - x)", NO_VALUE, 0},
    {"log_softmax_backward", 2, 1, 0, "f32 f64", "x - exp(y) * sum(x, @)", NO_VALUE, 0},
    {"logsumexp_backward", 3, 1, 0, "f16 f32 f64", "z == -INFINITY ? 0 : x * exp(y - z)", NO_VALUE, 5},
    {"var_backward", 2, 1, 0, "f32", "x * ((y - mean(y, @)) * (2 / ((f32)sum((i64)(y == y || y != y), @) - 0.5)))", 0.5, 1},
    {"var_backward", 2, 1, 0, "f64", "x * ((y - mean(y, @)) * (2 / ((f64)sum((i64)(y == y || y != y), @) - 0.5)))", 0.5, 1},
    {"vecdot_backward", 3, 2, 0, "f16 f32 f64", "x * z", NO_VALUE, 1},
    {"vecdot_backward", 3, 2, 1, "f32 f64", "x * y", NO_VALUE, 1},
    {"average_backward", 4, 2, 0, "f32 f64", "x * (z / sum(z, @))", NO_VALUE, 9},
    {"average_backward", 4, 2, 1, "f32 f64", "x * ((y - w) / sum(z, @))", NO_VALUE, 9},
    {"reduce_l1_backward", 2, 1, 0, "f32 f64", "y > 0 ? x : y < 0 ? -x : 0 * y", NO_VALUE, 1},
    {"reduce_l2_backward", 3, 1, 0, "f16 f32 f64", "z == 0 ? 0 : x * (y / z)", NO_VALUE, 5},
    {"vector_norm_backward", 3, 1, 0, "f64", "y == 0 || z == 0 ? 0 : x * (y / abs(z))", NO_VALUE, 5},
    {"rms_norm_backward", 2, 1, 0, "f32 f64",
     "(1 / sqrt(mean(y * y, @) + 0.25)) * (x - y * (1 / sqrt(mean(y * y, @) + 0.25)) * ((1 / sqrt(mean(y * y, @) + 0.25)) * mean(x * y, @)))", 0.25, 0},
    {"layer_norm_affine_backward", 3, 1, 0, "f32 f64",
     "(1 / sqrt(mean((y - mean(y, @)) * (y - mean(y, @)), @) + 0.25)) * (x * z - mean(x * z, @) - (y - mean(y, @)) * "
     "(1 / sqrt(mean((y - mean(y, @)) * (y - mean(y, @)), @) + 0.25)) * ((1 / sqrt(mean((y - mean(y, @)) * (y - mean(y, @)), @) + 0.25)) * "
     "mean(x * z * (y - mean(y, @)), @)))", 0.25, 0},
};

static ref_dtype dtype_named(const char *word) {
  ref_dtype d = 0;
  while (d < REF_N_DTYPES && strcmp(ref_dtype_name(d), word) != 0) d++;
  return d;
}

/* A permuted layout with gaps, or compact; the items are random. */
static void draw_operand(operand *o, ref_dtype d, int ndim, const int64_t *shape, rng *r) {
  int64_t strides[4], step = 1;
  const int first = (int)rng_below(r, 3), is_dense = rng_below(r, 2) == 0;
  for (int k = ndim - 1; k >= 0; k--) {
    const int at = (k + first) % ndim;
    strides[at] = step * (is_dense ? 1 : 1 + (int64_t)rng_below(r, 2)) * (is_dense || rng_below(r, 4) ? 1 : -1);
    step = (strides[at] < 0 ? -strides[at] : strides[at]) * shape[at];
  }
  operand_make(o, d, ndim, shape, strides, r);
}

static void axes_text(int ndim, int axes, char *text) {
  int n = 0, length = sprintf(text, "axis=(");
  for (int k = 0; k < ndim; k++)
    if (axes >> k & 1) length += sprintf(text + length, "%s%d", n++ ? ", " : "", k);
  sprintf(text + length, n == 1 ? ",)" : ")");
}

static void expand(const char *formula, int ndim, int axes, char *text) {
  for (; *formula; formula++) {
    if (*formula == '@') axes_text(ndim, axes, text);
    else text[0] = *formula, text[1] = 0;
    text += strlen(text);
  }
}

/* One row of the table in one dtype over random shapes and layouts. */
static void test_same(size_t row, ref_dtype d, quern_ctx *ctx, rng *r) {
  quern_op *op = op_named(ctx, same[row].op);
  const quern_op_info *info = quern_op_describe(op);
  const int is_reduced = info->n_params > 1 && strcmp(info->params[1].name, "keepdims") == 0;
  const int is_affine = strstr(same[row].op, "_affine") && !strstr(same[row].op, "_backward"); /* its weights are no arguments of reductions */
  group_begin("%s.%d is %s in %s", same[row].op, same[row].which, same[row].formula, ref_dtype_name(d));
  for (int round = 0; round < 12; round++) {
    const int ndim = 1 + (int)rng_below(r, 3), axes = 1 + (int)rng_below(r, (1u << ndim) - 1);
    int64_t shape[3], out_shape[3];
    char text[2000] = "";
    operand in[4], out[8], wanted;
    DLTensor *ins[4], *by_name[4], *outs[8], *wanted_out = &wanted.t;
    for (int k = 0; k < ndim; k++) shape[k] = 1 + (int64_t)rng_below(r, round % 4 == 3 ? 40 : 9);
    if (round % 6 == 5) shape[rng_below(r, (uint64_t)ndim)] = 300 + (int64_t)rng_below(r, 700);
    for (int k = 0; k < ndim; k++) out_shape[k] = is_reduced && axes >> k & 1 ? 1 : shape[k];
    expand(same[row].formula, ndim, axes, text);
    for (int k = 0; k < same[row].n_in; k++) {
      int64_t own[3];
      for (int i = 0; i < ndim; i++)
        own[i] = (k > 0 && is_affine && rng_below(r, 6) == 0) || (same[row].rows >> k & axes >> i & 1) ? 1 : shape[i];
      draw_operand(&in[k], d, ndim, own, r);
      ins[k] = &in[k].t;
    }
    const quern_scalar params[3] = {scalar_i(axes), is_reduced ? scalar_i(1) : scalar_f(same[row].param), scalar_f(same[row].param)};
    const quern_call call = {.size = sizeof call, .params = params, .n_params = 1 + is_reduced + (same[row].param != NO_VALUE)};
    quern_shape measured[8];
    for (int k = 0; k < 8; k++) measured[k].size = sizeof measured[k];
    if (quern_op_measure(op, same[row].n_in, ins, same[row].n_out, measured, &call)) bail("%s: %s", same[row].op, quern_last_error());
    for (int k = 0; k < same[row].n_out; k++) {
      draw_operand(&out[k], ref_dtype_of(measured[k].dtype), ndim, out_shape, r);
      outs[k] = &out[k].t;
    }
    operand_make(&wanted, out[same[row].which].d, ndim, out_shape, NULL, r);
    if (!is_reduced || measured[0].ndim != ndim) operand_fill(&wanted, r);
    group_count(1);
    quern_op *formula = *text == '!' ? op_named(ctx, text + 1) : op_from(ctx, text);
    if (quern_op_call(op, same[row].n_in, ins, same[row].n_out, outs, &call)) bail("%s: %s", same[row].op, quern_last_error());
    /* an expression drops the axes: its result is told as one without them */
    operand flat = wanted;
    int n = 0;
    for (int k = 0; k < ndim && is_reduced; k++)
      if (!(axes >> k & 1)) flat.shape[n++] = shape[k];
    flat.t.shape = is_reduced ? flat.shape : wanted.shape;
    flat.t.ndim = is_reduced ? n : ndim;
    flat.t.strides = NULL;
    wanted_out = &flat.t;
    if (*text == '!') wanted_out = &wanted.t; /* with keepdims */
    const quern_op_info *of = quern_op_describe(formula); /* it may read some of the inputs only */
    for (int k = 0; k < of->n_in; k++) by_name[k] = ins[*text == '!' ? k : (int)(strchr(names, *of->args[k].name) - names)];
    const quern_status status = quern_op_call(formula, of->n_in, by_name, 1, &wanted_out, *text == '!' ? &call : NULL);
    if (status) group_fail("%s: %s", text, quern_last_error());
    else if (!same_elements(&out[same[row].which], &wanted))
      group_fail("%s over axes %d of [%d ...], round %d: not the bits of %s", same[row].op, axes, (int)shape[0], round, text);
    quern_op_release(formula);
    for (int k = 0; k < same[row].n_in; k++) operand_free(&in[k]);
    for (int k = 0; k < same[row].n_out; k++) operand_free(&out[k]);
    operand_free(&wanted);
  }
  quern_op_release(op);
  group_end();
}

/* ---- Classes ----------------------------------------------------------------------------------------------------- */

/* x of [7, classes], or its transpose, t of the class of each row, some of which are none. */
static void test_classes(quern_ctx *ctx, ref_dtype d, rng *r) {
  enum { ROWS = 7 };
  quern_op *entropy = op_named(ctx, "cross_entropy"), *nll = op_named(ctx, "nll_loss"), *lse = op_named(ctx, "logsumexp");
  quern_op *text[2] = {op_from(ctx, "a = cross_entropy(x, t, axis=0); b = nll_loss(x, t, axis=0)"),
                       op_from(ctx, "a = cross_entropy(x, t, axis=1); b = nll_loss(x, t, axis=1)")};
  group_begin("classes of %s", ref_dtype_name(d));
  for (int round = 0; round < 24; round++) {
    const int64_t classes = round % 3 == 2 ? 1000 + (int64_t)rng_below(r, 500) : 1 + (int64_t)rng_below(r, 60);
    const int axis = round % 2;
    const int64_t shape[2] = {axis ? ROWS : classes, axis ? classes : ROWS}, t_shape[2] = {axis ? ROWS : 1, axis ? 1 : ROWS};
    const int64_t n = ROWS;
    const ref_dtype kinds[4] = {REF_I8, REF_I32, REF_I64, REF_U8};
    operand x, t, out[5];
    draw_operand(&x, d, 2, shape, r);
    operand_make(&t, kinds[round % 4], 2, t_shape, NULL, r);
    for (int k = 0; k < 5; k++) operand_make(&out[k], d, 1, &n, NULL, r);
    int64_t class_of[ROWS];
    for (int64_t j = 0; j < ROWS; j++) {
      const int64_t index[2] = {axis ? j : 0, axis ? 0 : j}, most = classes < 127 ? classes : 127;
      class_of[j] = (int64_t)rng_below(r, (uint64_t)most + 1) - (t.d == REF_U8 ? 0 : rng_below(r, 5) == 0);
      ref_put(t.d, ref_address(&t.t, index), (uint64_t)class_of[j] & (~(uint64_t)0 >> (64 - 8 * ref_dtype_size(t.d))));
    }
    DLTensor *ins[2] = {&x.t, &t.t}, *outs[5] = {&out[0].t, &out[1].t, &out[2].t, &out[3].t, &out[4].t};
    const quern_scalar axes = scalar_i(1 << axis);
    const quern_call call = {.size = sizeof call, .params = &axes, .n_params = 1};
    if (quern_op_call(entropy, 2, ins, 1, &outs[0], &call) || quern_op_call(nll, 2, ins, 1, &outs[1], &call) ||
        quern_op_call(lse, 1, ins, 1, &outs[2], &call) || quern_op_call(text[axis], 2, ins, 2, &outs[3], NULL))
      bail("%s", quern_last_error());
    for (int64_t j = 0; j < ROWS; j++) {
      const int64_t index[2] = {axis ? j : class_of[j], axis ? class_of[j] : j};
      const int is_there = class_of[j] >= 0 && class_of[j] < classes;
      uint64_t loss = ref_nan(d), likelihood = ref_nan(d);
      if (is_there && d == REF_F32) {
        float at, all;
        memcpy(&at, ref_address(&x.t, index), 4), memcpy(&all, ref_address(&out[2].t, &j), 4);
        const float a = all - (0 + at), b = -(0 + at);
        if (a == a) loss = 0, memcpy(&loss, &a, 4);
        if (b == b) likelihood = 0, memcpy(&likelihood, &b, 4);
      } else if (is_there) {
        double at, all;
        memcpy(&at, ref_address(&x.t, index), 8), memcpy(&all, ref_address(&out[2].t, &j), 8);
        const double a = all - (0 + at), b = -(0 + at);
        if (a == a) memcpy(&loss, &a, 8);
        if (b == b) memcpy(&likelihood, &b, 8);
      }
      group_count(1);
      const uint64_t got = ref_get(d, ref_address(&out[0].t, &j)), got_nll = ref_get(d, ref_address(&out[1].t, &j));
      if (got != loss || got_nll != likelihood)
        group_fail("class %" PRId64 " of %" PRId64 ": 0x%" PRIx64 " and 0x%" PRIx64 ", wanted 0x%" PRIx64 " and 0x%" PRIx64, class_of[j],
                   classes, got, got_nll, loss, likelihood);
      if (ref_get(d, ref_address(&out[3].t, &j)) != loss || ref_get(d, ref_address(&out[4].t, &j)) != likelihood)
        group_fail("class %" PRId64 " of %" PRId64 ": an expression gives other bits", class_of[j], classes);
    }
    operand_free(&x);
    operand_free(&t);
    for (int k = 0; k < 5; k++) operand_free(&out[k]);
  }
  group_end();
  for (int k = 0; k < 2; k++) quern_op_release(text[k]);
  quern_op_release(entropy);
  quern_op_release(nll);
  quern_op_release(lse);
}

/* ---- What is refused --------------------------------------------------------------------------------------------- */

static void test_refused(quern_ctx *ctx, rng *r) {
  const int64_t shape[2] = {4, 4}, n = 4;
  quern_op *op = op_named(ctx, "cross_entropy"), *expression = NULL;
  operand x, t, wrong, out;
  operand_make(&x, REF_F32, 2, shape, NULL, r);
  operand_make(&t, REF_I64, 1, &n, NULL, r);
  operand_make(&wrong, REF_F32, 1, &n, NULL, r);
  operand_make(&out, REF_F32, 1, &n, NULL, r);
  DLTensor *ins[2] = {&x.t, &t.t}, *outs[1] = {&out.t};
  const quern_scalar last = scalar_i(2), first = scalar_i(1);
  quern_call call = {.size = sizeof call, .params = &last, .n_params = 1};
  is_int(quern_op_call(op, 2, ins, 1, outs, &call), QUERN_E_SHAPE, "targets along the axis of classes");
  ok(strstr(quern_last_error(), "axis 1") && strstr(quern_last_error(), "(t)"), "  are named: %s", quern_last_error());
  call.params = &first;
  is_int(quern_op_call(op, 2, ins, 1, outs, &call), QUERN_OK, "over the other axis they are taken");
  ins[1] = &wrong.t;
  is_int(quern_op_call(op, 2, ins, 1, outs, &call), QUERN_E_DTYPE, "targets that are floats: %s", quern_last_error());
  if (quern_op_compile(ctx, "argmax(x) + 1", &expression)) bail("%s", quern_last_error());
  operand place[2];
  quern_op *argmax = op_named(ctx, "argmax");
  for (int k = 0; k < 2; k++) operand_make(&place[k], REF_I64, 0, NULL, NULL, r);
  outs[0] = &place[0].t;
  is_int(quern_op_call(argmax, 1, ins, 1, outs, NULL), QUERN_OK, "a place");
  outs[0] = &place[1].t;
  is_int(quern_op_call(expression, 1, ins, 1, outs, NULL), QUERN_OK, "  in an expression");
  int64_t places[2];
  for (int k = 0; k < 2; k++) memcpy(&places[k], place[k].t.data, 8), operand_free(&place[k]);
  ok(places[1] == places[0] + 1 && places[0] >= 0 && places[0] < 16, "  is the same: %d", (int)places[0]);
  quern_op_release(argmax);
  quern_op_release(expression);
  quern_op_release(op);
  operand_free(&x);
  operand_free(&t);
  operand_free(&wrong);
  operand_free(&out);
}

/* ---- Rows on several threads ---------------------------------------------------------------------------------------- */

/* Rows that are long, few of them or many, contiguous or beside each other: the same bits on one thread and on several. */
static void test_threads(rng *r) {
  static const char *const ops[] = {"softmax", "layer_norm", "log_softmax"};
  static const int64_t shapes[][2] = {{11, 5000}, {2, 70001}, {70, 2048}, {5000, 11}, {300, 260}, {1, 90000}};
  quern_ctx *ctx[2];
  ctx[0] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1});
  ctx[1] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 3});
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
    group_begin("%s: one thread and three", ops[i]);
    quern_op *op[2] = {op_named(ctx[0], ops[i]), op_named(ctx[1], ops[i])};
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
      for (int axis = 0; axis < 2; axis++) {
        operand x, out[2];
        const int64_t n = shapes[s][0] * shapes[s][1];
        const quern_scalar axes = scalar_i(1 << axis);
        const quern_call call = {.size = sizeof call, .params = &axes, .n_params = 1};
        operand_make(&x, REF_F32, 2, shapes[s], NULL, r);
        for (int64_t k = 0; k < n; k++) ((float *)x.t.data)[k] = (float)rng_unit(r);
        for (int k = 0; k < 2; k++) {
          operand_make(&out[k], REF_F32, 2, shapes[s], NULL, r);
          DLTensor *in = &x.t, *outs = &out[k].t;
          if (quern_op_call(op[k], 1, &in, 1, &outs, &call)) bail("%s", quern_last_error());
        }
        group_count(1);
        if (memcmp(out[0].t.data, out[1].t.data, (size_t)n * 4))
          group_fail("[%" PRId64 ", %" PRId64 "] along axis %d", shapes[s][0], shapes[s][1], axis);
        operand_free(&x);
        for (int k = 0; k < 2; k++) operand_free(&out[k]);
      }
    for (int k = 0; k < 2; k++) quern_op_release(op[k]);
    group_end();
  }
  for (int k = 0; k < 2; k++) quern_ctx_release(ctx[k]);
}

/* ---- Columns that lie beside each other ----------------------------------------------------------------------------- */

static void put_number(void *data, ref_dtype d, int64_t i, double x) {
  if (d == REF_F32)
    ((float *)data)[i] = (float)x;
  else
    ((double *)data)[i] = x;
}

/* Down the columns of matrices, also in place, an op gives what it does along the rows of the transposed matrices. */
static void test_across(quern_ctx *ctx, ref_dtype d, rng *r) {
  static const struct {
    const char *name;
    int n_in, is_reduced;
  } ops[] = {{"softmax", 1, 0}, {"log_softmax", 1, 0}, {"layer_norm", 1, 0}, {"rms_norm", 1, 0}, {"normalize", 1, 0}, {"softmax_backward", 2, 0}, {"vecdot", 2, 1}};
  static const int64_t shapes[][2] = {{3, 64}, {15, 130}, {16, 65}, {17, 300}, {256, 64}, {257, 129}, {1100, 70}, {9000, 64}};
  const size_t size = d == REF_F32 ? 4 : 8;
  for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
    quern_op *op = op_named(ctx, ops[o].name);
    group_begin("%s %s down columns and along rows", ops[o].name, ref_dtype_name(d));
    for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
      const int64_t rows = shapes[s][0], columns = shapes[s][1], turned[2] = {columns, rows}, *shape[2] = {shapes[s], turned};
      operand in[2][2], out[2];
      DLTensor *ins[2][2], *outs[2] = {&out[0].t, &out[1].t};
      for (int k = 0; k < 2; k++) {
        for (int way = 0; way < 2; way++) {
          operand_make(&in[way][k], d, 2, shape[way], NULL, r);
          ins[way][k] = &in[way][k].t;
        }
        for (int64_t i = 0; i < rows * columns; i++) {
          const double x = rng_below(r, 500) == 0 ? -INFINITY : rng_below(r, 40) ? 40 * rng_unit(r) : -100 * rng_unit(r);
          put_number(ins[0][k]->data, d, i, x);
          put_number(ins[1][k]->data, d, i % columns * rows + i / columns, x);
        }
      }
      for (int way = 0; way < 2; way++) {
        const quern_scalar axes = scalar_i(1 << way);
        const quern_call call = {.size = sizeof call, .params = &axes, .n_params = 1};
        operand_make(&out[way], d, ops[o].is_reduced ? 1 : 2, ops[o].is_reduced ? &columns : shape[way], NULL, r);
        if (quern_op_call(op, ops[o].n_in, ins[way], 1, &outs[way], &call)) bail("%s: %s", ops[o].name, quern_last_error());
        if (way == 0 && ops[o].n_in == 1 && quern_op_call(op, 1, ins[0], 1, ins[0], &call)) bail("%s: %s", ops[o].name, quern_last_error());
      }
      group_count(1);
      int64_t wrong = 0;
      for (int64_t i = 0; i < (ops[o].is_reduced ? 1 : rows) * columns; i++) {
        const int64_t other = ops[o].is_reduced ? i : i % columns * rows + i / columns;
        const char *down = (char *)outs[0]->data + (size_t)i * size, *along = (char *)outs[1]->data + (size_t)other * size;
        wrong += memcmp(down, along, size) || (ops[o].n_in == 1 && memcmp((char *)ins[0][0]->data + (size_t)i * size, along, size));
      }
      if (wrong) group_fail("[%" PRId64 ", %" PRId64 "]: %" PRId64 " elements differ", rows, columns, wrong);
      for (int way = 0; way < 2; way++) {
        operand_free(&out[way]);
        for (int k = 0; k < 2; k++) operand_free(&in[way][k]);
      }
    }
    group_end();
    quern_op_release(op);
  }
}

static void call_softmax(quern_op *op, DLTensor *in, DLTensor *out) {
  const quern_scalar axes = scalar_i(2);
  const quern_call call = {.size = sizeof call, .params = &axes, .n_params = 1};
  if (quern_op_call(op, 1, &in, 1, &out, &call)) bail("%s", quern_last_error());
}

/* Masked logits: behind a mask (its exp is 0 or too small for the sum) the elements of a row are what they are without what is masked;
 * wherever the row has blocks with and without masked elements, and elements with a subnormal exp among them; in place, too. */
static void test_masked(quern_ctx *ctx, ref_dtype d, rng *r) {
  static const double masks[] = {-INFINITY, -1e9, -1e30};
  const int is_f32 = d == REF_F32, size = is_f32 ? 4 : 8;
  quern_op *op = op_named(ctx, "softmax");
  group_begin("%s: softmax of masked rows", is_f32 ? "f32" : "f64");
  for (int round = 0; round < 200; round++) {
    const int64_t n = 1 + rng_below(r, round % 2 ? 2000 : 300), kept = 1 + rng_below(r, (uint64_t)n), shape[2] = {1, n}, part[2] = {1, kept};
    const double mask = masks[round % 3], low = is_f32 ? -90 : -730;
    const int64_t odd = round % 4 == 3 && kept < n ? kept + (int64_t)rng_below(r, (uint64_t)(n - kept)) : -1;
    operand x, out, alone, of_alone;
    operand_make(&x, d, 2, shape, NULL, r);
    operand_make(&out, d, 2, shape, NULL, r);
    operand_make(&alone, d, 2, part, NULL, r);
    operand_make(&of_alone, d, 2, part, NULL, r);
    for (int64_t k = 0; k < n; k++) {
      const double v = k == odd ? low : k < kept ? rng_unit(r) : mask;
      if (is_f32) ((float *)x.t.data)[k] = (float)v;
      else ((double *)x.t.data)[k] = v;
    }
    memcpy(alone.t.data, x.t.data, (size_t)(kept * size));
    call_softmax(op, &x.t, round % 5 == 4 ? &x.t : &out.t);
    call_softmax(op, &alone.t, &of_alone.t);
    const char *all = round % 5 == 4 ? x.t.data : out.t.data;
    int64_t wrong = 0;
    for (int64_t k = kept; k < n; k++) {
      const double v = is_f32 ? ((const float *)(const void *)all)[k] : ((const double *)(const void *)all)[k];
      wrong += k == odd ? !(v > 0 && v < 1e-30) : v != 0 || signbit(v);
    }
    group_count(1);
    if (wrong || memcmp(all, of_alone.t.data, (size_t)(kept * size))) group_fail("%" PRId64 " of %" PRId64 ", masked by %g", kept, n, mask);
    operand_free(&x), operand_free(&out), operand_free(&alone), operand_free(&of_alone);
  }
  quern_op_release(op);
  group_end();
}

int main(void) {
  rng r;
  setenv("QUERN_CACHE_DIR", "none", 1);
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  rng_seed(&r, 2440);
  for (size_t row = 0; row < sizeof same / sizeof *same; row++) {
    char word[16];
    int used;
    for (const char *at = same[row].dtypes; sscanf(at, " %15s%n", word, &used) == 1; at += used) test_same(row, dtype_named(word), ctx, &r);
  }
  test_classes(ctx, REF_F32, &r);
  test_classes(ctx, REF_F64, &r);
  test_refused(ctx, &r);
  test_threads(&r);
  test_across(ctx, REF_F32, &r);
  test_across(ctx, REF_F64, &r);
  test_masked(ctx, REF_F32, &r);
  test_masked(ctx, REF_F64, &r);
  quern_ctx_release(ctx);
  return done_testing();
}
