/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t250-plan: prepare once, run often: same bits as a call, other pointers, other parameters, many threads at once,
 * overlap checked in each run, plans that outlive their op and context. */
#include <pthread.h>

#include "tensors.h"

static const struct {
  ref_op op;
  ref_dtype in[3], out;
} cases[] = {
    {REF_ADD, {REF_F32, REF_F32}, REF_F32},
    {REF_POW, {REF_F64, REF_F64}, REF_F64},
    {REF_MULTIPLY, {REF_BF16, REF_BF16}, REF_BF16},
    {REF_ADD, {REF_U8, REF_F16}, REF_F16},
    {REF_WHERE, {REF_BOOL, REF_I64, REF_I64}, REF_I64},
    {REF_GELU, {REF_F32}, REF_F32},
    {REF_CLIP, {REF_I32}, REF_I32},
    {REF_ASTYPE, {REF_F64}, REF_F16},
    {REF_FULL, {REF_F32}, REF_F32},
    {REF_COPY, {REF_U8}, REF_U8},
};
#define N_CASES (int)(sizeof cases / sizeof *cases)

/* An output and inputs of one of five layouts. */
static void make_trial(trial *t, int c, int layout, rng *r) {
  int64_t shape[2] = {33, 31}, turned[2] = {1, 33}, pitch[2] = {40, 1}, gaps[2] = {-64, 2}, bcast[2] = {0, 1};
  memset(t, 0, sizeof *t);
  t->op = cases[c].op;
  t->note = "plan";
  for (int k = 0; k < ref_op_describe(t->op)->n_in; k++) {
    const int64_t *strides =
        layout == 0 ? NULL : layout == 1 ? turned : layout == 2 ? pitch : layout == 3 ? gaps : k == 1 ? bcast : NULL;
    operand_make(&t->in[k], cases[c].in[k], 2, shape, strides, r);
  }
  operand_make(&t->out, cases[c].out, 2, shape, layout == 2 ? pitch : layout == 3 ? turned : NULL, r);
}

static void *pointer_of(const DLTensor *t) {
  return (char *)t->data + t->byte_offset;
}

static int check_run(trial *t, quern_plan *plan, const quern_call *call, const char *what) {
  int n_in = ref_op_describe(t->op)->n_in;
  DLTensor *ins[3] = {&t->in[0].t, &t->in[1].t, &t->in[2].t};
  void *in[3], *out = pointer_of(&t->out.t);
  for (int k = 0; k < n_in; k++) in[k] = pointer_of(ins[k]);
  ref_expect *expect = ref_eval_tensor(t->op, ins, t->param, &t->out.t);
  ref_difference diff;
  operand_save(&t->out);
  quern_status s = quern_plan_run(plan, in, &out, call);
  int good = s == QUERN_OK && ref_check_tensor(&t->out.t, expect, &diff);
  group_count(1);
  operand_forgive(&t->out);
  if (!good) trial_report(t, s ? quern_last_error() : what);
  else if (!operand_same(&t->out)) trial_report(t, "bytes outside the output's elements were written");
  free(expect);
  return good;
}

static quern_plan *prepare(trial *t, const quern_call *call) {
  DLTensor *ins[3] = {&t->in[0].t, &t->in[1].t, &t->in[2].t}, *outs = &t->out.t;
  quern_plan *plan = NULL;
  quern_status s = quern_op_prepare(the_op(t->op), ref_op_describe(t->op)->n_in, ins, 1, &outs, call, &plan);
  if (s != QUERN_OK || !plan) bail("prepare %s: %s: %s", ref_op_describe(t->op)->name, status_name(s), quern_last_error());
  return plan;
}

