/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t797-cuda-row-expressions: expressions with reductions and scans in them on CUDA tensors, over any axes, with outputs of rows and of elements,
 * called or planned, with and without a workspace, and ops of a spec at run time: one kernel each, and the bytes that the interpreter gives on the CPU, those around the
 * outputs included; what is refused. Without a GPU, by the fake driver, a third of them each day; with QUERN_TEST_GPU=1 all, and large
 * ones. QUERN_TEST_SHARD=k/n takes each n-th expression. */
#include "cuda/on_device.h"
#include "cuda/row_cases.h"
#include "expressions.h"

enum { MOST_IN = 3, MOST_OUT = 2 };

/* @ is replaced by the axes. x has all elements; y and z may have 1 along some dimensions, but not along the axes where they alone are
 * reduced. */
static const char *const texts[] = {
    "s = sum(x * y@)",
    "s = sum(exp(x - max(x@))@)",
    "v = softmax(x@) * y + z",
    "s = mean(x@); v = x - s",
    "param p; v = x / sqrt(mean(x * x@) + (f32)p)",
    "s = sum(x * x > 1 ? x : 0@) * 2; n = count_nonzero(x > 1@)",
    "param p; s = sum(exp(x)@) + exp((f32)p); v = x * (f32)p",
    "d = x - mean(x@); v = d / sqrt(mean(d * d@) + 1e-5) * y + z",
    "s = logsumexp(x@) - sum(x * y@)",
    "m = max(x@) - min(x@); v = x > m ? m : x",
    "i = argmax(x * x@); m = max(abs(x)@)",
    "s = any(x > 2@); t = all(x < y@)",
    "v = x * (prod(x@) + sum(y + x@))",
    "s = sum((f64)x@); v = (f64)x - s",
    "s = tanh(var(x@)) + 1",
    "v = sum(x + y@) > 0 ? x : z",
    "s = sum(sum(x * y@) * x + 1@)",
    "s = max(x@)",
    "s = sum((f64)x@) + prod((f64)x@) * max((f64)x@) - min((f64)x@) + sum((f64)x * x@)",
    /* These have one axis. */
    "v = cumulative_sum(x * y@) / sum(x@)",
    "v = cumulative_sum(x@, exclusive=1) * y; w = cumulative_max(x - y@, reverse=1)",
    "v = cumulative_sum(exp(x) + y@, reverse=1); w = cumulative_prod(x / 2@)",
    "v = logcumsumexp(x - max(cumulative_sum(y + x@)@)@) - z",
    "v = cumulative_min(cumulative_sum(x@) * y@, exclusive=1) + softmax(x@); s = sum(cumulative_sum(x@) > 0 ? x : z@)",
    "param p; v = cumulative_sum(cumulative_sum((f64)x * (f32)p@, reverse=1)@, reverse=1, exclusive=1) + x",
};
enum { N_TEXTS = sizeof texts / sizeof *texts };

static int64_t n_cut; /* calls that a workspace helped */

typedef struct subject {
  char text[400];
  int ndim;
  int64_t shape[QUERN_MAX_NDIM], axes;
  operand in[MOST_IN], out[MOST_OUT];
  mirror there[MOST_IN + MOST_OUT];
  DLTensor *ins[MOST_IN], *outs[MOST_OUT], *dev_ins[MOST_IN], *dev_outs[MOST_OUT];
  int n_in, n_out;
} subject;

static void write_text(subject *s, const char *form) {
  char axes[200] = "", *at = s->text;
  const int is_all = s->axes == (1 << s->ndim) - 1;
  if (!is_all) {
    int n = sprintf(axes, ", axis=(");
    for (int d = 0; d < s->ndim; d++)
      if (s->axes >> d & 1) n += sprintf(axes + n, "%d,", d - s->ndim);
    sprintf(axes + n, ")");
  }
  for (; *form; form++) at += *form == '@' ? sprintf(at, "%s", axes) : sprintf(at, "%c", *form);
}

static quern_status call_there(const subject *s, quern_op *op, const quern_call *call, int is_planned) {
  if (!is_planned) return quern_op_call(op, s->n_in, s->dev_ins, s->n_out, s->dev_outs, call);
  void *x[MOST_IN], *y[MOST_OUT];
  quern_plan *plan = NULL;
  for (int k = 0; k < s->n_in; k++) x[k] = (char *)s->dev_ins[k]->data + s->dev_ins[k]->byte_offset;
  for (int k = 0; k < s->n_out; k++) y[k] = (char *)s->dev_outs[k]->data + s->dev_outs[k]->byte_offset;
  quern_status status = quern_op_prepare(op, s->n_in, s->dev_ins, s->n_out, s->dev_outs, call, &plan);
  if (!status) status = quern_plan_run(plan, x, y, call);
  quern_plan_release(plan);
  return status;
}

