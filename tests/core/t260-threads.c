/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t260-threads: many threads calling; the host's parallel_for in every manner it may behave; the threads option; results
 * equal to the bit for any number of threads; small work stays on the caller; nested calls; workers are bound to no core. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "tensors.h"

/* Large enough to be cut into slices, awkward sizes. */
static const struct {
  ref_op op;
  ref_dtype in[3], out;
  int layout; /* 0 contiguous, 1 first input transposed, 2 [n, 3] with [3], 3 output strided */
} cases[] = {
    {REF_ADD, {REF_F32, REF_F32}, REF_F32, 0},       {REF_ADD, {REF_F32, REF_F32}, REF_F32, 1},
    {REF_MULTIPLY, {REF_F32, REF_F32}, REF_F32, 2},  {REF_GELU, {REF_F32}, REF_F32, 0},
    {REF_ADD, {REF_F16, REF_F16}, REF_F16, 3},       {REF_POW, {REF_F64, REF_F64}, REF_F64, 0},
    {REF_WHERE, {REF_BOOL, REF_U8, REF_U8}, REF_U8, 1}, {REF_ASTYPE, {REF_U8}, REF_F32, 1},
    {REF_COPY, {REF_F64}, REF_F64, 1},               {REF_FULL, {REF_F32}, REF_F32, 0},
    {REF_SIGMOID, {REF_BF16}, REF_F32, 0},           {REF_EQUAL, {REF_I64, REF_I32}, REF_BOOL, 2},
};
#define N_CASES (int)(sizeof cases / sizeof *cases)

static void make_case(trial *t, int c, rng *r) {
  int64_t shape[2] = {SANITIZED ? 311 : 1009, 1013}, strides[2]; /* some 10^6 elements; fewer where all is slow */
  memset(t, 0, sizeof *t);
  t->op = cases[c].op;
  if (cases[c].layout == 2) {
    shape[0] = SANITIZED ? 110001 : 340001;
    shape[1] = 3;
  }
  for (int k = 0; k < ref_op_describe(t->op)->n_in; k++) {
    strides[0] = 1;
    strides[1] = shape[0];
    if (cases[c].layout == 1 && k == 0) operand_describe(&t->in[k], cases[c].in[k], 2, shape, strides);
    else if (cases[c].layout == 2 && k == 1) operand_describe(&t->in[k], cases[c].in[k], 1, shape + 1, NULL);
    else operand_describe(&t->in[k], cases[c].in[k], 2, shape, NULL);
    operand_allocate(&t->in[k], 0, GUARD_NONE);
    operand_fill(&t->in[k], r);
  }
  strides[0] = 2 * shape[1];
  strides[1] = -2;
  operand_make(&t->out, cases[c].out, 2, shape, cases[c].layout == 3 ? strides : NULL, r);
}

/* Runs a case on an op and takes the output's bytes into `bytes` (memory of the operand's whole body). */
static quern_status run(trial *t, quern_op *op, unsigned char *bytes) {
  DLTensor *in[3] = {&t->in[0].t, &t->in[1].t, &t->in[2].t}, *out = &t->out.t;
  memset(body_of(&t->out), 0x77, body_bytes(&t->out));
  quern_status s = quern_op_call(op, ref_op_describe(t->op)->n_in, in, 1, &out, NULL);
  memcpy(bytes, body_of(&t->out), body_bytes(&t->out));
  return s;
}

static quern_op *op_of(quern_ctx *ctx, ref_op op) {
  quern_op *found = NULL;
  if (quern_op_find(ctx, ref_op_describe(op)->name, &found)) bail("%s", quern_last_error());
  return found;
}

/* ---- A host's parallel_for -------------------------------------------------------------------------------------- */

typedef struct host {
  int manner; /* 0 in order, 1 backwards, 2 one thread a slice, 3 four threads that share */
  atomic_int calls;
  _Atomic int64_t slices;
  atomic_int misuse;
  pthread_t caller;
} host;

typedef struct team {
  int64_t n, step, first;
  void (*slice)(void *arg, int64_t i);
  void *arg;
} team;

static void *team_run(void *arg) {
  team *t = arg;
  for (int64_t i = t->first; i < t->n; i += t->step) t->slice(t->arg, i);
  return NULL;
}

