/* SPDX-License-Identifier: Apache-2.0
 *
 * bench.c: times Quern's ops and hand-written loops, case by case. Prints one line per case: name, nanoseconds per call
 * (median), bytes of the operands. run.py compares them with NumPy and PyTorch; names are its keys. Expressions are in
 * bench_fused.c.
 *   quern-bench [FILTER]            all cases with FILTER in their name
 *   quern-bench --first             nanoseconds from main to the end of the first built op of this process
 *   quern-bench --memory            bytes beyond the operands that a process takes for one op of 10^8 elements
 *   quern-bench --memory-expression the same for an expression that is interpreted
 *   quern-bench --first-expression  nanoseconds to the first results of new expressions, in this process and later
 *   quern-bench --compile           nanoseconds to the first compiled results; instead of bytes, operations of the loop
 *   quern-bench --warm DIR          the same with the disk cache DIR, which the first such process fills; and what it mapped */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <quern/ops.h>

#include "bench_fused.h"
#include "measure.h"
#include "stream.h"

typedef struct op_call {
  quern_op *op;
  quern_plan *plan;
  array in[3], out;
  DLTensor *ins[3], *outs[1];
  int n_in;
} op_call;

static void run_op(void *arg) {
  op_call *c = arg;
  if (quern_op_call(c->op, c->n_in, c->ins, 1, c->outs, NULL)) fail();
}
static void run_plan(void *arg) {
  op_call *c = arg;
  void *in[3] = {c->in[0].t.data, c->in[1].t.data, c->in[2].t.data}, *out[1] = {c->out.t.data};
  if (quern_plan_run(c->plan, in, out, NULL)) fail();
}
static void run_typed_add(void *arg) {
  op_call *c = arg;
  if (quern_add(c->ins[0], c->ins[1], c->outs[0], NULL)) fail();
}

static quern_ctx *ctx;

static void setup(op_call *c, const char *op, int n_in) {
  if (quern_op_find(ctx, op, &c->op)) fail();
  c->plan = NULL;
  c->n_in = n_in;
  for (int k = 0; k < 3; k++) c->ins[k] = &c->in[k].t;
  c->outs[0] = &c->out.t;
}

static void finish(op_call *c, const char *name) {
  double bytes = array_bytes(&c->out);
  for (int k = 0; k < c->n_in; k++) bytes += array_bytes(&c->in[k]);
  report(name, median_ns(run_op, c), bytes);
  for (int k = 0; k < c->n_in; k++) free(c->in[k].memory);
  free(c->out.memory);
  quern_op_release(c->op);
}

/* One op over contiguous operands of n elements. */
static void contiguous(const char *op, int n_in, const char *in_dtype, const char *out_dtype, int64_t n, const char *size_name) {
  char name[64];
  op_call c;
  snprintf(name, sizeof name, "%s_%s_%s", op, in_dtype, size_name);
  if (!is_wanted(name)) return;
  for (int k = 0; k < n_in; k++) array_make(&c.in[k], k == 0 && !strcmp(op, "where") ? "bool" : in_dtype, 1, n, 0, 0);
  array_make(&c.out, out_dtype, 1, n, 0, 0);
  setup(&c, op, n_in);
  finish(&c, name);
}

/* ---- Hand-written loops ---- */

typedef struct loop { const float *x, *y; float *out; int64_t n; } loop;

static void run_plain_add(void *arg) {
  const loop *l = arg;
  for (int64_t i = 0; i < l->n; i++) l->out[i] = l->x[i] + l->y[i];
}

static void hand_written(void) {
  loop l = {.n = 10000000};
  array x, y, out;
  if (!is_wanted("hand_add_f32_1e7") && !is_wanted("hand_streamed_add_f32_1e7")) return;
  array_make(&x, "f32", 1, l.n, 0, 0);
  array_make(&y, "f32", 1, l.n, 0, 0);
  array_make(&out, "f32", 1, l.n, 0, 0);
  l.x = x.t.data, l.y = y.t.data, l.out = out.t.data;
  report("hand_add_f32_1e7", median_ns(run_plain_add, &l), 12.0 * (double)l.n);
  stream s = {.in = {l.x, l.y}, .out = l.out, .n = l.n};
  if (stream_is_there()) report("hand_streamed_add_f32_1e7", median_ns(stream_2, &s), 12.0 * (double)l.n);
  free(x.memory), free(y.memory), free(out.memory);
}

/* ---- Cases ---- */

static void overhead(void) {
  op_call c;
  if (!is_wanted("call_8_prepared") && !is_wanted("call_8_op") && !is_wanted("call_8_typed")) return;
  for (int k = 0; k < 3; k++) array_make(&c.in[k], "f32", 1, 8, 0, 0);
  array_make(&c.out, "f32", 1, 8, 0, 0);
  setup(&c, "add", 2);
  if (quern_op_prepare(c.op, 2, c.ins, 1, c.outs, NULL, &c.plan)) fail();
  report("call_8_prepared", median_ns(run_plan, &c), 96);
  report("call_8_op", median_ns(run_op, &c), 96);
  report("call_8_typed", median_ns(run_typed_add, &c), 96);
  quern_plan_release(c.plan);
}

