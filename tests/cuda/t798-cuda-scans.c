/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t798-cuda-scans: every op that scans on CUDA tensors, also those that find places, its derivative, and those of a spec at run time, with and without states, along any
 * axis, from either end, shifted or not, called or planned, in place, with and without a workspace, beside which nothing is written: the bytes that the CPU gives, those around the outputs included, and the
 * same refusals. Without a GPU, by the fake driver, one dtype of each op and f32 of a third of them, others each day; with QUERN_TEST_GPU=1 all, and large
 * ones. QUERN_TEST_SHARD=k/n takes each n-th op and dtype. */
#include "cuda/on_device.h"
#include "cuda/row_cases.h"

static const char *const names[] = {"cumulative_sum", "cumulative_prod", "logcumsumexp", "cumulative_max", "cumulative_min", "cummax", "cummin"};

static int64_t n_cut; /* calls that a workspace helped */

/* The first output of a call in place is its first input. A derivative's inputs are grad, and of the scan's input and outputs what it reads. */
typedef struct scan_case {
  quern_op *op;
  operand in[3], out[4]; /* the second output: the places of an op that finds */
  mirror on_in[3], on_out[4];
  int64_t axis;
  int n_in, n_out, include_initial, exclusive, reverse, is_in_place;
} scan_case;

static quern_status call_there(scan_case *c, const quern_call *call, int is_planned) {
  DLTensor *in[3] = {&c->on_in[0].t, &c->on_in[1].t, &c->on_in[2].t}, *out[4] = {c->is_in_place ? in[0] : &c->on_out[0].t, &c->on_out[1].t, &c->on_out[2].t, &c->on_out[3].t};
  if (!is_planned) return quern_op_call(c->op, c->n_in, in, c->n_out, out, call);
  quern_plan *plan = NULL;
  void *x = (char *)in[0]->data + in[0]->byte_offset, *y[4] = {NULL};
  for (int k = 0; k < c->n_out; k++) y[k] = (char *)out[k]->data + out[k]->byte_offset;
  quern_status status = quern_op_prepare(c->op, 1, in, c->n_out, out, call, &plan);
  if (!status) status = quern_plan_run(plan, &x, y, call);
  quern_plan_release(plan);
  return status;
}

static void report(const scan_case *c, const char *what) {
  char text[7000];
  const quern_op_info *info = quern_op_describe(c->op);
  int n = snprintf(text, sizeof text, "%s, axis %" PRId64 "%s%s%s%s: %s; seed 0x%" PRIx64 "\n", info->name, c->axis,
                   c->include_initial ? ", include_initial" : "", c->exclusive ? ", exclusive" : "", c->reverse ? ", reverse" : "",
                   c->is_in_place ? ", in place" : "", what, test_seed());
  for (int k = 0; k < c->n_in; k++) n += text_operand(text + n, 1200, info->args[k].name, &c->in[k]);
  for (int k = c->is_in_place; k < c->n_out; k++) n += text_operand(text + n, 1200, "out", &c->out[k]);
  group_fail("%s", text);
}

static int scan_params(named_params *p, const quern_op_info *info, const scan_case *c) {
  params_begin(p);
  return params_set(p, info, "axes", whole((int64_t)1 << c->axis)) && params_set(p, info, "include_initial", whole(c->include_initial)) &&
         params_set(p, info, "exclusive", whole(c->exclusive)) && params_set(p, info, "reverse", whole(c->reverse));
}

