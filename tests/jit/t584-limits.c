/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t584-limits: what texts of others may cost: compile bombs, large compiles beside small ones, the end of a process that compiles, specs
 * without end, forks meanwhile; the limits of quern_options; quern_ctx_cancel. */
#include <stdatomic.h>

#include "expressions.h"

#define N 64
#define STEPS 40000000 /* a third of what dear_spec(20) takes with its derivatives, half of what dear_spec(60) takes without */

/* TERM + TERM + ..., '@' in a term being its number; static. */
static const char *sum_of(const char *term, int n) {
  static char text[65536];
  size_t at = 0;
  for (int k = 0; k < n; k++) {
    if (k) at += (size_t)sprintf(text + at, " + ");
    for (const char *c = term; *c; c++) {
      if (*c == '@')
        at += (size_t)sprintf(text + at, "%d", k);
      else
        text[at++] = *c;
    }
  }
  text[at] = 0;
  return text;
}

static void make(operands *o, const char *in, const char *out) {
  rng r;
  rng_seed(&r, 5);
  operands_vector(o, in, out, N, &r);
}

/* Calls an expression of a context; returns the milliseconds. tier, reason: what explain says then. */
static double run_in(quern_ctx *ctx, const char *text, const char *in, const char *out, char tier[64], char reason[300]) {
  operands o;
  quern_op *op = op_from(ctx, text);
  make(&o, in, out);
  const double start = now_ms();
  is_int(operands_call(op, &o, NULL), QUERN_OK, "a call");
  const double ms = now_ms() - start;
  snprintf(tier, 64, "%s", tier_of(op, &o, NULL));
  snprintf(reason, 300, "%s", explained(op, &o, NULL, "reason"));
  quern_op_release(op);
  operands_free(&o);
  return ms;
}

/* ---- Bombs ------------------------------------------------------------------------------------------------------ */

static void test_bombs(void) {
  char tier[64], reason[300];
  quern_ctx *ctx = ctx_of(QUERN_JIT_SYNC);
  static const struct {
    const char *term, *in, *out;
    int n;
  } rows[] = {{"gcd(x + @, z)", "i32 i32", "i32", 600}, {"rem(x + @, z)", "f32 f32", "f32", 600}};
  for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
    const double ms = run_in(ctx, sum_of(rows[k].term, rows[k].n), rows[k].in, rows[k].out, tier, reason);
    ok(ms < 10000, "%d terms of %s: %.0f ms", rows[k].n, rows[k].term, ms);
    is_str(tier, compiler, "  compiled");
  }
  quern_ctx_release(ctx);

  /* what costs too much stays interpreted, and says so */
  ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .cc = compiler_option, .compile_cost_limit = 50});
  run_in(ctx, sum_of("x * @.5", 40), "f32", "f32", tier, reason);
  is_str(tier, "interpreter", "above the limit of costs");
  has_str(reason, "more than 50 (compile_cost_limit)", "  reason");
  run_in(ctx, sum_of("x * @.5", 10), "f32", "f32", tier, reason);
  is_str(tier, compiler, "below it");
  quern_ctx_release(ctx);
  if (strcmp(compiler, "clang") != 0) return;
  ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .compile_ms_limit = 20});
  run_in(ctx, sum_of("sin(x + @)", 20), "f32", "f32", tier, reason);
  is_str(tier, "interpreter", "a compile that takes longer than it may");
  has_str(reason, "compile_ms_limit", "  reason");
  quern_ctx_release(ctx);
}

/* ---- Beside one another, and the end ---------------------------------------------------------------------------- */

/* Starts n large compiles, each held. */
static void start_large(quern_ctx *ctx, operands *o, quern_op **ops, int n) {
  static const char *const terms[] = {"sin(x * 1.5 + @)", "sin(x * 2.5 + @)", "sin(x * 3.5 + @)"};
  for (int k = 0; k < n; k++) {
    ops[k] = op_from(ctx, sum_of(terms[k], 12));
    is_int(operands_call(ops[k], o, NULL), QUERN_OK, "a large expression is interpreted");
  }
}

static atomic_int is_over;

/* Calls a large expression, and waits for its code behind the others. */
static void *waits(void *ctx) {
  operands o;
  quern_op *op = op_from(ctx, "sin(x) * sin(x + 1) * sin(x + 2) * sin(x + 3) * sin(x + 4) * sin(x + 5) * sin(x + 6) * sin(x + 7) * sin(x + 8)");
  make(&o, "f32", "f32");
  is_int(operands_call(op, &o, NULL), QUERN_OK, "a call that waits");
  atomic_store(&is_over, 1);
  quern_op_release(op);
  operands_free(&o);
  return NULL;
}

