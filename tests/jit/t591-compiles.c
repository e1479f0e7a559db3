/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t591-compiles: when expressions are compiled: plans before and after, held compilers, many threads, QUERN_JIT; how often a
 * compiler runs; what may be released when, the process with it. */
#include <signal.h>
#include <stdatomic.h>

#include "expressions.h"

static quern_ctx *interpreting; /* nothing is compiled for it */

/* ---- Interpreted, then compiled --------------------------------------------------------------------------------- */

#define SUBJECT "y = gelu(a * b + c) * d; z = y > c"

/* Whether a call (of a plan, or of an op) runs compiled code: without the right to execute what is mapped for it, it
 * dies. */
typedef struct execution {
  quern_plan *plan;
  quern_op *op;
  operands *o;
} execution;

static void on_fault(int signal) {
  (void)signal;
  _exit(42);
}

static int forbid_and_run(void *arg) {
  const execution *e = arg;
  void *in[4], *out[2];
  char line[4096];
  FILE *maps = fopen("/proc/self/maps", "r");
  int n = 0;
  stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  struct sigaction action = {.sa_handler = on_fault, .sa_flags = SA_ONSTACK};
  sigaltstack(&stack, NULL);
  sigaction(SIGSEGV, &action, NULL);
  while (maps && fgets(line, sizeof line, maps)) {
    unsigned long low, high, inode;
    char rights[8];
    if (sscanf(line, "%lx-%lx %7s %*s %*s %lu", &low, &high, rights, &inode) != 4) continue;
    if (rights[2] != 'x' || inode || strchr(line, '[')) continue;
    mprotect((void *)low, high - low, PROT_READ);
    n++;
  }
  if (maps) fclose(maps);
  for (int k = 0; k < 4; k++) in[k] = e->o->in[k].t.data;
  for (int k = 0; k < 2; k++) out[k] = e->o->out[k].t.data;
  const quern_status status = e->plan ? quern_plan_run(e->plan, in, out, NULL) : operands_call(e->op, e->o, NULL);
  return status ? 43 : n ? 0 : 44;
}

static void test_plans(void) {
  enum { N = 3001 };
  rng r;
  operands o, first;
  quern_plan *early = NULL, *late = NULL;
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *op = op_from(ctx, SUBJECT);
  rng_seed(&r, 9);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", N, &r);
  void *in[4], *out[2];
  for (int k = 0; k < 4; k++) in[k] = o.in[k].t.data;
  for (int k = 0; k < 2; k++) out[k] = o.out[k].t.data;
  const int is_held = strcmp(compiler, "clang") == 0;
  if (is_held) hold_compiles(300);
  is_int(quern_op_prepare(op, 4, o.ins, 2, o.outs, NULL, &early), QUERN_OK, "a plan before there is code");
  if (is_held) {
    is_str(tier_of(op, &o, NULL), "interpreter", "  tier");
    has_str(explained(op, &o, NULL, "reason"), "being compiled", "  reason");
  } else {
    skip(2, "only Clang in process can be held");
  }
  is_int(quern_plan_run(early, in, out, NULL), QUERN_OK, "  runs, interpreted");
  operands_vector(&first, "f32 f32 f32 f32", "f32 bool", N, &r);
  for (int k = 0; k < 2; k++)
    memcpy(first.out[k].t.data, o.out[k].t.data, (size_t)N * (size_t)ref_dtype_size(o.out[k].d));
  ok(becomes(op, &o, NULL, compiler), "  the code comes");
  hold_compiles(0);
  memset(out[0], 0x55, N * 4), memset(out[1], 0x55, N);
  is_int(quern_plan_run(early, in, out, NULL), QUERN_OK, "  the same plan runs on");
  ok(same_elements(&o.out[0], &first.out[0]) && same_elements(&o.out[1], &first.out[1]), "  with the same bits");
  is_int(quern_op_prepare(op, 4, o.ins, 2, o.outs, NULL, &late), QUERN_OK, "a plan when there is code");
  memset(out[0], 0x55, N * 4), memset(out[1], 0x55, N);
  is_int(quern_plan_run(late, in, out, NULL), QUERN_OK, "  runs");
  ok(same_elements(&o.out[0], &first.out[0]) && same_elements(&o.out[1], &first.out[1]), "  with the same bits");
  if (SANITIZED) {
    skip(4, "a sanitizer forks and faults in ways of its own");
  } else {
    quern_op *plain = op_from(interpreting, SUBJECT);
    is_int(in_child(forbid_and_run, &(execution){.plan = early, .o = &o}), 42, "the early plan runs the compiled code");
    is_int(in_child(forbid_and_run, &(execution){.plan = late, .o = &o}), 42, "so does the late one");
    is_int(in_child(forbid_and_run, &(execution){.op = op, .o = &o}), 42, "and a call");
    is_int(in_child(forbid_and_run, &(execution){.op = plain, .o = &o}), 0, "what is interpreted does not");
    quern_op_release(plain);
  }
  quern_op_release(op);
  quern_ctx_release(ctx);
  memset(out[0], 0x55, N * 4), memset(out[1], 0x55, N);
  is_int(quern_plan_run(early, in, out, NULL), QUERN_OK, "the plan outlives its op and its context");
  ok(same_elements(&o.out[0], &first.out[0]), "  and its code");
  quern_plan_release(early);
  quern_plan_release(late);
  operands_free(&o);
  operands_free(&first);
}