static void run_case(scan_case *c, rng *r) {
  char what[700] = "", why[300] = "";
  const quern_op_info *info = quern_op_describe(c->op);
  named_params p;
  size_t bytes = 0;
  workspace w = {0};
  DLTensor *in[3], *there_in[3], *out[4], *there_out[4];
  group_count(1);
  if (!scan_params(&p, info, c)) bail("%s has other parameters", info->name);
  for (int k = 0; k < c->n_in; k++) {
    mirror_make(&c->on_in[k], &c->in[k], 0);
    in[k] = &c->in[k].t, there_in[k] = &c->on_in[k].t;
  }
  for (int k = 0; k < c->n_out; k++) {
    const int is_same = k == 0 && c->is_in_place;
    if (!is_same) mirror_make(&c->on_out[k], &c->out[k], 0);
    out[k] = is_same ? in[0] : &c->out[k].t, there_out[k] = is_same ? there_in[0] : &c->on_out[k].t;
  }
  const quern_status wanted = quern_op_call(c->op, c->n_in, in, c->n_out, out, &p.call);
  if (wanted) snprintf(why, sizeof why, "%s", quern_last_error());
  quern_call call = p.call;
  if (quern_op_workspace(c->op, c->n_in, there_in, c->n_out, there_out, &call, &bytes) == 0 && bytes && rng_below(r, 4)) {
    const int offset = (int)rng_below(r, 2) * 8;
    w = workspace_make(bytes + (size_t)offset - (rng_below(r, 6) == 0), offset, &call); /* one byte too few: without */
    n_cut++;
  }
  const int is_planned = rng_below(r, 2) && c->n_in == 1 && !strstr(info->name, "_backward");
  const quern_status got = call_there(c, &call, is_planned);
  if (got != wanted || (got && strcmp(why, quern_last_error())))
    snprintf(what, sizeof what, "%s, %s; on the CPU %s, %s", status_name(got), got ? quern_last_error() : "", status_name(wanted), why);
  for (int k = 0; k < c->n_in && !*what; k++) /* of a call in place, the first is the result */
    if (!mirror_same(&c->on_in[k], what, sizeof what) && !*what) snprintf(what, sizeof what, "input %d: other bytes", k);
  for (int k = c->is_in_place; k < c->n_out && !*what; k++)
    if (!mirror_same(&c->on_out[k], what, sizeof what) && !*what) snprintf(what, sizeof what, "output %d: other bytes", k);
  if (w.allocated && !workspace_is_kept(&w)) snprintf(what, sizeof what, "something beside the workspace was written");
  device_free(w.allocated);
  if (*what) report(c, what);
  for (int k = 0; k < c->n_in; k++) mirror_free(&c->on_in[k]);
  for (int k = c->is_in_place; k < c->n_out; k++) mirror_free(&c->on_out[k]);
}

static void free_operands(scan_case *c) {
  for (int k = 0; k < c->n_in; k++) operand_free(&c->in[k]);
  for (int k = c->is_in_place; k < c->n_out; k++) operand_free(&c->out[k]);
}

/* Whether an output may have its memory: no element is repeated. */
static int may_be_result(const operand *o) {
  int may = 1;
  for (int k = 0; k < o->t.ndim; k++) may &= o->t.strides[k] != 0 || o->t.shape[k] <= 1;
  return may;
}

/* The derivative of a scan, after the scan's own case. */
static void run_backward(quern_op *back, scan_case *of, rng *r) {
  const quern_op_info *info = quern_op_describe(back);
  const operand *const y = &of->out[0];
  scan_case c = *of;
  const ref_dtype d = of->in[0].d;
  c.op = back, c.n_in = info->n_in, c.n_out = 1;
  row_layout(&c.in[0], rng_below(r, 6) ? d : REF_F32, y->t.ndim, y->t.shape, 0, r);
  row_fill(&c.in[0], r);
  for (int k = 1; k < c.n_in; k++) c.in[k] = strcmp(info->args[k].name, "x") == 0 ? of->in[0] : of->out[of->n_out - 1];
  c.is_in_place = !of->include_initial && !of->exclusive && c.in[0].d == d && rng_below(r, 4) == 0 && may_be_result(&c.in[0]);
  if (!c.is_in_place) {
    quern_shape measured = {.size = sizeof measured};
    DLTensor *in[3] = {&c.in[0].t, &c.in[1].t, &c.in[2].t};
    named_params p;
    scan_params(&p, info, &c);
    if (quern_op_measure(back, c.n_in, in, 1, &measured, &p.call)) bail("%s: %s", info->name, quern_last_error());
    row_layout(&c.out[0], rng_below(r, 6) ? ref_dtype_of(measured.dtype) : REF_F64, measured.ndim, measured.shape, 1, r);
    operand_fill(&c.out[0], r);
  }
  run_case(&c, r);
  operand_free(&c.in[0]);
  if (!c.is_in_place) operand_free(&c.out[0]);
}

