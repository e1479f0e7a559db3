/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads-full
 *
 * t249-scan-expressions: expressions with scans, before, between and behind element-wise parts and reductions of the same axis: bit for bit
 * the calls of the scans' own ops between expressions without scans; of any shapes, layouts and dtypes, interpreted and compiled, on 1 to 8
 * threads, planned; explained; what is refused, and how. */
#include "expressions.h"
#include "reductions.h"

enum { BY_HOST = MOST_THREADS + 1, BY_CLANG, BY_CC, N_WAYS, MOST_VALUES = 24 };
static quern_ctx *ways[N_WAYS]; /* NULL: none here */

/* An expression, A being its axis, and what is computed instead: lines "name = expression" and "name = @op flags argument"; flags: - or r, x. */
typedef struct composed {
  const char *text, *lines[9];
  int exact_dtypes; /* nothing is rounded between its parts whatever the dtype: also of dtypes that others compute for */
} composed;

static const composed cases[] = {
    {"y = cumulative_sum(x, axis=A)", {"y = @cumulative_sum - x"}, 1},
    {"y = cumulative_sum(x, axis=A, exclusive=1)", {"y = @cumulative_sum x x"}, 1},
    {"y = cumulative_prod(x, axis=A, reverse=1)", {"y = @cumulative_prod r x"}, 1},
    {"y = cumulative_max(x, axis=A, reverse=1, exclusive=1)", {"y = @cumulative_max rx x"}, 1},
    {"y = cumulative_min(x, axis=A); z = cumulative_min(x, axis=A, reverse=1)", {"y = @cumulative_min - x", "z = @cumulative_min r x"}, 1},
    {"y = cumulative_sum(exp(x), axis=A)", {"e = exp(x)", "y = @cumulative_sum - e"}, 0},
    {"y = logcumsumexp(x * w, axis=A) - x", {"p = x * w", "l = @logcumsumexp - p", "y = l - x"}, 0},
    {"y = cumulative_sum(x * w + 1, axis=A) * 2 + x; z = x < w ? y : w", {"p = x * w + 1", "s = @cumulative_sum - p", "y = s * 2 + x", "z = x < w ? y : w"}, 0},
    {"y = cumulative_max(cumulative_sum(x, axis=A) - w, axis=A)", {"s = @cumulative_sum - x", "d = s - w", "y = @cumulative_max - d"}, 0},
    {"y = cumulative_sum(x, axis=A, exclusive=1) / cumulative_prod(w, axis=A)", {"s = @cumulative_sum x x", "p = @cumulative_prod - w", "y = s / p"}, 0},
    {"y = cumulative_sum(x / sum(w, axis=A), axis=A)", {"q = x / sum(w, axis=A)", "y = @cumulative_sum - q"}, 0},
    {"y = x - max(cumulative_sum(x, axis=A), axis=A); z = sum(cumulative_sum(x, axis=A), axis=A)",
     {"s = @cumulative_sum - x", "y = x - max(s, axis=A)", "z = sum(s, axis=A)"}, 0},
    {"y = cumulative_sum(x - mean(cumulative_sum(w, axis=A), axis=A), axis=A, reverse=1) * w",
     {"c = @cumulative_sum - w", "d = x - mean(c, axis=A)", "r = @cumulative_sum r d", "y = r * w"}, 0},
    {"y = cumulative_sum(sigmoid(x) / sum(sigmoid(w) + x, axis=A), axis=A, reverse=1) * sigmoid(x * w) + cumulative_sum(sigmoid(x) + sigmoid(w), axis=A, reverse=1) - "
     "cumulative_max(x * w, axis=A, reverse=1)",
     {"t = sigmoid(w) + x", "q = sigmoid(x) / sum(t, axis=A)", "r = @cumulative_sum r q", "p = sigmoid(x) + sigmoid(w)", "c = @cumulative_sum r p",
      "m = x * w", "n = @cumulative_max r m",
      "y = r * sigmoid(x * w) + c - n"}, 0}, /* interpreted, in portions of a block */
    {"y = cumulative_sum(softmax(x, axis=A), axis=A)", {"p = softmax(x, axis=A)", "y = @cumulative_sum - p"}, 0},
    {"y = cumulative_sum(cumulative_sum(x, axis=A, reverse=1), axis=A, reverse=1)", {"s = @cumulative_sum r x", "y = @cumulative_sum r s"}, 0},
};
enum { N_CASES = sizeof cases / sizeof *cases };