static void test_async(void) {
  rng r;
  operands o;
  rng_seed(&r, 10);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  hold_compiles(500);
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  double start = now_ms();
  quern_op *op = op_from(ctx, SUBJECT);
  const quern_status status = operands_call(op, &o, NULL);
  const double first = now_ms() - start;
  is_int(status, QUERN_OK, "with the compiler held for 500 ms");
  ok(first < 100, "  the first result comes after %.2f ms (10 wanted, 100 allowed)", first);
  is_str(tier_of(op, &o, NULL), "interpreter", "  from the interpreter");
  is_str(explained(op, &o, NULL, "compiles"), "0", "  nothing was compiled by then");
  quern_op *other = op_from(ctx, "y = a * b - c * d; z = y < 0");
  start = now_ms();
  is_int(operands_call(other, &o, NULL), QUERN_OK, "a second expression");
  ok(now_ms() - start < 100, "  its first result comes after %.2f ms (1 wanted, 100 allowed)", now_ms() - start);
  ok(becomes(op, &o, NULL, compiler), "the first one is compiled");
  ok(now_ms() - start > 300, "  when it may be");
  is_int(operands_call(op, &o, NULL), QUERN_OK, "  a later call");
  is_str(explained(op, &o, NULL, "compiles"), "1", "  one compile");
  ok(strtod(explained(op, &o, NULL, "compile_ms"), NULL) > 0, "  that took %s ms",
     explained(op, &o, NULL, "compile_ms"));
  hold_compiles(0); /* the second one's turn will not have come */
  quern_op_release(op);
  quern_op_release(other);
  quern_ctx_release(ctx);
  operands_free(&o);
}

/* ---- Threads ---------------------------------------------------------------------------------------------------- */

#define N_THREADS 32

typedef struct crowd {
  quern_ctx *ctx;
  const char *const *texts;
  int n_texts;
  pthread_barrier_t barrier;
  atomic_int n_failed, n_next;
  operands reference;
} crowd;

static void *one_of_many(void *arg) {
  crowd *c = arg;
  rng r;
  operands o;
  quern_op *op = NULL;
  const int me = atomic_fetch_add(&c->n_next, 1);
  rng_seed(&r, 11);
  operands_vector(&o, "f32 f32", "f32", 2000, &r);
  pthread_barrier_wait(&c->barrier);
  if (quern_op_compile(c->ctx, c->texts[me % c->n_texts], &op) || operands_call(op, &o, NULL) ||
      !same_elements(&o.out[0], &c->reference.out[0]))
    atomic_fetch_add(&c->n_failed, 1);
  if (!becomes(op, &o, NULL, compiler) || strcmp(explained(op, &o, NULL, "compiles"), "1") != 0) {
    diag("thread %d: tier %s, compiles %s", me, tier_of(op, &o, NULL), explained(op, &o, NULL, "compiles"));
    atomic_fetch_add(&c->n_failed, 1);
  }
  if (operands_call(op, &o, NULL) || !same_elements(&o.out[0], &c->reference.out[0])) atomic_fetch_add(&c->n_failed, 1);
  quern_op_release(op);
  operands_free(&o);
  return NULL;
}

typedef struct ear {
  atomic_int n_compiled, n_warnings;
  char warning[512];
} ear;

static void hear(void *host, int level, const char *text) {
  ear *e = host;
  if (strstr(text, "compiled by")) atomic_fetch_add(&e->n_compiled, 1);
  if (level > 1) return;
  atomic_fetch_add(&e->n_warnings, 1);
  snprintf(e->warning, sizeof e->warning, "%s", text);
}