static void test_reruns(void) {
  rng r;
  rng_seed(&r, 1);
  group_begin("plans run on other memory of the same layout, aligned or not");
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    for (int layout = 0; layout < 5; layout++) {
      trial t;
      make_trial(&t, c, layout, &r);
      quern_plan *plan = prepare(&t, NULL);
      check_run(&t, plan, NULL, "first run");
      check_run(&t, plan, NULL, "second run");
      for (int i = 0; i < 6; i++) {
        /* Each operand somewhere else, by bytes. */
        trial moved = {.op = t.op, .note = "plan on other memory"};
        for (int k = -1; k < ref_op_describe(t.op)->n_in; k++) {
          operand *from = k < 0 ? &t.out : &t.in[k], *to = k < 0 ? &moved.out : &moved.in[k];
          operand_describe(to, from->d, 2, from->shape, from->strides);
          operand_allocate(to, (int)rng_below(&r, 64), GUARD_NONE);
          operand_fill(to, &r);
        }
        check_run(&moved, plan, NULL, "moved run");
        trial_free(&moved);
      }
      trial_free(&t); /* descriptors are gone; the plan does not need them */
      make_trial(&t, c, layout, &r);
      check_run(&t, plan, NULL, "after the descriptors are gone");
      quern_plan_release(plan);
      trial_free(&t);
    }
  }
  group_end();
}

static void test_overlap(void) {
  rng r;
  rng_seed(&r, 2);
  trial t;
  make_trial(&t, 0, 0, &r);
  quern_plan *plan = prepare(&t, NULL);
  float *buffer = calloc(8192, sizeof *buffer);
  void *in[2] = {buffer, buffer + 4000}, *out = buffer + 1;
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_E_OVERLAP, "output one element into input 1");
  out = buffer + 4000 - 1022;
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_E_OVERLAP, "output's last element is input 2's first");
  out = (char *)buffer + 2;
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_E_OVERLAP, "half an element");
  int clean = 1;
  for (int i = 0; i < 8192; i++) clean &= buffer[i] == 0;
  ok(clean, "nothing was written");
  for (int i = 0; i < 8192; i++) buffer[i] = (float)i;
  out = buffer + 4000 - 1023;
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_OK, "just beside");
  ok(buffer[4000] == 4000 && buffer[3999] == 1022 + 5022, "right to the last element");
  out = in[0];
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_OK, "in place, though not prepared so");
  ok(buffer[0] == 4000 && buffer[1022] == 1022 + 5022, "right values in place");
  in[0] = in[1] = out = buffer + 4000;
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_OK, "all in one place");
  ok(buffer[4001] == 8002, "doubled");
  in[0] = NULL;
  is_int(quern_plan_run(plan, in, &out, NULL), QUERN_E_ARGUMENT, "a NULL pointer");
  is_int(quern_plan_run(plan, NULL, &out, NULL), QUERN_E_ARGUMENT, "no inputs");
  is_int(quern_plan_run(plan, in, NULL, NULL), QUERN_E_ARGUMENT, "no outputs");
  quern_plan_release(plan);
  trial_free(&t);
  free(buffer);

  /* Prepared on one buffer in place, run apart. */
  make_trial(&t, 0, 0, &r);
  DLTensor *ins[2] = {&t.out.t, &t.in[1].t}, *outs = &t.out.t;
  is_int(quern_op_prepare(the_op(REF_ADD), 2, ins, 1, &outs, NULL, &plan), QUERN_OK, "prepared in place");
  group_begin("and run apart");
  check_run(&t, plan, NULL, "run apart");
  group_end();
  quern_plan_release(plan);
  trial_free(&t);
}

/* Data may be NULL while preparing: pointers come with each run. */
static void test_no_data(void) {
  rng r;
  rng_seed(&r, 3);
  trial t;
  make_trial(&t, 0, 0, &r);
  void *keep[3] = {t.in[0].t.data, t.in[1].t.data, t.out.t.data};
  DLTensor *ins[2] = {&t.in[0].t, &t.in[1].t}, *outs = &t.out.t;
  quern_plan *plan = NULL;
  t.in[0].t.data = t.in[1].t.data = t.out.t.data = NULL;
  quern_status s = quern_op_prepare(the_op(REF_ADD), 2, ins, 1, &outs, NULL, &plan);
  t.in[0].t.data = keep[0];
  t.in[1].t.data = keep[1];
  t.out.t.data = keep[2];
  is_int(s, QUERN_OK, "prepare with data NULL: pointers are given to each run");
  if (s == QUERN_OK) {
    group_begin("such a plan runs");
    check_run(&t, plan, NULL, "run");
    group_end();
    quern_plan_release(plan);
  } else {
    diag("%s", quern_last_error());
  }
  trial_free(&t);
}