static void report(const subject *s, const char *what) {
  char text[6000];
  int n = snprintf(text, sizeof text, "%s\n%s; seed 0x%" PRIx64 "\n", s->text, what, test_seed());
  for (int k = 0; k < s->n_in; k++) n += text_operand(text + n, 1200, "in", &s->in[k]);
  for (int k = 0; k < s->n_out; k++) n += text_operand(text + n, 1200, "out", &s->out[k]);
  group_fail("%s", text);
}

static void compare_on_device(subject *s, quern_op *on_cpu, quern_op *on_gpu, quern_call call, rng *r) {
  char what[800] = "", why[300] = "";
  workspace w = {0};
  size_t bytes = 0;
  const quern_status wanted = quern_op_call(on_cpu, s->n_in, s->ins, s->n_out, s->outs, &call);
  if (wanted) snprintf(why, sizeof why, "%s", quern_last_error());
  if (quern_op_workspace(on_gpu, s->n_in, s->dev_ins, s->n_out, s->dev_outs, &call, &bytes) == 0 && bytes && rng_below(r, 4)) {
    w = workspace_make(bytes, 0, &call);
    n_cut++;
  }
  const int n_kernels = n_kernels_loaded();
  const quern_status got = call_there(s, on_gpu, &call, (int)rng_below(r, 2));
  if (got != wanted || (got && strcmp(why, quern_last_error())))
    snprintf(what, sizeof what, "%s, %s; on the CPU %s, %s", status_name(got), got ? quern_last_error() : "", status_name(wanted), why);
  for (int k = 0; k < s->n_out && !*what; k++)
    if (!mirror_same(&s->there[MOST_IN + k], what, sizeof what) && !*what) snprintf(what, sizeof what, "output %d: other bytes", k);
  for (int k = 0; k < s->n_in && !*what; k++)
    if (s->there[k].memory && !mirror_same(&s->there[k], what, sizeof what)) snprintf(what, sizeof what, "input %d is written", k);
  if (!*what && is_fake() && n_kernels_loaded() - n_kernels > 1)
    snprintf(what, sizeof what, "one call was %d kernels", n_kernels_loaded() - n_kernels);
  if (w.allocated && !workspace_is_kept(&w)) snprintf(what, sizeof what, "something beside the workspace was written");
  device_free(w.allocated);
  if (*what) report(s, what);
}

/* The longest axis; all others have at most so many rows. */
static int64_t one_axis(int64_t most_rows, int ndim, int64_t *shape) {
  int64_t n = 1;
  int longest = 0;
  for (int d = 1; d < ndim; d++)
    if (shape[d] > shape[longest]) longest = d;
  for (int d = 0; d < ndim; d++) {
    if (d == longest) continue;
    if (n * shape[d] > most_rows) shape[d] = 1;
    n *= shape[d];
  }
  return (int64_t)1 << longest;
}