static void test_threads(int32_t jit, const char *name) {
  /* One kernel: names and blanks do not make another. */
  static const char *const texts[] = {"y = tanh(x * w) + 7", "out = tanh(a*b) +7;", "named: other = tanh ( q * r ) + 7",
                                      "r=tanh(x/*the*/*w)+7"};
  pthread_t threads[N_THREADS];
  ear heard = {0};
  rng r;
  crowd c = {.texts = texts, .n_texts = 4};
  c.ctx = ctx_with((quern_options){.jit = jit, .threads = 1, .cc = compiler_option, .log = hear, .host = &heard});
  rng_seed(&r, 11);
  operands_vector(&c.reference, "f32 f32", "f32", 2000, &r);
  quern_op *op = op_from(interpreting, texts[0]);
  if (operands_call(op, &c.reference, NULL)) bail("%s", quern_last_error());
  quern_op_release(op);
  pthread_barrier_init(&c.barrier, NULL, N_THREADS);
  for (int i = 0; i < N_THREADS; i++)
    if (pthread_create(&threads[i], NULL, one_of_many, &c)) bail("no thread");
  for (int i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
  is_int(c.n_failed, 0, "%s: 32 threads on one new expression, written in four ways: right results", name);
  quern_ctx_release(c.ctx);
  is_int(heard.n_compiled, 1, "  one compile");
  is_int(heard.n_warnings, 0, "  no warning");
  pthread_barrier_destroy(&c.barrier);
  operands_free(&c.reference);
}

/* ---- QUERN_JIT -------------------------------------------------------------------------------------------------- */

static void test_variable(void) {
  static const char *const names[] = {"off", "sync", "async"};
  rng r;
  operands o;
  rng_seed(&r, 12);
  operands_vector(&o, "f32", "f32", 100, &r);
  for (int i = 0; i < 3; i++) {
    setenv("QUERN_JIT", names[i], 1);
    quern_ctx *ctx = ctx_of(QUERN_JIT_DEFAULT);
    is_str(described(ctx, "jit"), names[i], "QUERN_JIT=%s", names[i]);
    quern_op *op = op_from(ctx, "x * x + 3");
    is_int(operands_call(op, &o, NULL), QUERN_OK, "  a call");
    if (i == 0 || (i == 1 && compiler))
      is_str(tier_of(op, &o, NULL), i ? compiler : "interpreter", "  runs as it says");
    quern_op_release(op);
    quern_ctx_release(ctx);
    ctx = ctx_of(QUERN_JIT_OFF);
    is_str(described(ctx, "jit"), "off", "  the host's own word goes before it");
    quern_ctx_release(ctx);
  }
  setenv("QUERN_JIT", "never", 1);
  ear heard = {0};
  quern_ctx *ctx = ctx_with((quern_options){.cc = compiler_option, .log = hear, .host = &heard});
  is_str(described(ctx, "jit"), "async", "QUERN_JIT=never: async");
  for (int i = 0; i < 3; i++) {
    char text[40];
    snprintf(text, sizeof text, "x * x + %d", i);
    quern_op *op = op_from(ctx, text);
    operands_call(op, &o, NULL);
    quern_op_release(op);
  }
  is_int(heard.n_warnings, 1, "  one warning");
  has_str(heard.warning, "never", "  names it");
  quern_ctx_release(ctx);
  unsetenv("QUERN_JIT");
  ctx = ctx_of(QUERN_JIT_DEFAULT);
  is_str(described(ctx, "jit"), "async", "unset: async");
  quern_ctx_release(ctx);
  quern_options bad = {.size = sizeof bad, .jit = 7};
  is_int(quern_ctx_create(&bad, &ctx), QUERN_E_ARGUMENT, "a mode that is none");
  operands_free(&o);
}

/* ---- Releases --------------------------------------------------------------------------------------------------- */

static void test_releases(void) {
  rng r;
  operands o, reference;
  const int is_held = strcmp(compiler, "clang") == 0;
  rng_seed(&r, 13);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  operands_vector(&reference, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  for (int k = 0; k < 4; k++) memcpy(reference.in[k].t.data, o.in[k].t.data, 4000);
  quern_op *plain = op_from(interpreting, SUBJECT);
  operands_call(plain, &reference, NULL);
  quern_op_release(plain);

  if (is_held) hold_compiles(200);
  quern_ctx *ctx = ctx_of(QUERN_JIT_ASYNC);
  quern_op *op = op_from(ctx, SUBJECT);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "an op is released while its code is being compiled");
  quern_op_release(op);
  sleep_ms(300);
  op = op_from(ctx, SUBJECT);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "  the same expression once more");
  ok(becomes(op, &o, NULL, compiler), "  comes to code");
  is_str(explained(op, &o, NULL, "compiles"), "1", "  that was not made twice");

  quern_op *late = op_from(ctx, "y = a + b * c - d; z = y == 0");
  is_int(operands_call(late, &o, NULL), QUERN_OK, "an op with its code being compiled");
  quern_ctx_release(ctx);
  ok(becomes(late, &o, NULL, compiler), "  gets it though its context was released");
  is_int(operands_call(op, &o, NULL), QUERN_OK, "  ops outlive the release of their context");
  ok(same_elements(&o.out[0], &reference.out[0]), "  with all they have");
  quern_op_release(op);
  quern_op_release(late);

  if (is_held) hold_compiles(600);
  ctx = ctx_of(QUERN_JIT_ASYNC);
  for (int i = 0; i < 20; i++) {
    char text[64];
    snprintf(text, sizeof text, "y = a * b + c * d + %d; z = y > 0", i);
    op = op_from(ctx, text);
    if (operands_call(op, &o, NULL)) bail("%s", quern_last_error());
    quern_op_release(op);
  }
  sleep_ms(30); /* the first is under way */
  double start = now_ms();
  quern_ctx_release(ctx);
  if (is_held)
    ok(now_ms() - start < 300, "a context with 20 compiles to come is gone after %.1f ms", now_ms() - start);
  else
    skip(1, "only Clang in process can be held");
  hold_compiles(0);
  ctx = ctx_of(QUERN_JIT_SYNC);
  op = op_from(ctx, SUBJECT);
  is_int(operands_call(op, &o, NULL), QUERN_OK, "another context compiles after that");
  is_str(tier_of(op, &o, NULL), compiler, "  tier");
  ok(same_elements(&o.out[0], &reference.out[0]) && same_elements(&o.out[1], &reference.out[1]), "  the same bits");
  quern_op_release(op);
  quern_ctx_release(ctx);
  operands_free(&o);
  operands_free(&reference);
}

