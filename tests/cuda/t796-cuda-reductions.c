/* SPDX-License-Identifier: Apache-2.0
 * tags: long
 *
 * t796-cuda-reductions: every op that reduces on CUDA tensors, called or planned, in place, of one number on the CPU, of no elements, into
 * other dtypes, long rows in a workspace, beside which nothing is written, rows in shared memory, a row a thread: the bytes that the CPU
 * gives, those around the outputs included, and the same refusals. Without a GPU, by the fake driver, f32 of a third of the ops and one dtype of each, others each day; with
 * QUERN_TEST_GPU=1 all, and large ones. QUERN_TEST_SHARD=k/n takes each n-th op and dtype. */
#include "cuda/on_device.h"
#include "cuda/row_cases.h"

typedef struct there {
  mirror in, out;
  int is_value; /* the input is one number on the CPU */
} there;

static int64_t shard, n_shards = 1;

static int64_t n_cut; /* calls that a workspace helped */
static int64_t n_kept, n_short; /* that kept rows in shared memory; that had a row a thread */

static quern_status call_there(reduction *c, there *t, const quern_call *call, int is_planned) {
  quern_op *op = law_ops[c->op][0];
  DLTensor *in = t->is_value ? &c->in.t : &t->in.t, *out = c->form == IN_PLACE ? &t->in.t : &t->out.t;
  if (!is_planned) return quern_op_call(op, 1, &in, 1, &out, call);
  quern_plan *plan = NULL;
  void *x = (char *)in->data + in->byte_offset, *y = (char *)out->data + out->byte_offset;
  quern_status status = quern_op_prepare(op, 1, &in, 1, &out, call, &plan);
  if (!status) status = quern_plan_run(plan, &x, &y, call);
  quern_plan_release(plan);
  return status;
}

static void run_case(reduction *c, rng *r) {
  there t = {.is_value = c->in.t.ndim == 0 && c->form != IN_PLACE && rng_below(r, 2)};
  char what[700] = "", why[300] = "";
  named_params p;
  group_count(1);
  set_params(c, &p);
  mirror_make(&t.in, &c->in, 0);
  if (c->form != IN_PLACE) mirror_make(&t.out, &c->out, 0);
  DLTensor *in = &c->in.t, *out = c->form == IN_PLACE ? &c->in.t : &c->out.t;
  const quern_status wanted = quern_op_call(law_ops[c->op][0], 1, &in, 1, &out, &p.call);
  if (wanted) snprintf(why, sizeof why, "%s", quern_last_error());
  size_t bytes = 0;
  quern_call call = p.call;
  workspace w = {0};
  DLTensor *ins = t.is_value ? &c->in.t : &t.in.t, *outs = c->form == IN_PLACE ? &t.in.t : &t.out.t;
  if (quern_op_workspace(law_ops[c->op][0], 1, &ins, 1, &outs, &call, &bytes) == 0 && bytes && rng_below(r, 4)) {
    const int offset = (int)rng_below(r, 2) * 8;
    w = workspace_make(bytes + (size_t)offset - (rng_below(r, 6) == 0), offset, &call); /* one byte too few: without */
    n_cut++;
  }
  const quern_status got = call_there(c, &t, &call, (int)rng_below(r, 2));
  if (got != wanted || (got && strcmp(why, quern_last_error())))
    snprintf(what, sizeof what, "%s, %s; on the CPU %s, %s", status_name(got), got ? quern_last_error() : "", status_name(wanted), why);
  else if (!mirror_same(c->form == IN_PLACE ? &t.in : &t.out, what, sizeof what) && !*what)
    snprintf(what, sizeof what, "other bytes");
  char said[3000];
  if (!got && quern_op_explain(law_ops[c->op][0], 1, &ins, 1, &outs, &p.call, said, sizeof said) == QUERN_OK) {
    const char *shared = strstr(said, "\nshared: ");
    const int is_short = strstr(said, " 2d ss") != NULL;
    n_short += is_short;
    n_kept += !is_short && shared && atoi(shared + 9) > (is_on_gpu() ? 47 << 10 : 0); /* the fake driver's kernels have none of their own */
  }
  if (w.allocated && !workspace_is_kept(&w)) snprintf(what, sizeof what, "something beside the workspace was written");
  device_free(w.allocated);
  if (*what) reduction_report(c, what);
  mirror_free(&t.in);
  if (c->form != IN_PLACE) mirror_free(&t.out);
}