/* A tensor without elements may have no memory and any strides, in a plan as in a call. */
static void test_no_elements(void) {
  static const char *const names[] = {"sum", "max", "add"};
  for (int k = 0; k < 3; k++) {
    int64_t shape[3] = {0, 16, 5};
    const int is_add = strcmp(names[k], "add") == 0;
    quern_op *op = NULL;
    quern_plan *plan = NULL;
    operand x, out;
    rng r;
    rng_seed(&r, 7);
    const int64_t strides[3] = {INT64_MAX / 3, -(INT64_MAX / 2), INT64_MAX / 7}; /* of no element: any numbers */
    operand_describe(&x, REF_I64, 3, shape, strides);
    operand_make(&out, REF_I64, is_add ? 3 : 2, is_add ? shape : shape + 1, NULL, &r);
    quern_scalar first_axis = {QUERN_I64, {.i = 1}};
    quern_call call = {.size = sizeof call, .params = &first_axis, .n_params = 1};
    DLTensor *ins[2] = {&x.t, &x.t}, *outs = &out.t;
    void *no_data[2] = {NULL, NULL}, *results = is_add ? NULL : out.t.data;
    const int is_max = strcmp(names[k], "max") == 0; /* of nothing: an error, in both ways */
    is_int(quern_op_find(NULL, names[k], &op), QUERN_OK, "%s", names[k]);
    if (is_add) call.n_params = 0;
    memset(out.memory, 0x11, out.bytes);
    const quern_status called = quern_op_call(op, is_add ? 2 : 1, ins, 1, &outs, &call);
    if (!is_max) is_int(called, QUERN_OK, "  a call without memory of what has no elements");
    memset(out.memory, 0x11, out.bytes);
    const quern_status prepared = quern_op_prepare(op, is_add ? 2 : 1, ins, 1, &outs, &call, &plan);
    is_int(prepared, called, "  prepared");
    if (!prepared) is_int(quern_plan_run(plan, no_data, &results, NULL), QUERN_OK, "  a plan's run");
    if (!is_add && !prepared) ok(((int64_t *)out.t.data)[0] == 0 && ((int64_t *)out.t.data)[79] == 0, "  sums of nothing are 0");
    if (!is_add && !prepared) {
      results = NULL;
      is_int(quern_plan_run(plan, no_data, &results, NULL), QUERN_E_ARGUMENT, "  a result needs memory");
    }
    quern_plan_release(plan);
    quern_op_release(op);
    operand_free(&x);
    operand_free(&out);
  }
}