/* ---- Composition ------------------------------------------------------------------------------------------------- */

typedef struct value {
  char name[16];
  ref_dtype d;
  operand o;
} value;

typedef struct values {
  int n;
  value list[MOST_VALUES];
} values;

static value *value_named(values *v, const char *name) {
  for (int k = 0; k < v->n; k++)
    if (strcmp(v->list[k].name, name) == 0) return &v->list[k];
  bail("no value %s", name);
  return NULL;
}

static ref_dtype dtype_of(const DLDataType *t) {
  for (int d = 0; d < REF_N_DTYPES; d++) {
    const DLDataType is = ref_dtype_dl((ref_dtype)d);
    if (is.code == t->code && is.bits == t->bits) return (ref_dtype)d;
  }
  bail("an unknown dtype");
  return REF_F32;
}

/* A text with the axis in the place of A. */
static void with_axis(char *to, size_t size, const char *text, int axis) {
  size_t n = 0;
  for (; *text && n + 8 < size; text++)
    if (*text == 'A') n += (size_t)snprintf(to + n, size - n, "%d", axis);
    else to[n++] = *text;
  to[n] = 0;
}

/* Calls an op of values by its arguments' names, or of one value; its result becomes a value. */
static void compute(values *v, quern_op *op, const char *argument, const char *name, const quern_call *call) {
  const quern_op_info *info = quern_op_describe(op);
  DLTensor *ins[4];
  quern_shape shape = {.size = sizeof shape};
  for (int32_t k = 0; k < info->n_in; k++) ins[k] = &value_named(v, argument ? argument : info->args[k].name)->o.t;
  if (quern_op_measure(op, info->n_in, ins, 1, &shape, call)) bail("%s: %s", info->name, quern_last_error());
  value *made = &v->list[v->n++];
  snprintf(made->name, sizeof made->name, "%s", name);
  made->d = dtype_of(&shape.dtype);
  operand_describe(&made->o, made->d, shape.ndim, shape.shape, NULL);
  operand_allocate(&made->o, 0, GUARD_NONE);
  DLTensor *out = &made->o.t;
  if (quern_op_call(op, info->n_in, ins, 1, &out, call)) bail("%s: %s", info->name, quern_last_error());
}

static void run_line(values *v, const char *line, int axis, int ndim) {
  char name[16], scan[32], flags[8], argument[16], text[300];
  if (sscanf(line, "%15s = @%31s %7s %15s", name, scan, flags, argument) == 4) {
    quern_op *op = op_named(ways[1], scan);
    named_params p;
    params_begin(&p);
    params_set(&p, quern_op_describe(op), "axes", whole((int64_t)1 << (axis < 0 ? axis + ndim : axis)));
    params_set(&p, quern_op_describe(op), "reverse", whole(strchr(flags, 'r') != NULL));
    params_set(&p, quern_op_describe(op), "exclusive", whole(strchr(flags, 'x') != NULL));
    compute(v, op, argument, name, &p.call);
    quern_op_release(op);
    return;
  }
  with_axis(text, sizeof text, strchr(line, '=') + 2, axis);
  sscanf(line, "%15s", name);
  quern_op *op = op_from(ways[1], text);
  compute(v, op, NULL, name, NULL);
  quern_op_release(op);
}

/* ---- Cases ------------------------------------------------------------------------------------------------------- */

static int same_bits(const value *wanted, const operand *got) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&got->t) == 0) return 1;
  do
    if (ref_get(wanted->d, ref_address(&wanted->o.t, index)) != ref_get(wanted->d, ref_address(&got->t, index))) return 0;
  while (ref_next_index(got->t.ndim, got->t.shape, index));
  return 1;
}

static void put_tame(operand *o, rng *r) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&o->t) == 0) return;
  do ref_put(o->d, ref_address(&o->t, index), ref_from_double(o->d, ref_dtype_kind(o->d) == REF_KIND_FLOAT ? 2 * rng_unit(r) - 0.9 : (double)rng_below(r, 9)));
  while (ref_next_index(o->t.ndim, o->t.shape, index));
}