static void test_beside(void) {
  char tier[64], reason[300];
  quern_op *ops[3];
  operands o;
  quern_ctx *large = ctx_of(QUERN_JIT_ASYNC), *small = ctx_of(QUERN_JIT_SYNC);
  make(&o, "f32", "f32");
  setenv("QUERN_TEST_COMPILER", "large=8000", 1);
  start_large(large, &o, ops, 3);
  sleep_ms(500);
  const double ms = run_in(small, "x * 3 + 1", "f32", "f32", tier, reason);
  is_str(tier, "clang", "a small compile beside a large one");
  ok(ms < 2000, "  does not wait for it: %.0f ms", ms);
  quern_ctx *waiting = ctx_of(QUERN_JIT_SYNC);
  pthread_t thread;
  const double before = now_ms();
  if (pthread_create(&thread, NULL, waits, waiting)) bail("no thread");
  for (; !atomic_load(&is_over) && now_ms() - before < 10000; sleep_ms(100)) quern_ctx_cancel(waiting);
  pthread_join(thread, NULL);
  ok(now_ms() - before < 5000, "who waits for a compile that is cancelled goes on: %.0f ms", now_ms() - before);
  quern_ctx_release(waiting);
  has_str(explained(ops[0], &o, NULL, "reason"), "being compiled", "  the one under way is not cancelled");
  const double start = now_ms();
  for (int k = 0; k < 3; k++) quern_op_release(ops[k]);
  quern_ctx_release(large);
  quern_ctx_release(small);
  ok(now_ms() - start < 1000, "a context is released while it compiles: %.0f ms", now_ms() - start);
  unsetenv("QUERN_TEST_COMPILER");
  operands_free(&o);
}

UNUSED static int ends_while_compiling(void *arg) {
  operands o;
  quern_op *op = op_from(ctx_of(QUERN_JIT_ASYNC), sum_of("pow(x + @, z)", 18)); /* seconds */
  (void)arg;
  make(&o, "f32 f32", "f32");
  if (operands_call(op, &o, NULL)) _exit(2);
  for (int k = 0; k < 3000 && strcmp(explained(op, &o, NULL, "reason"), "being compiled") != 0; k++) sleep_ms(1);
  sleep_ms(900);
  exit(strcmp(tier_of(op, &o, NULL), "interpreter") != 0);
}

UNUSED static void test_end(void) {
  const double start = now_ms();
  const int status = in_child(ends_while_compiling, NULL);
  ok(status == 0 || status == 1, "exit during a compile: %d", status);
  ok(now_ms() - start < 900 + 2000, "  waits at most a second: %.0f ms", now_ms() - start - 900);
}

/* ---- Specs ------------------------------------------------------------------------------------------------------ */

/* A spec with derivatives that take long. */
UNUSED static char *dear_spec(int n) {
  char *text = malloc(1 << 20);
  size_t at = 0;
  for (int k = 0; k < n; k++) {
    at += (size_t)sprintf(text + at, "unary \"dear.f%d\" { doc = \"A test.\", dtypes = floating, body = [[ ", k);
    for (int j = 0; j < 20; j++) at += (size_t)sprintf(text + at, "%stanh(x * %d.5 + %d)", j ? " * " : "", j, k);
    at += (size_t)sprintf(text + at, " ]] }\n");
  }
  return text;
}

UNUSED static char *nested_spec(int depth) {
  char *text = malloc(1 << 16);
  size_t at = 0;
  for (int k = 0; k < depth; k++)
    at += (size_t)sprintf(text + at, "func \"deep_%d\" { args = \"x\", body = [[ %s%d(x * %d.5) * %s%d(x + %d) ]] }\n", k, k ? "deep_" : "exp", k ? k - 1 : 2, k,
                          k ? "deep_" : "exp", k ? k - 1 : 2, k);
  sprintf(text + at, "unary \"deep.f\" { doc = \"A test.\", dtypes = floating, body = [[ deep_%d(x) ]] }\n", depth - 1);
  return text;
}