/* Where an extent is 1, and in a tensor without elements, strides may be any numbers, for ops that run along an axis, too. */
static void test_any_strides(void) {
  static const struct {
    const char *name;
    int n_in, n_out;
  } ops[] = {{"cumulative_sum", 1, 1}, {"cummax", 1, 2}, {"cumulative_sum_backward", 1, 1}, {"cumulative_prod_backward", 3, 1}, {"nonzero", 1, 1}};
  static const int64_t shapes[][3] = {{0, INT64_MAX / 4, 5}, {INT64_MAX / 4, 6, 0}, {1, 1, 1}, {1, 4, 1}, {1, 1, 3}};
  static double items[3][8] = {{1, 2, 3, 4}, {1, 2, 3, 4}, {1, 1, 1, 1}}, results[2][3 * 8];
  for (int i = 0; i < 5 * 5 * 3 * 4; i++) {
    const int64_t *shape = shapes[i % 5];
    const int o = i / 5 % 5, axis = i / 25 % 3, n_params = o == 4 ? 0 : 4;
    const int64_t is_first = i / 75 % 2, is_reverse = i / 150, n = shape[0] && shape[2] ? shape[0] * shape[1] * shape[2] : 0;
    int64_t out_shape[3] = {shape[0], shape[1], shape[2]}, strides[3], out_strides[3];
    const int is_backward = o == 2 || o == 3, is_nonzero = o == 4;
    if (is_first && (n == 0 || ops[o].n_in + ops[o].n_out > 2)) continue;
    if (is_nonzero && n > 1) continue;
    if (is_first && n_params) out_shape[axis]++;
    if (is_nonzero) out_shape[0] = n, out_shape[1] = 3;
    int64_t step = 1, out_step = 1;
    for (int d = 2; d >= 0; d--) {
      const int64_t any = d == 1 ? INT64_MIN : INT64_MAX / (1 + d);
      strides[d] = n == 0 || shape[d] == 1 ? any : step;
      out_strides[d] = n == 0 || out_shape[d] == 1 ? any : out_step;
      if (n) step *= shape[d], out_step *= out_shape[d];
    }
    DLTensor in[3], out[2], *ins[3], *outs[2];
    for (int k = 0; k < 3; k++) in[k] = (DLTensor){items[k], {kDLCPU, 0}, 3, {kDLFloat, 64, 1}, (int64_t *)shape, strides, 0}, ins[k] = &in[k];
    for (int k = 0; k < 2; k++) {
      out[k] = (DLTensor){results[k], {kDLCPU, 0}, is_nonzero ? 2 : 3, {k || is_nonzero ? kDLInt : kDLFloat, 64, 1}, out_shape, out_strides, 0};
      outs[k] = &out[k];
    }
    if (is_backward && is_first) in[0].shape = out_shape, in[0].strides = out_strides, out[0].shape = (int64_t *)shape, out[0].strides = strides;
    const quern_scalar params[4] = {{QUERN_I64, {.i = 1 << axis}}, {QUERN_I64, {.i = is_first}}, {QUERN_I64, {.i = 0}}, {QUERN_I64, {.i = is_reverse}}};
    const quern_call call = {.size = sizeof call, .params = params, .n_params = n_params};
    quern_op *op = NULL;
    memset(results, 0x11, sizeof results);
    is_int(quern_op_find(NULL, ops[o].name, &op), QUERN_OK, "%s", ops[o].name);
    const quern_status status = quern_op_call(op, ops[o].n_in, ins, ops[o].n_out, outs, &call);
    is_int(status, QUERN_OK, "  of %lld elements, along axis %d%s%s: %s", (long long)n, axis, is_first ? ", with the initial" : "",
           is_reverse ? ", reversed" : "", status ? quern_last_error() : "done");
    if (n == 0) ok(results[0][0] != 0, "  nothing is written");
    if (n == 1 && !is_first && !is_nonzero) is_int((int)results[0][0], 1, "  the only element");
    quern_op_release(op);
  }
}