static void run_case(const composed *c, ref_dtype d, int ndim, const int64_t *shape, int axis, int way, int is_planned, rng *r) {
  char text[400];
  values v = {.n = 0};
  operand in[2], out[2];
  with_axis(text, sizeof text, c->text, axis);
  for (int k = 0; k < 2; k++) {
    value *plain = &v.list[v.n++];
    snprintf(plain->name, sizeof plain->name, "%s", k ? "w" : "x");
    plain->d = d;
    operand_lay_out(&in[k], d, ndim, shape, 0, r);
    if (rng_below(r, 4)) put_tame(&in[k], r);
    else operand_fill(&in[k], r);
    operand_describe(&plain->o, d, ndim, shape, NULL);
    operand_allocate(&plain->o, 0, GUARD_NONE);
    int64_t index[QUERN_MAX_NDIM + 1] = {0};
    if (ref_n_elements(&in[k].t))
      do ref_put(d, ref_address(&plain->o.t, index), ref_get(d, ref_address(&in[k].t, index)));
      while (ref_next_index(ndim, shape, index));
  }
  for (int k = 0; c->lines[k]; k++) run_line(&v, c->lines[k], axis, ndim);
  quern_op *op = op_from(ways[way], text);
  const quern_op_info *info = quern_op_describe(op);
  DLTensor *ins[2], *outs[2];
  for (int32_t k = 0; k < info->n_in; k++) ins[k] = &in[info->args[k].name[0] == 'w'].t;
  for (int32_t k = 0; k < info->n_out; k++) {
    const value *wanted = value_named(&v, info->args[info->n_in + k].name);
    operand_lay_out(&out[k], wanted->d, wanted->o.t.ndim, wanted->o.t.shape, 1, r);
    outs[k] = &out[k].t;
  }
  quern_status status;
  if (is_planned) {
    quern_plan *plan = NULL;
    void *from[2], *to[2];
    for (int32_t k = 0; k < info->n_in; k++) from[k] = (char *)ins[k]->data + ins[k]->byte_offset;
    for (int32_t k = 0; k < info->n_out; k++) to[k] = (char *)outs[k]->data + outs[k]->byte_offset;
    status = quern_op_prepare(op, info->n_in, ins, info->n_out, outs, NULL, &plan);
    if (!status) status = quern_plan_run(plan, from, to, NULL);
    quern_plan_release(plan);
  } else {
    status = quern_op_call(op, info->n_in, ins, info->n_out, outs, NULL);
  }
  group_count(1);
  for (int32_t k = 0; k < info->n_out; k++)
    if (status || !same_bits(value_named(&v, info->args[info->n_in + k].name), &out[k]))
      group_fail("%s of %s [%lld, %lld, %lld] of %d, way %d%s: output %s: %s", text, ref_dtype_name(d), (long long)shape[0],
                 (long long)(ndim > 1 ? shape[1] : 0), (long long)(ndim > 2 ? shape[2] : 0), ndim, way, is_planned ? ", planned" : "",
                 info->args[info->n_in + k].name, status ? quern_last_error() : "other bits");
  for (int32_t k = 0; k < info->n_out; k++) operand_free(&out[k]);
  for (int k = 0; k < v.n; k++) operand_free(&v.list[k].o);
  operand_free(&in[0]);
  operand_free(&in[1]);
  quern_op_release(op);
}