/* along: not 0: the elements of the axis, of a few rows. back: the op's derivative, or NULL */
static void draw_case(quern_op *op, quern_op *back, ref_dtype d, int64_t most, int64_t along, rng *r) {
  scan_case c = {.op = op, .n_in = 1, .reverse = (int)rng_below(r, 2)};
  int64_t shape[QUERN_MAX_NDIM];
  int ndim;
  row_shape(r, most, shape, &ndim);
  if (ndim == 0) shape[0] = 1 + (int64_t)rng_below(r, 3), ndim = 1;
  c.axis = (int64_t)rng_below(r, (uint64_t)ndim);
  if (along) {
    ndim = 2, c.axis = (int64_t)rng_below(r, 2);
    shape[c.axis] = along, shape[1 - c.axis] = 1 + (int64_t)rng_below(r, 3);
  }
  for (int64_t n_rows = 1, k = 0; k < ndim && !is_on_gpu(); k++) { /* the fibers of a block cost a millisecond */
    if (k == c.axis) continue;
    if (n_rows * shape[k] > 150) shape[k] = 1;
    n_rows *= shape[k];
  }
  const uint64_t shift = rng_below(r, 4);
  c.include_initial = shift == 1, c.exclusive = shift == 2;
  quern_shape measured[4] = {{.size = sizeof measured[0]}, {.size = sizeof measured[0]}, {.size = sizeof measured[0]}, {.size = sizeof measured[0]}};
  row_layout(&c.in[0], d, ndim, shape, 0, r);
  row_fill(&c.in[0], r);
  const quern_op_info *info = quern_op_describe(op);
  named_params p;
  DLTensor *in = &c.in[0].t;
  scan_params(&p, info, &c);
  c.n_out = info->n_out;
  if (quern_op_measure(op, 1, &in, c.n_out, measured, &p.call)) bail("%s: %s", info->name, quern_last_error());
  c.is_in_place = shift == 0 && !back && ref_dtype_of(measured[0].dtype) == d && rng_below(r, 4) == 0 && may_be_result(&c.in[0]);
  for (int k = c.is_in_place; k < c.n_out; k++) {
    const ref_dtype result = ref_dtype_of(measured[k].dtype);
    row_layout(&c.out[k], ref_dtype_kind(result) == REF_KIND_FLOAT && !back && rng_below(r, 6) == 0 ? REF_F64 : result, ndim, measured[k].shape, 1, r);
    operand_fill(&c.out[k], r);
  }
  run_case(&c, r);
  if (back) run_backward(back, &c, r);
  free_operands(&c);
}

/* Draws the cases of an op and a dtype. */
static void draw_cases(quern_ctx *ctx, quern_op *op, int number, ref_dtype d) {
  char name[80];
  quern_op *back = NULL;
  rng r;
  rng_seed(&r, 79800 + 100 * (uint64_t)number + (uint64_t)d);
  snprintf(name, sizeof name, "%s_backward", quern_op_describe(op)->name);
  if (ref_dtype_kind(d) == REF_KIND_FLOAT && quern_op_find(ctx, name, &back)) back = NULL;
  for (int k = 0; k < (is_on_gpu() ? 200 : 30); k++) draw_case(op, k % (is_on_gpu() ? 2 : 3) == 1 ? back : NULL, d, is_on_gpu() && k % 10 == 0 ? 3000000 : 9500, 0, &r);
  for (int k = 0; k < (is_on_gpu() ? 20 : 3); k++) draw_case(op, k % (is_on_gpu() ? 2 : 3) == 1 ? back : NULL, d, 9500, is_on_gpu() && k > 4 ? 3000000 : 17000 + k * 60000, &r);
  quern_op_release(back);
}

/* Scans of a spec that is loaded at run time: a combine alone; states of one part and of several, several outputs, places in `lift` and
 * `finish`; a derivative that reads what is before, and one that has neither `lift` nor `finish`. */