static void test_params(void) {
  rng r;
  rng_seed(&r, 4);
  trial t;
  make_trial(&t, 6, 1, &r); /* clip, i32 */
  quern_scalar limits[2] = {{.kind = QUERN_I64, .v.i = -3}, {.kind = QUERN_I64, .v.i = 9}},
      other[2] = {{.kind = QUERN_I64, .v.i = 0}, {.kind = QUERN_I64, .v.i = 100}};
  quern_call call = {.size = sizeof call, .params = limits, .n_params = 2};
  ref_real kept[2] = {-3, 9}, given[2] = {0, 100};
  quern_plan *plan = prepare(&t, &call);
  limits[0].v.i = 12345; /* copied */
  group_begin("parameters: the plan's own, or the run's");
  t.param = kept;
  check_run(&t, plan, NULL, "as prepared");
  call.params = other;
  t.param = given;
  check_run(&t, plan, &call, "the run's own");
  t.param = kept;
  check_run(&t, plan, NULL, "as prepared again");
  quern_call bare = {.size = sizeof bare};
  check_run(&t, plan, &bare, "a call without parameters");
  call.n_params = 1;
  ref_real mixed[2] = {0, (ref_real)INFINITY};
  t.param = mixed;
  check_run(&t, plan, &call, "one of two: the other is the op's default, as in a call");
  group_end();
  call.size = 1;
  void *in[1] = {pointer_of(&t.in[0].t)}, *out = pointer_of(&t.out.t);
  is_int(quern_plan_run(plan, in, &out, &call), QUERN_E_VERSION, "a call struct of size 1");
  call.size = sizeof call;
  call.n_params = 3;
  is_int(quern_plan_run(plan, in, &out, &call), QUERN_E_ARGUMENT, "three parameters of two");
  quern_plan_release(plan);
  trial_free(&t);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

#define N_THREADS 16
static quern_plan *shared[N_CASES];
static trial models[N_CASES];
static ref_expect *expects[N_CASES];
static int thread_errors[N_THREADS];

static void *run_shared(void *arg) {
  int me = (int)(intptr_t)arg;
  char *out_memory = malloc(1 << 16);
  for (int i = 0; i < 400; i++) {
    int c = (i + me) % N_CASES;
    trial *t = &models[c];
    if (!shared[c]) continue;
    void *in[3], *out = out_memory + (i * 8) % 64;
    for (int k = 0; k < ref_op_describe(t->op)->n_in; k++) in[k] = pointer_of(&t->in[k].t);
    ref_difference diff;
    DLTensor mine = t->out.t;
    mine.data = out;
    mine.byte_offset = 0;
    if (quern_plan_run(shared[c], in, &out, NULL) != QUERN_OK || (i % 16 == me && !ref_check_tensor(&mine, expects[c], &diff))) {
      thread_errors[me]++;
    }
    /* Bits, against the first thread's result. */
    if (memcmp(out, t->out.saved, (size_t)ref_n_elements(&mine) * (size_t)ref_dtype_size(t->out.d))) thread_errors[me]++;
  }
  free(out_memory);
  return NULL;
}

static void test_threads(void) {
  rng r;
  pthread_t threads[N_THREADS];
  rng_seed(&r, 5);
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    make_trial(&models[c], c, 4, &r);
    shared[c] = prepare(&models[c], NULL);
    DLTensor *ins[3] = {&models[c].in[0].t, &models[c].in[1].t, &models[c].in[2].t};
    expects[c] = ref_eval_tensor(models[c].op, ins, NULL, &models[c].out.t);
    void *in[3], *out = pointer_of(&models[c].out.t);
    for (int k = 0; k < 3; k++) in[k] = pointer_of(ins[k]);
    quern_plan_run(shared[c], in, &out, NULL);
    size_t bytes = (size_t)ref_n_elements(&models[c].out.t) * (size_t)ref_dtype_size(models[c].out.d);
    models[c].out.saved = malloc(bytes);
    memcpy(models[c].out.saved, out, bytes);
  }
  for (int i = 0; i < N_THREADS; i++) pthread_create(&threads[i], NULL, run_shared, (void *)(intptr_t)i);
  int bad = 0;
  for (int i = 0; i < N_THREADS; i++) {
    pthread_join(threads[i], NULL);
    bad += thread_errors[i];
  }
  is_int(bad, 0, "16 threads share %d plans, 6400 runs", N_CASES);
  for (int c = 0; c < N_CASES; c++) {
    quern_plan_release(shared[c]);
    free(expects[c]);
    trial_free(&models[c]);
  }
}

/* Plan > op > context: each is kept alive by the one before. */
static void test_lifetime(void) {
  rng r;
  rng_seed(&r, 6);
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  quern_plan *plan = NULL;
  trial t;
  make_trial(&t, 0, 2, &r);
  DLTensor *ins[2] = {&t.in[0].t, &t.in[1].t}, *outs = &t.out.t;
  is_int(quern_ctx_create(NULL, &ctx), QUERN_OK, "a context");
  is_int(quern_op_find(ctx, "add", &op), QUERN_OK, "its add");
  quern_ctx_release(ctx);
  is_int(quern_op_call(op, 2, ins, 1, &outs, NULL), QUERN_OK, "the op works after its context is released");
  is_int(quern_op_prepare(op, 2, ins, 1, &outs, NULL, &plan), QUERN_OK, "a plan");
  quern_op_release(op);
  group_begin("the plan works after op and context are released");
  check_run(&t, plan, NULL, "orphan");
  group_end();
  quern_plan_release(plan);
  trial_free(&t);
}

int main(void) {
  test_reruns();
  test_overlap();
  test_no_data();
  test_no_elements();
  test_any_strides();
  test_params();
  test_threads();
  test_lifetime();
  return done_testing();
}