static void test_same(const composed *c) {
  static const int64_t extents[] = {0, 1, 2, 5, 16, 17, 64, 255, 256, 257, 300, 1000, 3000};
  rng r;
  rng_seed(&r, 2490 + (unsigned)(c - cases));
  quern_op *op = NULL;
  char text[300];
  with_axis(text, sizeof text, c->text, 0);
  const quern_status status = quern_op_compile(ways[1], text, &op);
  quern_op_release(op);
  if (is_subset() && status == QUERN_E_NOTFOUND) {
    skip(1, "this build has some ops only: %.*s", (int)strcspn(quern_last_error(), "\n"), quern_last_error());
    return;
  }
  group_begin("%s", c->text);
  for (int i = 0; i < 60; i++) {
    int64_t shape[3] = {1, 1, 1}, n = 1;
    const int ndim = 1 + (int)rng_below(&r, 3), axis = (int)rng_below(&r, (uint64_t)ndim);
    for (int k = 0; k < ndim; k++) {
      shape[k] = extents[k == axis ? rng_below(&r, 13) : 1 + rng_below(&r, 5)];
      if (n * shape[k] > 20000) shape[k] = 2;
      n *= shape[k];
    }
    if (i % 20 == 7 && ndim == 1) shape[0] = 65530 + (int64_t)rng_below(&r, 9000);
    const int is_empty = n == 0 && strstr(c->text, "max(cumulative");
    ref_dtype d = rng_below(&r, 2) ? REF_F32 : REF_F64;
    if (c->exact_dtypes && rng_below(&r, 2)) do d = (ref_dtype)rng_below(&r, REF_N_DTYPES); while (d == REF_BOOL);
    int way = i % 4 == 3 && ways[BY_CLANG] ? BY_CLANG : i % 15 == 6 && ways[BY_CC] ? BY_CC : 1 + (int)rng_below(&r, BY_HOST);
    if (is_empty) continue;
    run_case(c, d, ndim, shape, rng_below(&r, 2) ? axis : axis - ndim, way, (int)rng_below(&r, 4) == 0, &r);
  }
  group_end();
}

/* A scan of a spec that is loaded at run time. */
static void test_spec(void) {
  static const composed c = {"y = acme.grow(x * w, axis=A, exclusive=1) + x", {"p = x * w", "g = @acme.grow x p", "y = g + x"}, 0};
  static const char spec[] = "format(1)\nscan \"acme.grow\" { doc = \"x\", dtypes = floating, combine = \"a + b + a * b\", initial = 0 }\n";
  static const int64_t shapes[][3] = {{3, 40, 1}, {2, 3000, 1}, {700, 5, 1}};
  rng r;
  rng_seed(&r, 2487);
  group_begin("a scan of a spec");
  for (int k = 0; k < 3; k++) {
    const int way = k == 0 ? 1 : k == 1 ? 3 : BY_CLANG;
    if (!ways[way]) continue;
    if (load_spec(ways[way], "acme.lua", spec)) bail("%s", quern_last_error());
    for (int i = 0; i < 3; i++) run_case(&c, i ? REF_F64 : REF_F32, 2, shapes[i], i == 2 ? 0 : 1, way, i == 1, &r);
  }
  group_end();
}

/* ---- Refused ------------------------------------------------------------------------------------------------------ */

static void test_refused(void) {
  static const struct {
    const char *text;
    quern_status status;
    const char *says;
  } wrong[] = {
      {"cumulative_sum(x, axis=0, keepdims=1)", QUERN_E_SYNTAX, "expected axis, reverse or exclusive"},
      {"cumulative_sum(x, include_initial=1)", QUERN_E_UNSUPPORTED, "by itself"},
      {"cumulative_sum(x, 1)", QUERN_E_SYNTAX, "takes 1 argument"},
      {"cumulative_sum(x, reverse=2)", QUERN_E_SYNTAX, "0 or 1"},
      {"cummax.values(x, axis=0)", QUERN_E_UNSUPPORTED, "by itself"},
      {"cumulative_sum_backward(x, axis=0)", QUERN_E_SYNTAX, "by itself"},
      {"cumulative_sum(x)", QUERN_E_ARGUMENT, "one axis"},
      {"cumulative_sum(x, axis=2)", QUERN_E_ARGUMENT, "axis 2"},
      {"cumulative_sum(x, axis=0) + cumulative_sum(x, axis=1)", QUERN_E_UNSUPPORTED, "first r = cumulative_sum(..., axis=0)"},
      {"cumulative_sum(x / sum(x, axis=1), axis=0)", QUERN_E_UNSUPPORTED, "first r = sum(..., axis=1, keepdims=1)"},
      {"cumulative_sum(x, axis=0) - cumulative_sum(x, axis=0, reverse=1)", QUERN_E_UNSUPPORTED, "first r = "},
      {"sum(cumulative_sum(x, axis=0, reverse=1), axis=0)", QUERN_E_UNSUPPORTED, "first r = "},
      {"cumulative_sum(cumulative_sum(x, axis=0), axis=0, reverse=1)", QUERN_E_UNSUPPORTED, "first r = "},
      {"cumulative_sum(sum(x, axis=0), axis=0)", QUERN_E_UNSUPPORTED, "one element a row"},
#define SCAN_OF(k) "cumulative_sum(x + " #k ", axis=0)"
      {SCAN_OF(1) "+" SCAN_OF(2) "+" SCAN_OF(3) "+" SCAN_OF(4) "+" SCAN_OF(5) "+" SCAN_OF(6) "+" SCAN_OF(7) "+" SCAN_OF(8) "+" SCAN_OF(9),
       QUERN_E_LIMIT, "more than 8 scans: write two expressions"},
      {"grad(cumulative_sum(x, axis=0), x)", QUERN_E_DTYPE, "call cumulative_sum_backward"},
  };
  rng r;
  rng_seed(&r, 2489);
  const int64_t shape[2] = {6, 7};
  operand x, y;
  operand_make(&x, REF_F32, 2, shape, NULL, &r);
  operand_make(&y, REF_F32, 2, shape, NULL, &r);
  for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
    quern_op *op = NULL;
    DLTensor *ins = &x.t, *outs = &y.t;
    quern_status status = quern_op_compile(ways[1], wrong[k].text, &op);
    if (!status) status = quern_op_call(op, 1, &ins, 1, &outs, NULL);
    ok(status == wrong[k].status && strstr(quern_last_error(), wrong[k].says), "%s: %s", wrong[k].text, quern_last_error());
    quern_op_release(op);
  }
  operand_free(&x);
  operand_free(&y);
}