static void test_spec(void) {
  static const char spec[] =
      "scan \"acme.length\" { doc = \"The length up to here.\", dtypes = floating,\n"
      "  combine = \"sqrt(a * a + b * b)\", initial = 0 }\n"
      "adjoint \"acme.length_backward\" { doc = \"Sums.\", of = \"acme.length\", inputs = \"grad, x\", dtypes = floating, combine = \"a + b\" }\n"
      "scan \"acme.first_max\" { doc = \"The largest so far, and its place.\", dtypes = numeric, outputs = \"values, i64 indices\",\n"
      "  initial = { values = -INFINITY, indices = -1 }, state = \"T v, i64 i\", lift = \"v = x; i = index;\",\n"
      "  combine = \"take = b.v > a.v; v = take ? b.v : a.v; i = take ? b.i : a.i;\", finish = \"values = a.v; indices = a.i;\" }\n"
      "scan \"acme.moments\" { doc = \"Four sums.\", dtypes = floating, accumulate = \"wide\", outputs = \"mean, f64 weighted, i32 above, i64 places\",\n"
      "  initial = { mean = NAN, weighted = 0.5, above = -3, places = 7 }, state = \"T s, f64 w, i64 k, i32 n\",\n"
      "  lift = \"s = x; w = (f64)x * (f64)index; k = index; n = (i32)(x > 0);\",\n"
      "  combine = \"s = a.s + b.s; w = a.w + b.w; k = a.k + b.k; n = a.n + b.n;\",\n"
      "  finish = \"mean = a.s / (T)(index + 1); weighted = a.w; above = a.n; places = a.k + (signbit(x) ? index : 0);\" }\n"
      "scan \"acme.norm\" { doc = \"Norms.\", dtypes = floating, lift = \"x * x\", combine = \"a + b\", finish = \"sqrt(a)\", initial = 0.75 }\n"
      "adjoint \"acme.norm_backward\" { doc = \"Odd sums.\", of = \"acme.norm\", inputs = \"grad, x\", reads = \"out\", before = \"out\",\n"
      "  dtypes = floating, lift = \"grad * (T)(index + 1) - out\", combine = \"a + b\", finish = \"x * a + out\" }\n";
  static const struct {
    const char *name;
    ref_dtype d[2];
  } ops[] = {{"acme.length", {REF_F32, REF_F16}}, {"acme.first_max", {REF_F32, REF_I16}}, {"acme.moments", {REF_F32, REF_BF16}}, {"acme.norm", {REF_F32, REF_F64}}};
  const int part = is_on_gpu() ? -1 : test_part(2); /* each op in one of its dtypes a day */
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1});
  if (quern_spec_load_text(ctx, "scans.lua", spec, sizeof spec - 1)) bail("%s", quern_last_error());
  for (int i = 0; i < (int)(sizeof ops / sizeof *ops); i++) {
    quern_op *op;
    if (quern_op_find(ctx, ops[i].name, &op)) bail("%s", quern_last_error());
    group_begin("%s of a spec on CUDA tensors: the bytes of the CPU", ops[i].name);
    for (int k = 0; k < 2; k++)
      if (part < 0 || (i + k) % 2 == part) draw_cases(ctx, op, 90 + 2 * i + k, ops[i].d[k]);
    group_end();
    quern_op_release(op);
  }
  quern_ctx_release(ctx);
}

static int count_words(const char *list) {
  int n = 1;
  for (; *list; list++) n += *list == ' ';
  return n;
}

int main(void) {
  const char *text = getenv("QUERN_TEST_SHARD");
  int64_t shard = 0, n_shards = 1, number = 0;
  if (text && (sscanf(text, "%" SCNd64 "/%" SCNd64, &shard, &n_shards) != 2 || n_shards < 1)) bail("QUERN_TEST_SHARD=%s", text);
  device_begin();
  const int day = is_on_gpu() ? -1 : test_part(REF_N_DTYPES);
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
    quern_op *op;
    if (quern_op_find(NULL, names[i], &op)) continue; /* the sanitised builds have some ops */
    const char *dtypes = quern_op_describe(op)->args[0].dtypes;
    group_begin("%s on CUDA tensors: the bytes of the CPU", names[i]);
    for (int d = 0, n_taken = 0; d < REF_N_DTYPES; d++) {
      char word[16], list[200];
      snprintf(word, sizeof word, " %s ", ref_dtype_name((ref_dtype)d));
      snprintf(list, sizeof list, " %s ", dtypes);
      if (!strstr(list, word)) continue;
      const int turn = n_taken++; /* f32 every third day, and one of all */
      if (day >= 0 && !(d == REF_F32 && i % 3 == test_part(3)) && (i + day) % count_words(dtypes) != turn) continue;
      if (is_on_gpu() && number++ % n_shards != shard) continue;
      draw_cases(NULL, op, i, (ref_dtype)d);
    }
    group_end();
    quern_op_release(op);
  }
  if (shard == 0) test_spec();
  ok(n_cut > 0 || shard > 0, "workspaces helped %" PRId64 " calls", n_cut);
  return done_testing();
}