UNUSED static void find_all_derivatives(quern_ctx *ctx, int n) {
  const int32_t before = quern_op_count(ctx);
  char name[64];
  double most = 0;
  group_begin("  each derivative is made when it is asked for");
  for (int k = 0; k < n; k++) {
    const double start = now_ms();
    quern_op *op = NULL;
    snprintf(name, sizeof name, "dear.f%d_backward", k);
    group_count(1);
    if (quern_op_find(ctx, name, &op)) group_fail("%s: %s", name, quern_last_error());
    quern_op_release(op);
    if (now_ms() - start > most) most = now_ms() - start;
  }
  if (quern_op_count(ctx) != before + n) group_fail("%d ops, before %d", quern_op_count(ctx), before);
  group_end();
  diag("the longest took %.0f ms", most);
}

static quern_ctx *shared_ctx;
static atomic_int load_status;

UNUSED static void *loads(void *arg) {
  atomic_store(&load_status, load_spec(shared_ctx, "dear", arg));
  return NULL;
}

/* The child makes its generator anew. */
UNUSED static int uses_spec(void *arg) {
  operands o;
  quern_op *op = op_from(shared_ctx, "y = ours.twice(x) + 1");
  (void)arg;
  make(&o, "f32", "f32");
  if (operands_call(op, &o, NULL)) return 2;
  if (((float *)o.out[0].t.data)[3] != 2 * ((float *)o.in[0].t.data)[3] + 1) return 3;
  if (load_spec(shared_ctx, "more", "unary \"ours.more\" { doc = \"A test.\", dtypes = floating, body = [[ ours.twice(x) ]] }")) return 4;
  if (strcmp(tier_of(op, &o, NULL), compiler) != 0) return 5;
  for (int k = 0; k < 2; k++) { /* a derivative that its parent had made, and one of its own */
    quern_op *backward = NULL;
    if (quern_op_find(shared_ctx, k ? "ours.more_backward" : "ours.twice_backward", &backward) || operands_call(backward, &o, NULL)) return 6 + k;
    if (((float *)o.out[0].t.data)[3] != 2 * ((float *)o.in[0].t.data)[3]) return 8 + k;
  }
  return 0;
}

UNUSED static void test_specs(void) {
  pthread_t thread;
  char *dear = dear_spec(20);
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .cc = compiler_option, .spec_step_limit = STEPS});
  double start = now_ms();
  is_int(load_spec(ctx, "dear", dear), QUERN_OK, "a spec with derivatives that take long");
  diag("%.0f ms", now_ms() - start);
  find_all_derivatives(ctx, 20);
  quern_ctx_release(ctx);
  free(dear);

  ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .spec_step_limit = STEPS / 18});
  dear = dear_spec(1);
  is_int(load_spec(ctx, "dear", dear), QUERN_OK, "one with less to spend");
  for (int k = 0; k < 2; k++) {
    quern_op *op = NULL;
    is_int(quern_op_find(ctx, "dear.f0_backward", &op), QUERN_E_LIMIT, "  not its derivative, %s", k ? "again" : "where it is asked for");
    has_str(quern_last_error(), "steps of work (spec_step_limit)", "    said");
  }
  free(dear);
  dear = nested_spec(8);
  is_int(load_spec(ctx, "nested", dear), QUERN_E_LIMIT, "functions nested 8 deep, twice each");
  free(dear);
  dear = nested_spec(3);
  is_int(load_spec(ctx, "nested", dear), QUERN_OK, "  3 deep");
  quern_ctx_release(ctx);
  free(dear);

  dear = dear_spec(60);
  ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .cc = compiler_option, .spec_step_limit = STEPS});
  start = now_ms();
  is_int(load_spec(ctx, "dear", dear), QUERN_E_LIMIT, "a spec that takes long");
  diag("%.0f ms", now_ms() - start);
  has_str(quern_last_error(), "(spec_step_limit)", "  said");
  is_int(load_spec(ctx, "ours", "unary \"ours.twice\" { doc = \"A test.\", dtypes = floating, body = [[ x + x ]] }"), QUERN_OK, "the next one loads");
  quern_op_release(op_named(ctx, "ours.twice_backward"));

  shared_ctx = ctx;
  if (pthread_create(&thread, NULL, loads, dear)) bail("no thread");
  sleep_ms(150);
  fflush(stdout);
  const double before = now_ms();
  const pid_t pid = fork();
  if (pid == 0) _exit(uses_spec(NULL));
  const double ms = now_ms() - before;
  ok(ms < 500, "a fork while another thread loads it: %.0f ms", ms);
  int status = -1;
  waitpid(pid, &status, 0);
  is_int(WIFEXITED(status) ? WEXITSTATUS(status) : -1, 0, "  the child compiles with an op of another spec, and loads one");
  pthread_join(thread, NULL);
  is_int(atomic_load(&load_status), QUERN_E_LIMIT, "  the load is refused as before");
  quern_ctx_release(ctx);

  free(dear);
  ctx = ctx_of(QUERN_JIT_OFF);
  dear = dear_spec(1);
  is_int(load_spec(ctx, "dear", dear), QUERN_OK, "one such op loads");
  free(dear);
  quern_ctx_release(ctx);
}