/* An output that is stored before a scan from the end has read the input cannot take the input's place; the one behind it can. */
static void test_in_place(void) {
  int64_t n = 5;
  float x[5] = {1, 2, 3, 4, 5}, other[5] = {0};
  DLTensor t[2] = {{.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n}};
  t[1] = t[0];
  t[1].data = other;
  DLTensor *in = &t[0], *over[2] = {&t[0], &t[1]}, *behind[2] = {&t[1], &t[0]};
  quern_op *op = op_from(ways[1], "y = x * 2; z = cumulative_sum(x * 3, axis=0, reverse=1)");
  is_int(quern_op_call(op, 1, &in, 2, over, NULL), QUERN_E_OVERLAP, "before a scan from the end: %s", quern_last_error());
  ok(x[0] == 1 && other[4] == 0, "  nothing is written");
  is_int(quern_op_call(op, 1, &in, 2, behind, NULL), QUERN_OK, "the scan itself: %s", quern_last_error());
  ok(other[0] == 2 && other[4] == 10 && x[4] == 15 && x[0] == 45, "  right");
  quern_op_release(op);
}

static void test_explained(void) {
  rng r;
  rng_seed(&r, 2488);
  const int64_t shape[2] = {3, 2000};
  char text[4000];
  operand x, y;
  operand_make(&x, REF_F32, 2, shape, NULL, &r);
  operand_make(&y, REF_F32, 2, shape, NULL, &r);
  quern_op *op = op_from(ways[1], "cumulative_sum(exp(x), axis=-1, exclusive=1)");
  DLTensor *ins = &x.t, *outs = &y.t;
  is_int(quern_op_explain(op, 1, &ins, 1, &outs, NULL, text, sizeof text), QUERN_OK, "explained");
  ok(strstr(text, "passes: 1\n") && strstr(text, "scans: cumulative_sum f32, exclusive\n") && strstr(text, "tier: interpreter\n"), "  with its scans");
  quern_op_release(op);
  operand_free(&x);
  operand_free(&y);
}

int main(void) {
  forget_settings();
  for (int k = 1; k <= MOST_THREADS; k++) ways[k] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = k});
  ways[BY_HOST] = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 7, .parallel_for = backwards_for});
  if (compiles_with(NULL, "clang")) ways[BY_CLANG] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2});
  if (compiles_with("cc", "cc")) ways[BY_CC] = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 2, .cc = "cc"});
  for (int k = 0; k < N_CASES; k++) test_same(&cases[k]);
  test_spec();
  test_refused();
  test_in_place();
  test_explained();
  for (int k = 1; k < N_WAYS; k++) quern_ctx_release(ways[k]);
  return done_testing();
}