/* long_row: not 0: the elements of one, of a few rows; below 0: of many rows. */
static void draw_case(quern_ctx *cpu, quern_ctx *gpu, const char *form, ref_dtype d, int64_t most, int64_t long_row, rng *r) {
  static subject s;
  quern_scalar p = real(0.75);
  quern_shape shapes[MOST_OUT];
  quern_call call = {.size = sizeof call, .params = &p, .n_params = strstr(form, "param") != NULL};
  memset(&s, 0, sizeof s);
  row_shape(r, most, s.shape, &s.ndim);
  const int is_scanned = strstr(form, "cum") != NULL;
  if (s.ndim == 0 && is_scanned) s.shape[s.ndim++] = 1 + (int64_t)rng_below(r, 3);
  const int64_t axes = is_scanned ? one_axis(is_on_gpu() ? most : 150, s.ndim, s.shape) : row_axes(r, is_on_gpu() ? most : 150, s.ndim, s.shape);
  s.axes = axes == -1 ? (1 << s.ndim) - 1 : axes;
  if (long_row) {
    s.ndim = 2;
    s.shape[0] = 1 + (int64_t)rng_below(r, 3), s.shape[1] = long_row;
    s.axes = 2;
  }
  if (long_row < 0) s.shape[0] = 8192 + (int64_t)rng_below(r, 99), s.shape[1] = -long_row;
  write_text(&s, form);
  quern_op *on_cpu = op_from(cpu, s.text), *on_gpu = op_from(gpu, s.text);
  const quern_op_info *info = quern_op_describe(on_cpu);
  s.n_in = info->n_in, s.n_out = info->n_out;
  memset(shapes, 0, sizeof shapes);
  for (int k = 0; k < s.n_in; k++) {
    int64_t shape[QUERN_MAX_NDIM];
    const int is_x = info->args[k].name[0] == 'x';
    for (int i = 0; i < s.ndim; i++) shape[i] = !is_x && !(s.axes >> i & 1) && rng_below(r, 4) == 0 ? 1 : s.shape[i];
    row_layout(&s.in[k], is_x || rng_below(r, 3) ? d : REF_F32, s.ndim, shape, 0, r);
    row_fill(&s.in[k], r);
    s.ins[k] = &s.in[k].t;
  }
  for (int k = 0; k < s.n_out; k++) shapes[k].size = sizeof shapes[k];
  if (quern_op_measure(on_cpu, s.n_in, s.ins, s.n_out, shapes, &call)) bail("%s: %s", s.text, quern_last_error());
  for (int k = 0; k < s.n_out; k++) {
    row_layout(&s.out[k], ref_dtype_of(shapes[k].dtype), shapes[k].ndim, shapes[k].shape, 1, r);
    operand_fill(&s.out[k], r);
    s.outs[k] = &s.out[k].t;
  }
  for (int k = 0; k < s.n_in; k++) { /* a number may stay on the CPU, but not all inputs */
    const int stays = k && s.ndim == 0 && rng_below(r, 2);
    if (!stays) mirror_make(&s.there[k], &s.in[k], 0);
    s.dev_ins[k] = stays ? s.ins[k] : &s.there[k].t;
  }
  for (int k = 0; k < s.n_out; k++) {
    mirror_make(&s.there[MOST_IN + k], &s.out[k], 0);
    s.dev_outs[k] = &s.there[MOST_IN + k].t;
  }
  group_count(1);
  compare_on_device(&s, on_cpu, on_gpu, call, r);
  for (int k = 0; k < MOST_IN + MOST_OUT; k++) mirror_free(&s.there[k]);
  for (int k = 0; k < MOST_IN; k++) operand_free(&s.in[k]);
  for (int k = 0; k < MOST_OUT; k++) operand_free(&s.out[k]);
  quern_op_release(on_cpu), quern_op_release(on_gpu);
}

/* Ops of a spec that is loaded at run time, by themselves: with a combine, a state of two parts, a parameter and two outputs of their own. */
static const char spec[] =
    "reduction \"acme.hypot_sum\" { doc = \"The length.\", dtypes = floating, lift = \"x * x\", combine = \"a + b\",\n"
    "  finish = \"sqrt(a)\", empty = 0 }\n"
    "reduction \"acme.odd\" { doc = \"A combination.\", dtypes = floating, lift = \"x / 4\", combine = \"a + b - a * b\", empty = 0 }\n"
    "reduction \"acme.place\" { doc = \"The place of the largest.\", dtypes = floating, state = \"T v, i64 i\", result = \"i64\", empty = false,\n"
    "  lift = \"v = x; i = index;\", finish = \"a.i\", combine = \"bool take = b.v > a.v || b.v == a.v && b.i < a.i; "
    "v = take ? b.v : a.v; i = take ? b.i : a.i;\" }\n"
    "row \"acme.center\" { doc = \"x less its mean.\", dtypes = floating, params = { by = 1 }, body = \"x - mean(x) * by\" }\n"
    "row \"acme.ends\" { doc = \"The ends.\", dtypes = floating, outputs = \"low, spread\", empty = \"identity\",\n"
    "  body = \"low = min(x); spread = max(x) - min(x);\" }\n";