/* ---- The other limits ------------------------------------------------------------------------------------------- */

static void test_texts(void) {
  quern_op *op;
  operands o;
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .text_limit = 40});
  make(&o, "f32", "f32");
  is_int(quern_op_compile(ctx, sum_of("x * @.5", 20), &op), QUERN_E_LIMIT, "a long expression");
  has_str(quern_last_error(), "more than 40 (text_limit)", "  said");
  is_int(load_spec(ctx, "long", "unary \"long.f\" { doc = \"A test.\", dtypes = floating, body = [[ x ]] }"), QUERN_E_LIMIT, "a long spec");
  quern_ctx_release(ctx);
  ctx = ctx_with((quern_options){.jit = QUERN_JIT_OFF, .node_limit = 20});
  op = op_from(ctx, sum_of("x * @.5", 20));
  is_int(operands_call(op, &o, NULL), QUERN_E_LIMIT, "an expression of many values");
  has_str(quern_last_error(), "more than 20 (node_limit)", "  said");
  quern_op_release(op);
  op = op_from(ctx, sum_of("x * @.5", 4));
  is_int(operands_call(op, &o, NULL), QUERN_OK, "one of few");
  quern_op_release(op);
  quern_ctx_release(ctx);
  operands_free(&o);

  /* a struct of the size before there were limits */
  quern_options old = {.size = offsetof(quern_options, text_limit), .text_limit = 1};
  is_int(quern_ctx_create(&old, &ctx), QUERN_OK, "options of an older version");
  is_int(quern_op_compile(ctx, "x + 1", &op), QUERN_OK, "  have no limits");
  quern_op_release(op);
  quern_ctx_release(ctx);
}

static int count_maps(void) {
  char line[4096];
  int n = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  while (maps && fgets(line, sizeof line, maps)) n++;
  if (maps) fclose(maps);
  return n;
}

static void test_kernels(void) {
  char tier[64], reason[300], text[64];
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .cc = compiler_option, .kernel_limit = 3});
  int after = 0;
  for (int k = 0; k < 12; k++) {
    sprintf(text, "x * %d.5 + 1", k);
    run_in(ctx, text, "f32", "f32", tier, reason);
    if (k == 5) after = count_maps();
  }
  ok(count_maps() <= after + 1, "a limit of kernels in memory: %d maps, then %d", after, count_maps());
  quern_ctx_release(ctx);

  /* all in use */
  enum { MANY = 40 };
  quern_op *ops[MANY];
  operands o;
  ctx = ctx_of(QUERN_JIT_SYNC);
  make(&o, "f32", "f32");
  for (int k = 0; k < MANY; k++) {
    sprintf(text, "x * %d.25 + 2", k);
    ops[k] = op_from(ctx, text);
    if (k == 1) after = count_maps();
    is_int(operands_call(ops[k], &o, NULL), QUERN_OK, "a call");
  }
  is_str(tier_of(ops[MANY - 1], &o, NULL), compiler, "the last of %d is compiled", MANY);
  ok(count_maps() - after <= 12, "%d expressions in use share mappings: %d more", MANY, count_maps() - after);
  for (int k = 0; k < MANY; k++) quern_op_release(ops[k]);
  operands_free(&o);
  quern_ctx_release(ctx);
}

int main(void) {
  forget_environment();
  find_compiler();
  test_texts();
  if (!compiler) {
    skip(1, "no compiler here");
    return done_testing();
  }
  test_bombs();
  test_kernels();
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  skip(1, "under a sanitizer a process waits for LLVM, and a child starts no threads");
#else
  test_specs();
  if (strcmp(compiler, "clang") == 0) test_end();
#endif
  if (strcmp(compiler, "clang") == 0) {
    test_beside();
  } else {
    skip(1, "only Clang in process can be held");
  }
  return done_testing();
}