static void host_for(void *self, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  host *h = self;
  atomic_fetch_add(&h->calls, 1);
  atomic_fetch_add(&h->slices, n);
  if (n < 1 || !slice || !pthread_equal(pthread_self(), h->caller)) atomic_fetch_add(&h->misuse, 1);
  if (h->manner == 0) {
    for (int64_t i = 0; i < n; i++) slice(arg, i);
  } else if (h->manner == 1) {
    for (int64_t i = n; i-- > 0;) slice(arg, i);
  } else {
    int n_threads = h->manner == 2 ? (int)(n < 64 ? n : 64) : 4;
    pthread_t threads[64];
    team teams[64];
    pthread_attr_t small_stack;
    pthread_attr_init(&small_stack);
    pthread_attr_setstacksize(&small_stack, 64 * 1024 + 16384); /* a slice uses at most 32 KB */
    for (int i = 0; i < n_threads; i++) {
      teams[i] = (team){n, n_threads, i, slice, arg};
      if (pthread_create(&threads[i], &small_stack, team_run, &teams[i])) bail("no thread");
    }
    for (int i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
    pthread_attr_destroy(&small_stack);
  }
}

static void test_bits(void) {
  static const int32_t counts[] = {1, 2, 7};
  rng r;
  rng_seed(&r, 1);
  for (int c = 0; c < N_CASES; c++) {
    trial t;
    if (!has_op(cases[c].op)) continue;
    make_case(&t, c, &r);
    size_t bytes = body_bytes(&t.out);
    unsigned char *first = malloc(bytes), *other = malloc(bytes);
    const char *name = ref_op_describe(t.op)->name;
    group_begin("%s, case %d: the same bits for 1, 2, 7 threads, the pool and the host's", name, c);
    for (int i = 0; i < 3; i++) {
      quern_options options = {.size = sizeof options, .threads = counts[i]};
      quern_ctx *ctx = NULL;
      if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
      quern_op *op = op_of(ctx, t.op);
      quern_status s = run(&t, op, i == 0 ? first : other);
      group_count(1);
      if (s) group_fail("%s with %d threads: %s", name, counts[i], quern_last_error());
      else if (i && memcmp(first, other, bytes)) group_fail("%s: %d threads give other bits than one", name, counts[i]);
      quern_op_release(op);
      quern_ctx_release(ctx);
    }
    for (int manner = 0; manner < 4; manner++) {
      host h = {.manner = manner, .caller = pthread_self()};
      quern_options options = {.size = sizeof options, .threads = 5, .parallel_for = host_for, .host = &h};
      quern_ctx *ctx = NULL;
      if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
      quern_op *op = op_of(ctx, t.op);
      quern_status s = run(&t, op, other);
      group_count(1);
      if (s) group_fail("%s by the host's threads: %s", name, quern_last_error());
      else if (memcmp(first, other, bytes)) group_fail("%s: the host's threads (manner %d) give other bits", name, manner);
      if (h.misuse) group_fail("%s: parallel_for was misused", name);
      if (!SANITIZED && h.calls == 0) group_fail("%s: so many elements and parallel_for was not called", name);
      if (h.slices > 1024) group_fail("%s: %lld slices for 5 threads", name, (long long)h.slices);
      quern_op_release(op);
      quern_ctx_release(ctx);
    }
    /* And they are right, not only equal. */
    if (c == 0 || c == 1) {
      memcpy(body_of(&t.out), first, bytes);
      DLTensor *in[3] = {&t.in[0].t, &t.in[1].t, &t.in[2].t};
      ref_difference diff;
      ref_expect *expect = ref_eval_tensor(t.op, in, NULL, &t.out.t);
      group_count(1);
      if (!ref_check_tensor(&t.out.t, expect, &diff)) group_fail("%s: %" PRId64 " bad elements", name, diff.n_bad);
      free(expect);
    }
    group_end();
    free(first);
    free(other);
    trial_free(&t);
  }
}

static void test_small(void) {
  host h = {.manner = 0, .caller = pthread_self()};
  quern_options options = {.size = sizeof options, .threads = 4, .parallel_for = host_for, .host = &h};
  quern_ctx *ctx = NULL;
  rng r;
  rng_seed(&r, 2);
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  quern_op *op = op_of(ctx, REF_ADD);
  trial t = {.op = REF_ADD, .handle = op};
  operand_vector(&t.in[0], REF_F32, 500, &r);
  operand_vector(&t.in[1], REF_F32, 500, &r);
  operand_vector(&t.out, REF_F32, 500, &r);
  group_begin("500 elements");
  trial_run(&t);
  group_end();
  is_int(h.calls, 0, "small work stays on the caller");
  trial_free(&t);

  /* threads = 1 keeps large work there, too. */
  quern_ctx *single = NULL;
  options.threads = 1;
  if (quern_ctx_create(&options, &single)) bail("%s", quern_last_error());
  quern_op *alone = op_of(single, REF_ADD);
  make_case(&t, 0, &r);
  unsigned char *bytes = malloc(body_bytes(&t.out));
  is_int(run(&t, alone, bytes), QUERN_OK, "a million elements with threads = 1");
  is_int(h.slices > 1 ? 1 : 0, 0, "are not cut");
  free(bytes);
  trial_free(&t);
  quern_op_release(alone);
  quern_ctx_release(single);
  quern_op_release(op);
  quern_ctx_release(ctx);
}

/* ---- A host's parallel_for that breaks its promise -------------------------------------------------------------- */

enum { NONE, HALF, ALL_BUT_ONE, TWICE, BEYOND, BELOW, ONLY_BEYOND, OTHER_ARG, NULL_ARG, TOO_EARLY, LATER, N_BREACHES };
static const char *const breaches[] = {"runs nothing", "runs half", "leaves one out", "runs each twice", "goes beyond the end",
                                       "begins below 0", "runs numbers that are none alone", "passes another argument on",
                                       "passes NULL on", "returns before its threads are done", "runs them after its return"};

static struct late {
  int64_t n;
  void (*slice)(void *arg, int64_t i);
  void *arg;
  pthread_t thread;
  atomic_int may_run, is_joinable;
} late;

static void *run_late(void *unused) {
  while (!atomic_load(&late.may_run)) sched_yield();
  for (int64_t i = 0; i < late.n; i++) late.slice(late.arg, i);
  return unused;
}

static void breaking_for(void *self, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  const int breach = *(const int *)self;
  static char other[64];
  int64_t begin = 0, end = n;
  if (breach == NONE || breach == TOO_EARLY || breach == LATER) end = 0;
  if (breach == HALF) end = n / 2;
  if (breach == ALL_BUT_ONE) end = n - 1;
  if (breach == BEYOND) end = n + 3;
  if (breach == BELOW) begin = -2;
  if (breach == ONLY_BEYOND) begin = n, end = n + n;
  for (int64_t i = begin; i < end; i++) {
    slice(breach == OTHER_ARG ? other : breach == NULL_ARG ? NULL : arg, i);
    if (breach == TWICE) slice(arg, i);
  }
  if (breach == BEYOND) slice(arg, INT64_MAX), slice(arg, (int64_t)1 << 32);
  if (breach == BELOW) slice(arg, INT64_MIN), slice(arg, -((int64_t)1 << 32));
  if ((breach == TOO_EARLY || breach == LATER) && !late.is_joinable) {
    late.n = n;
    late.slice = slice;
    late.arg = arg;
    atomic_store(&late.may_run, breach == TOO_EARLY);
    late.is_joinable = pthread_create(&late.thread, NULL, run_late, NULL) == 0;
  }
}

/* An op of each kind that cuts its work. The output: of the input's shape; of one dimension, reduced; of the indices found. */
static const struct {
  const char *op;
  int n_in, param; /* 0: none */
  enum { SAME, REDUCED, FOUND } output;
} broken[] = {{"add", 2, 0, SAME},     {"gelu", 1, 0, SAME},            {"sum", 1, 2, REDUCED},
              {"mean", 1, 3, REDUCED}, {"cumulative_sum", 1, 1, SAME}, {"nonzero", 1, 0, FOUND}};

static void test_breaches(void) {
  enum { ROWS = 600, COLUMNS = 700 };
  float *a = malloc(sizeof *a * ROWS * COLUMNS);
  char *got = malloc(16 * ROWS * COLUMNS), *right = malloc(16 * ROWS * COLUMNS);
  int64_t shape[2] = {ROWS, COLUMNS}, found[2] = {0, 2};
  for (int i = 0; i < ROWS * COLUMNS; i++) {
    a[i] = (float)(i % 17) - 3;
    found[0] += a[i] != 0;
  }
  for (int breach = 0; breach < N_BREACHES; breach++) {
    quern_options options = {.size = sizeof options, .threads = 5, .parallel_for = breaking_for, .host = &breach};
    quern_ctx *ctx = NULL;
    if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
    group_begin("a parallel_for that %s: ARGUMENT, and nothing is out of bounds", breaches[breach]);
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
      quern_op *op = NULL, *own = NULL;
      if (quern_op_find(ctx, broken[k].op, &op) || quern_op_find(NULL, broken[k].op, &own)) continue;
      const quern_scalar param = QUERN_I64(broken[k].param);
      const int is_index = broken[k].output == FOUND, is_reduced = broken[k].output == REDUCED;
      int64_t reduced = broken[k].param == 3 ? 1 : shape[0]; /* bit k: dimension k is reduced */
      DLTensor t = {.data = a, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape}, *in[2] = {&t, &t};
      DLTensor result = {.data = right, .device = {kDLCPU, 0}, .ndim = broken[k].param == 3 ? 0 : is_reduced ? 1 : 2,
                         .shape = is_index ? found : is_reduced ? &reduced : shape, .dtype = is_index ? (DLDataType){kDLInt, 64, 1} : t.dtype}, *out = &result;
      quern_call call = {.size = sizeof call, .params = &param, .n_params = 1};
      const quern_call *given = broken[k].param ? &call : NULL;
      const size_t bytes = is_index ? (size_t)found[0] * 16 : (size_t)(is_reduced ? reduced : ROWS * COLUMNS) * 4;
      if (quern_op_call(own, broken[k].n_in, in, 1, &out, given)) bail("%s: %s", broken[k].op, quern_last_error());
      result.data = got;
      memset(got, 0x77, bytes + 16);
      group_count(1);
      const quern_status status = quern_op_call(op, broken[k].n_in, in, 1, &out, given);
      if (status != QUERN_E_ARGUMENT && breach != TOO_EARLY) group_fail("%s: no error", broken[k].op); /* it may have been in time */
      else if (status && !strstr(quern_last_error(), "parallel_for")) group_fail("%s: %s", broken[k].op, quern_last_error());
      memset(right + bytes, 0x77, 16);
      /* It fails when it counts, and nothing is written; or, where the slices that count were in time, after all is written. */
      if (is_index && status && (breach != TOO_EARLY || got[0] == 0x77)) memset(right, 0x77, bytes);
      if (late.is_joinable) { /* what runs now is refused */
        if (breach == LATER) memset(got, 0x33, bytes);
        if (breach == LATER) memset(right, 0x33, bytes);
        atomic_store(&late.may_run, 1);
        pthread_join(late.thread, NULL);
        late.is_joinable = 0;
      }
      if (memcmp(got, right, bytes + 16)) group_fail("%s: bytes that are wrong, or are not the output's", broken[k].op);
      quern_plan *plan = NULL;
      if (!is_index && quern_op_prepare(op, broken[k].n_in, in, 1, &out, given, &plan) == QUERN_OK) {
        void *from[2] = {a, a}, *to = got;
        group_count(1);
        if (quern_plan_run(plan, from, &to, NULL) != QUERN_E_ARGUMENT && breach != TOO_EARLY) group_fail("%s: a plan's run is no error", broken[k].op);
        quern_plan_release(plan);
      }
      if (late.is_joinable) {
        atomic_store(&late.may_run, 1);
        pthread_join(late.thread, NULL);
        late.is_joinable = 0;
      }
      quern_op_release(op);
      quern_op_release(own);
    }
    group_end();
    quern_ctx_release(ctx);
  }
  free(a);
  free(got);
  free(right);
}