/* ---- The end of the process ------------------------------------------------------------------------------------- */

/* What this program does when it is given a number: asks for code, and ends so many microseconds later. */
static int ends_soon(int us) {
  rng r;
  operands o;
  rng_seed(&r, 20);
  operands_vector(&o, "f32 f32 f32 f32", "f32 bool", 1000, &r);
  if (SANITIZED && strncmp(described(NULL, "clang"), "not found", 9) != 0) { /* see test_exit */
    operands first;
    quern_op *op = op_from(NULL, "y = a * 5 - 2");
    operands_vector(&first, "f32", "f32", 100, &r);
    if (operands_call(op, &first, NULL) || !becomes(op, &first, NULL, "clang")) return 2;
    operands_free(&first);
    quern_op_release(op);
  }
  quern_op *op = op_from(NULL, SUBJECT), *other = op_from(NULL, "y = exp(a) * tanh(b) + c; z = d > 0");
  if (operands_call(op, &o, NULL) || operands_call(other, &o, NULL)) return 1;
  usleep((useconds_t)us);
  operands_free(&o);
  quern_op_release(op);
  quern_op_release(other);
  return 0;
}

static int run_again(void *arg) {
  if (!freopen("/dev/null", "w", stdout) || !freopen("/dev/null", "w", stderr)) return 99;
  execl("/proc/self/exe", "t591-compiles", (const char *)arg, (char *)NULL);
  return 98;
}

/* From when nothing is loaded to when all is compiled. */
static void test_exit(void) {
  enum { N = 28 };
  char us[16];
  unsetenv("QUERN_JIT");
  hold_compiles(0);
  if (SANITIZED && strcmp(compiler, "clang") == 0) /* module.c says why */
    skip(1, "the process ends while Clang is being opened: a sanitizer lets LLVM's destructors run then");
  group_begin("the process ends while code is being compiled");
  for (int i = 0; i < N; i++) {
    snprintf(us, sizeof us, "%d", i * 3500);
    const double start = now_ms();
    const int status = in_child(run_again, us);
    group_count(1);
    if (status == -1) {
      group_fail("%s us after it asked: it hangs", us);
      break;
    }
    if (status) group_fail("%s us after it asked: %s %d", us, status > 1000 ? "signal" : "status", status % 1000);
    if (!SANITIZED && now_ms() - start > 5000) group_fail("%s us after it asked: it ends after %.0f ms", us, now_ms() - start);
  }
  group_end();
}

int main(int argc, char **argv) {
  forget_environment();
  if (argc == 2) return ends_soon(atoi(argv[1]));
  find_compiler();
  interpreting = ctx_of(QUERN_JIT_OFF);
  if (compiler) {
    test_plans();
    if (strcmp(compiler, "clang") == 0)
      test_async();
    else
      skip(1, "only Clang in process can be held");
    test_threads(QUERN_JIT_SYNC, "sync");
    test_threads(QUERN_JIT_ASYNC, "async");
    test_releases();
    test_exit();
  } else {
    skip(1, "no compiler of kernels is here");
  }
  test_variable();
  quern_ctx_release(interpreting);
  return done_testing();
}