static void draw_spec_case(quern_op *op, ref_dtype d, rng *r) {
  const quern_op_info *info = quern_op_describe(op);
  operand x = {0}, y[MOST_OUT] = {0};
  mirror on_x, on_y[MOST_OUT];
  int64_t shape[QUERN_MAX_NDIM];
  int ndim;
  named_params p;
  quern_shape measured[MOST_OUT];
  DLTensor *in = &x.t, *there_in = &on_x.t, *out[MOST_OUT], *there_out[MOST_OUT];
  char what[700] = "";
  row_shape(r, 9500, shape, &ndim);
  params_begin(&p);
  params_set(&p, info, "axes", whole(row_axes(r, 150, ndim, shape)));
  row_layout(&x, d, ndim, shape, 0, r);
  row_fill(&x, r);
  mirror_make(&on_x, &x, 0);
  for (int k = 0; k < info->n_out; k++) measured[k].size = sizeof measured[k];
  const quern_status can = quern_op_measure(op, 1, &in, info->n_out, measured, &p.call);
  if (can) { /* of no elements */
    group_count(1);
    if (quern_op_measure(op, 1, &there_in, info->n_out, measured, &p.call) != can) group_fail("measured there alone");
  }
  for (int k = 0; k < info->n_out && !can; k++) {
    row_layout(&y[k], ref_dtype_of(measured[k].dtype), measured[k].ndim, measured[k].shape, 1, r);
    operand_fill(&y[k], r);
    mirror_make(&on_y[k], &y[k], 0);
    out[k] = &y[k].t, there_out[k] = &on_y[k].t;
  }
  const quern_status wanted = can ? can : quern_op_call(op, 1, &in, info->n_out, out, &p.call);
  group_count(!can);
  if (!can && quern_op_call(op, 1, &there_in, info->n_out, there_out, &p.call) != wanted)
    snprintf(what, sizeof what, "%s on the CPU: %s", status_name(wanted), quern_last_error());
  for (int k = 0; k < info->n_out && !can; k++) {
    if (!*what && !mirror_same(&on_y[k], what, sizeof what) && !*what) snprintf(what, sizeof what, "output %d: other bytes", k);
    mirror_free(&on_y[k]);
  }
  char text[1500];
  text_operand(text, sizeof text, "in", &x);
  if (*what) group_fail("%s; seed 0x%" PRIx64 "\n%s", what, test_seed(), text);
  mirror_free(&on_x);
  operand_free(&x);
  for (int k = 0; k < info->n_out && !can; k++) operand_free(&y[k]);
}

static void test_spec(void) {
  static const char *const names[] = {"acme.hypot_sum", "acme.odd", "acme.place", "acme.center", "acme.ends"};
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1});
  if (quern_spec_load_text(ctx, "acme.lua", spec, sizeof spec - 1)) bail("%s", quern_last_error());
  for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
    quern_op *op;
    rng r;
    if (quern_op_find(ctx, names[i], &op)) bail("%s", quern_last_error());
    rng_seed(&r, 79790 + (uint64_t)i);
    group_begin("%s, of a spec, on CUDA tensors: the bytes of the CPU", names[i]);
    for (int k = 0; k < (is_on_gpu() ? 60 : 12); k++) draw_spec_case(op, k % 4 ? REF_F32 : REF_F16, &r);
    group_end();
    quern_op_release(op);
  }
  quern_ctx_release(ctx);
}

int main(void) {
  const char *text = getenv("QUERN_TEST_SHARD");
  int shard = 0, n_shards = 1;
  if (text && (sscanf(text, "%d/%d", &shard, &n_shards) != 2 || n_shards < 1)) bail("QUERN_TEST_SHARD=%s", text);
  device_begin();
  const int day = is_on_gpu() ? -1 : test_part(6);
  quern_ctx *cpu = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .threads = 1});
  quern_ctx *gpu = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1});
  for (int i = 0; i < N_TEXTS; i++) {
    static const ref_dtype dtypes[] = {REF_F32, REF_F16, REF_F64, REF_BF16};
    if ((day >= 0 && i % 6 != day) || i % n_shards != shard) continue;
    rng r;
    rng_seed(&r, 79700 + (uint64_t)i);
    group_begin("%s on CUDA tensors: the bytes of the CPU", texts[i]);
    for (int k = 0; k < (is_on_gpu() ? 40 : 4); k++) {
      const ref_dtype d = dtypes[is_on_gpu() ? k % 4 : k ? 0 : 1 + i / 3 % 3];
      const int64_t large = is_on_gpu() ? 3000000 : 9500;
      draw_case(cpu, gpu, texts[i], d, k % 10 == 9 ? large : 9500, 0, &r);
      if (k % 10 == 1) draw_case(cpu, gpu, texts[i], d, 9500, is_on_gpu() ? 1000000 + k : 40000 + 997 * k, &r);
      if (k % 10 == 2) draw_case(cpu, gpu, texts[i], d, 9500, 4097 + (int64_t)rng_below(&r, 8000), &r);
      if (k % 10 == 3 && (is_on_gpu() || !strstr(texts[i], "cum"))) draw_case(cpu, gpu, texts[i], d, 9500, -1 - (int64_t)rng_below(&r, is_on_gpu() ? 64 : 9), &r);
    }
    group_end();
  }
  if (shard == 0) test_spec();
  ok(n_cut > 0 || shard > 0, "workspaces helped %" PRId64 " calls", n_cut);
  quern_ctx_release(cpu), quern_ctx_release(gpu);
  return done_testing();
}