/* ---- Calls from inside of slices -------------------------------------------------------------------------------- */

static quern_op *nested_op;
static atomic_int nested_bad;

/* Runs each slice, and beside it a call of its own. */
static void nesting_for(void *self, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  static _Thread_local int depth;
  (void)self;
  for (int64_t i = 0; i < n; i++) {
    slice(arg, i);
    if (depth) continue;
    depth++;
    float *a = malloc(sizeof *a * 300000);
    int64_t count = 300000;
    for (int k = 0; k < count; k++) a[k] = (float)k;
    DLTensor t = {.data = a, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &count}, *in[2] = {&t, &t},
        *out = &t;
    if (quern_op_call(nested_op, 2, in, 1, &out, NULL) || a[299999] != 599998.0f) atomic_fetch_add(&nested_bad, 1);
    free(a);
    depth--;
  }
}

static void test_nested(void) {
  quern_options options = {.size = sizeof options, .threads = 4, .parallel_for = nesting_for};
  quern_ctx *ctx = NULL;
  rng r;
  rng_seed(&r, 3);
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  nested_op = op_of(ctx, REF_ADD);
  trial t;
  make_case(&t, 0, &r);
  unsigned char *bytes = malloc(body_bytes(&t.out));
  is_int(run(&t, nested_op, bytes), QUERN_OK, "a call with slices that make calls");
  is_int(nested_bad, 0, "the inner ones are right");
  free(bytes);
  trial_free(&t);
  quern_op_release(nested_op);
  quern_ctx_release(ctx);
}