/* long_row: not 0: the elements of one, of a few rows. */
static void draw_case(law_op op, ref_dtype d, int64_t most, int64_t long_row, rng *r) {
  reduction c = {.op = op, .values = "any", .form = CALLED};
  int64_t shape[QUERN_MAX_NDIM], out_shape[QUERN_MAX_NDIM];
  int ndim;
  row_shape(r, most, shape, &ndim);
  c.axes = row_axes(r, is_on_gpu() ? most : 150, ndim, shape);
  if (long_row) {
    ndim = 3;
    shape[0] = 1 + (int64_t)rng_below(r, 3), shape[1] = 1 + (int64_t)rng_below(r, 40), shape[2] = long_row / shape[1];
    if (rng_below(r, 2)) shape[0] = long_row / shape[1], shape[2] = 1 + (int64_t)rng_below(r, 3);
    c.axes = shape[0] < shape[2] ? 6 : 3;
  }
  c.keepdims = !law_is_full(op) && rng_below(r, 2);
  const ref_dtype result = law_result(op, d);
  if (law_is_full(op) && result == d && rng_below(r, 4) == 0) c.form = IN_PLACE;
  row_layout(&c.in, d, ndim, shape, c.form == IN_PLACE, r);
  row_fill(&c.in, r);
  if (c.form != IN_PLACE) {
    const ref_dtype wider = ref_dtype_kind(result) == REF_KIND_FLOAT ? REF_F64 : result;
    row_layout(&c.out, is_on_gpu() && rng_below(r, 6) == 0 ? wider : result, output_shape(&c, out_shape), out_shape, 1, r);
    operand_fill(&c.out, r);
  }
  run_case(&c, r);
  operand_free(&c.in);
  if (c.form != IN_PLACE) operand_free(&c.out);
}

/* Rows that a device has in a way of their own: many of a few elements, or some of more than registers hold. */
static void draw_rows(law_op op, ref_dtype d, int is_short, rng *r) {
  reduction c = {.op = op, .values = "any", .form = CALLED, .axes = 2};
  int64_t shape[2] = {8192 + (int64_t)rng_below(r, 300), 1 + (int64_t)rng_below(r, is_on_gpu() ? 64 : 9)}, out_shape[QUERN_MAX_NDIM];
  if (!is_short) shape[0] = 1 + (int64_t)rng_below(r, 2), shape[1] = 4097 + (int64_t)rng_below(r, (48 << 10) / 4 - 4096);
  row_layout(&c.in, d, 2, shape, 0, r);
  row_fill(&c.in, r);
  row_layout(&c.out, law_result(op, d), output_shape(&c, out_shape), out_shape, 1, r);
  operand_fill(&c.out, r);
  run_case(&c, r);
  operand_free(&c.in);
  operand_free(&c.out);
}

/* Whether a part of the cases has this op and dtype. */
static int is_chosen(law_op op, ref_dtype d, int64_t number) {
  if (is_on_gpu()) return number % n_shards == shard;
  const int day = test_part(REF_N_DTYPES);
  return day < 0 || (d == REF_F32 && (int)op % 12 == test_part(12)) || ((int)op + (int)d) % REF_N_DTYPES == day;
}

int main(void) {
  const char *text = getenv("QUERN_TEST_SHARD");
  if (text && (sscanf(text, "%" SCNd64 "/%" SCNd64, &shard, &n_shards) != 2 || n_shards < 1)) bail("QUERN_TEST_SHARD=%s", text);
  device_begin();
  make_contexts();
  int64_t number = 0;
  for (int op = 0; op < LAW_N_OPS; op++) {
    if (!is_there((law_op)op)) continue;
    group_begin("%s on CUDA tensors: the bytes of the CPU", law_name((law_op)op));
    for (int d = 0; d < REF_N_DTYPES; d++) {
      rng r;
      if (!row_takes((law_op)op, (ref_dtype)d) || !is_chosen((law_op)op, (ref_dtype)d, number++)) continue;
      rng_seed(&r, 79600 + 100 * (uint64_t)op + (uint64_t)d);
      const int has_rows = is_on_gpu() || d == REF_F32;
      for (int i = 0; i < (has_rows ? is_on_gpu() ? 20 : 2 : 0); i++) draw_rows((law_op)op, (ref_dtype)d, i % 2, &r);
      const int n_long = is_on_gpu() ? 20 : d == REF_F32 ? 2 : 1;
      for (int i = 0; i < n_long; i++) draw_case((law_op)op, (ref_dtype)d, 9500, is_on_gpu() && i % 2 ? 3000000 : 40000 + 997 * i, &r);
      for (int i = 0; i < (is_on_gpu() ? 300 : 24); i++)
        draw_case((law_op)op, (ref_dtype)d, is_on_gpu() && i % 10 == 0 ? 3000000 : 9500, 0, &r);
    }
    group_end();
  }
  ok(n_cut > 0, "workspaces helped %" PRId64 " calls", n_cut);
  ok(n_kept > 0 && n_short > 0, "%" PRId64 " calls kept rows in shared memory, %" PRId64 " had a row a thread", n_kept, n_short);
  release_contexts();
  return done_testing();
}