static void transposed(void) {
  op_call c;
  if (!is_wanted("transposed_add_3000")) return;
  for (int k = 0; k < 2; k++) array_make(&c.in[k], "f32", 2, 3000, 3000, 0);
  array_make(&c.out, "f32", 2, 3000, 3000, 0);
  c.in[0].strides[0] = 1, c.in[0].strides[1] = 3000;
  setup(&c, "add", 2);
  finish(&c, "transposed_add_3000");
}

/* [N, 3] + [3] and [N, 3, 3] + [3, 3] transposed: small inner dimensions, broadcast. */
static void small_inner(void) {
  op_call c;
  if (is_wanted("rows3_add")) {
    array_make(&c.in[0], "f32", 2, 1000000, 3, 0);
    array_make(&c.in[1], "f32", 1, 3, 0, 0);
    array_make(&c.out, "f32", 2, 1000000, 3, 0);
    setup(&c, "add", 2);
    finish(&c, "rows3_add");
  }
  if (is_wanted("rows33_add")) {
    array_make(&c.in[0], "f32", 3, 300000, 3, 3);
    c.in[0].strides[1] = 1, c.in[0].strides[2] = 3; /* each 3 x 3 block transposed */
    array_make(&c.in[1], "f32", 2, 3, 3, 0);
    array_make(&c.out, "f32", 3, 300000, 3, 3);
    setup(&c, "add", 2);
    finish(&c, "rows33_add");
  }
}

static void sliced(void) {
  op_call c;
  if (!is_wanted("sliced_rows_add")) return;
  for (int k = 0; k < 2; k++) {
    array_make(&c.in[k], "f32", 2, 3000, 1024, 0);
    c.in[k].shape[1] = 1000;
  }
  array_make(&c.out, "f32", 2, 3000, 1000, 0);
  setup(&c, "add", 2);
  finish(&c, "sliced_rows_add");
}

static int first_call(double start) {
  op_call c;
  for (int k = 0; k < 2; k++) array_make(&c.in[k], "f32", 1, 8, 0, 0);
  array_make(&c.out, "f32", 1, 8, 0, 0);
  setup(&c, "add", 2);
  run_op(&c);
  report("first_op_in_process", now() - start, 96);
  return 0;
}

/* 10^8 u8 elements, mixed dtypes and a transposition, so that every block is in use. The operands' memory is touched
 * before, so that all further memory is the library's. */
static int memory(void) {
  op_call c;
  array_make(&c.in[0], "u8", 2, 10000, 10000, 0);
  array_make(&c.in[1], "f16", 1, 10000, 0, 0);
  c.in[0].strides[0] = 1, c.in[0].strides[1] = 10000;
  array_make(&c.out, "f16", 2, 10000, 10000, 0);
  setup(&c, "add", 2);
  long before = peak_kilobytes();
  run_op(&c);
  report("memory_beyond_operands", 1024.0 * (double)(peak_kilobytes() - before), 0);
  return 0;
}

int main(int argc, char **argv) {
  double start = now();
  quern_options options = {.size = sizeof options, .threads = threads()};
  const char *mode = argc > 1 ? argv[1] : "";
  if (!strcmp(mode, "--first-expression")) return fused_first(start);
  if (!strcmp(mode, "--compile")) return fused_compile(start);
  if (!strcmp(mode, "--warm") && argc > 2) return fused_warm(start, argv[2]);
  if (!strcmp(mode, "--memory-expression")) return fused_memory();
  if (quern_ctx_create(&options, &ctx)) fail();
  if (!strcmp(mode, "--first")) return first_call(start);
  if (!strcmp(mode, "--memory")) return memory();
  filter = mode;
  overhead();
  static const char *const unary[] = {"negative", "abs", "sqrt", "exp", "log", "tanh", "erf", "sigmoid", "relu", "gelu"};
  for (size_t k = 0; k < sizeof unary / sizeof unary[0]; k++) {
    contiguous(unary[k], 1, "f32", "f32", 100000, "1e5");
    contiguous(unary[k], 1, "f64", "f64", 100000, "1e5");
  }
  static const char *const binary[] = {"add", "multiply", "divide", "maximum", "pow"};
  for (size_t k = 0; k < sizeof binary / sizeof binary[0]; k++) {
    contiguous(binary[k], 2, "f32", "f32", 100000, "1e5");
    contiguous(binary[k], 2, "f64", "f64", 100000, "1e5");
  }
  contiguous("add", 2, "i32", "i32", 100000, "1e5");
  contiguous("add", 2, "u8", "u8", 100000, "1e5");
  contiguous("less", 2, "f32", "bool", 100000, "1e5");
  contiguous("where", 3, "f32", "f32", 100000, "1e5");
  contiguous("astype", 1, "f32", "f64", 100000, "1e5");
  contiguous("add", 2, "f16", "f16", 100000, "1e5");
  contiguous("add", 2, "bf16", "bf16", 100000, "1e5");
  contiguous("add", 2, "f32", "f32", 10000000, "1e7");
  contiguous("add", 2, "f16", "f16", 10000000, "1e7");
  contiguous("add", 2, "bf16", "bf16", 10000000, "1e7");
  contiguous("exp", 1, "f32", "f32", 10000000, "1e7");
  hand_written();
  transposed();
  small_inner();
  sliced();
  quern_ctx_release(ctx);
  fused_cases();
  return 0;
}