/* ---- Many callers ----------------------------------------------------------------------------------------------- */

static atomic_int callers_bad;
static unsigned char *wanted[N_CASES];
static trial models[N_CASES];

static void *caller(void *arg) {
  int me = (int)(intptr_t)arg;
  for (int i = 0; i < (SANITIZED ? 1 : 3) * N_CASES; i++) {
    int c = (i + me) % N_CASES;
    trial *t = &models[c];
    if (!wanted[c]) continue;
    operand mine;
    operand_describe(&mine, t->out.d, t->out.t.ndim, t->out.shape, t->out.strides);
    operand_allocate(&mine, 0, GUARD_NONE);
    memset(body_of(&mine), 0x77, body_bytes(&mine));
    DLTensor *in[3] = {&t->in[0].t, &t->in[1].t, &t->in[2].t}, *out = &mine.t;
    quern_op *op = NULL;
    if (quern_op_find(NULL, ref_op_describe(t->op)->name, &op)) atomic_fetch_add(&callers_bad, 1);
    if (quern_op_call(op, ref_op_describe(t->op)->n_in, in, 1, &out, NULL)) atomic_fetch_add(&callers_bad, 1);
    if (memcmp(body_of(&mine), wanted[c], body_bytes(&mine))) atomic_fetch_add(&callers_bad, 1);
    /* Errors of one thread stay there. */
    if (quern_op_call(op, 9, in, 1, &out, NULL) != QUERN_E_ARGUMENT ||
        !strstr(quern_last_error(), ref_op_describe(t->op)->name)) {
      atomic_fetch_add(&callers_bad, 1);
    }
    quern_op_release(op);
    operand_free(&mine);
  }
  return NULL;
}

static void test_callers(void) {
  pthread_t threads[12];
  rng r;
  rng_seed(&r, 4);
  for (int c = 0; c < N_CASES; c++) {
    if (!has_op(cases[c].op)) continue;
    make_case(&models[c], c, &r);
    wanted[c] = malloc(body_bytes(&models[c].out));
    if (run(&models[c], the_op(models[c].op), wanted[c])) bail("%s", quern_last_error());
  }
  for (int i = 0; i < 12; i++) pthread_create(&threads[i], NULL, caller, (void *)(intptr_t)i);
  for (int i = 0; i < 12; i++) pthread_join(threads[i], NULL);
  is_int(callers_bad, 0, "12 threads call the default context at once");
  for (int c = 0; c < N_CASES; c++) {
    trial_free(&models[c]);
    free(wanted[c]);
  }
}

/* Contexts come and go while others work. */
static void *churn(void *arg) {
  (void)arg;
  for (int i = 0; i < 40; i++) {
    quern_options options = {.size = sizeof options, .threads = 1 + i % 4};
    quern_ctx *ctx = NULL;
    quern_op *op = NULL;
    int64_t n = i % 3 ? 100 : 200000;
    float *a = calloc((size_t)n, sizeof *a);
    DLTensor t = {.data = a, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &n}, *in[1] = {&t}, *out = &t;
    if (quern_ctx_create(&options, &ctx) || quern_op_find(ctx, "exp", &op)) atomic_fetch_add(&callers_bad, 1);
    quern_ctx_release(ctx);
    if (quern_op_call(op, 1, in, 1, &out, NULL) || a[0] != 1 || a[n - 1] != 1) atomic_fetch_add(&callers_bad, 1);
    quern_op_release(op);
    free(a);
  }
  return NULL;
}

static void test_churn(void) {
  pthread_t threads[6];
  callers_bad = 0;
  for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, churn, NULL);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  is_int(callers_bad, 0, "240 contexts made, used and released by 6 threads");
}

/* The threads of this process that may not run on all the cores that this one may. */
static int bound_threads(void) {
  char path[300], line[1024], own[1024] = "";
  int n = 0;
  DIR *threads = opendir("/proc/self/task");
  if (!threads) bail("no /proc/self/task");
  for (struct dirent *entry; (entry = readdir(threads));) {
    snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
    FILE *f = fopen(path, "r");
    while (f && fgets(line, sizeof line, f))
      if (!strncmp(line, "Cpus_allowed:", 13)) {
        if (!own[0]) strcpy(own, line); /* the first is the process's */
        n += strcmp(own, line) != 0;
      }
    if (f) fclose(f);
  }
  closedir(threads);
  return n;
}

/* Workers that leave the caller's core for a moment may be on it again later. */
static void test_cores(void) {
  int n = 1;
  for (int i = 0; n && i < 200; i++) {
    n = bound_threads();
    usleep(1000);
  }
  is_int(n, 0, "each worker may run on every core that the process may");
}

int main(void) {
  test_bits();
  test_small();
  test_breaches();
  test_nested();
  test_callers();
  test_churn();
  test_cores();
  return done_testing();
}
