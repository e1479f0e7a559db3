/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full long
 *
 * t592-fused-oom: as t280, for ops made at run time: the n-th request for memory that the library makes is refused, for
 * every n, and every one from the n-th on, while expressions are read, interpreted, compiled, recorded, kept on disk,
 * specs loaded. Each function does all of its work or fails with MEMORY; what cannot be compiled is interpreted;
 * nothing leaks, crashes or hangs. Where requests are many, or compile, some of them each day. See refused_memory.h. */
#include "expressions.h"

#if SANITIZED
int main(void) { skip_all("malloc belongs to the sanitizer"); }
#else

#include "refused_memory.h"

/* ---- Scenarios -------------------------------------------------------------------------------------------------- */

static int n_bad_status, n_wrong;
static char first_bad[400];

/* 1: go on. */
static int fine(quern_status status, const char *what) {
  if (status == QUERN_OK) return 1;
  if (status != QUERN_E_MEMORY || !*quern_last_error()) {
    if (!n_bad_status++)
      snprintf(first_bad, sizeof first_bad, "%s: %s: %.300s", what, status_name(status), quern_last_error());
  }
  return 0;
}

#define N 3000
static float x[N], w[N], y[N];
static unsigned char z[N];

static int is_right(quern_status status, float scale) {
  for (int i = 0; i < N; i++) {
    if (status == QUERN_OK ? y[i] != x[i] * scale + w[i] || z[i] != (x[i] > w[i]) : y[i] != -77 || z[i] != 99) return 0;
  }
  return 1;
}

static void clear(void) {
  for (int i = 0; i < N; i++) {
    y[i] = -77;
    z[i] = 99;
  }
}

static quern_status check(quern_status status, float scale, const char *what) {
  fine(status, what);
  if (!is_right(status, scale) && !n_wrong++)
    snprintf(first_bad, sizeof first_bad, "%s: %s with other results", what, status_name(status));
  return status;
}

/* y = scale * x + w, z = x > w */
static void use(quern_op *op, const quern_call *call, float scale) {
  int64_t n = N;
  DLTensor tensors[4] = {{.data = x}, {.data = w}, {.data = y}, {.data = z}};
  DLTensor *in[2] = {&tensors[0], &tensors[1]}, *out[2] = {&tensors[2], &tensors[3]};
  void *ins[2] = {x, w}, *outs[2] = {y, z};
  quern_shape shapes[2] = {{.size = sizeof shapes[0]}, {.size = sizeof shapes[0]}};
  quern_plan *plan = NULL;
  char text[4000];
  for (int k = 0; k < 4; k++) {
    tensors[k].device.device_type = kDLCPU;
    tensors[k].ndim = 1;
    tensors[k].shape = &n;
    tensors[k].dtype = k < 3 ? (DLDataType){kDLFloat, 32, 1} : (DLDataType){kDLBool, 8, 1};
  }
  clear();
  check(quern_op_call(op, 2, in, 2, out, call), scale, "call");
  fine(quern_op_infer(op, 2, in, 2, shapes), "infer");
  fine(quern_op_explain(op, 2, in, 2, out, call, text, sizeof text), "explain");
  if (fine(quern_op_prepare(op, 2, in, 2, out, call, &plan), "prepare")) {
    clear();
    check(quern_plan_run(plan, ins, outs, NULL), scale, "run");
    quern_plan_release(plan);
  }
}

static const char elementwise[] = "named: param s; f32 t = x * s; y = t + w; z = x > w";
static const char rows[] = "param s; f32 m = max(x); f32 n = min(x - m); y = (x - m) * s + m * s + w; z = x - n > w - n"; /* all exact */
static const char *text_used = elementwise;

static void compile_and_use(quern_ctx *ctx) {
  quern_op *op = NULL;
  const quern_scalar three[1] = {scalar_f(3)};
  const quern_call call = {.size = sizeof call, .params = three, .n_params = 1};
  if (!fine(quern_op_compile(ctx, text_used, &op), "compile")) return;
  if (!quern_op_describe(op)) n_wrong++;
  use(op, &call, 3);
  quern_op_release(op);
}

static char folder[200];
static int32_t mode;

static void scenario_expressions(void) {
  quern_ctx *ctx = NULL;
  char text[2000];
  quern_options options = {.size = sizeof options, .threads = 2, .jit = mode, .cc = compiler_option, .cache_dir = ""};
  if (!fine(quern_ctx_create(&options, &ctx), "create")) return;
  compile_and_use(ctx);
  fine(quern_ctx_describe(ctx, text, sizeof text), "describe");
  quern_ctx_release(ctx);
}

static void scenario_disk(void) {
  quern_ctx *ctx = NULL;
  char path[260];
  int64_t n = 0;
  snprintf(path, sizeof path, "%s/record", folder);
  quern_options options = {
      .size = sizeof options, .threads = 1, .jit = mode, .cc = compiler_option, .cache_dir = folder};
  if (!fine(quern_ctx_create(&options, &ctx), "create")) return;
  fine(quern_record(ctx, path), "record");
  compile_and_use(ctx);
  fine(quern_cache_clear(ctx, &n), "cache_clear");
  quern_ctx_release(ctx);
}

static void scenario_spec(void) {
  static const char spec[] =
      "unary \"acme.thrice\" { doc = \"x times 3.\", params = { s = 3.0 }, dtypes = floating, body = [[ x * s ]] }\n"
      "scan \"acme.mean\" { doc = \"Means so far.\", dtypes = { \"f32\" }, initial = 0, state = \"T s, i64 n\", lift = \"s = x; n = 1;\",\n"
      "  combine = \"s = a.s + b.s; n = a.n + b.n;\", finish = \"a.s / (T)a.n\" }\n";
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  quern_options options = {.size = sizeof options, .threads = 1, .jit = mode, .cc = compiler_option, .cache_dir = ""};
  if (!fine(quern_ctx_create(&options, &ctx), "create")) return;
  if (fine(quern_spec_load_text(ctx, "acme.lua", spec, sizeof spec - 1), "spec_load")) {
    if (fine(quern_op_compile(ctx, "y = acme.thrice(x) + w; z = x > w", &op), "compile")) {
      use(op, NULL, 3);
      quern_op_release(op);
    }
    if (fine(quern_op_find(ctx, "acme.thrice", &op), "find")) quern_op_release(op);
    if (fine(quern_op_find(ctx, "acme.thrice_backward", &op), "find its derivative")) quern_op_release(op);
  } else if (quern_op_find(ctx, "acme.thrice", &op) == QUERN_OK) { /* all or none */
    n_wrong++;
    quern_op_release(op);
  }
  quern_ctx_release(ctx);
}

static void arm(int n, int all_after) {
  for (int i = 0; i < MAX_LIVE; i++) live[i] = NULL;
  n_live = n_refused = n_asked = n_mapped = n_bad_status = n_wrong = 0;
  first_bad[0] = 0;
  countdown = n;
  sticky = all_after;
  armed = 1;
}

/* Refuses the 1st, 2nd, ... until a whole run asks for fewer; from the 10th on every `step`-th, others each day; 0: some of very
 * many, in full twice as many. */
static void drive(const char *name, void (*scenario)(void), int all_after, int step) {
  const int part = step != 1 ? test_part(step ? step : 4) : -1;
  int n = 0;
  scenario(); /* what is made once in a process */
  group_begin("%s, %s", name, all_after ? "no memory from the n-th request on" : "the n-th request is refused");
  do {
    n += n < 10 ? 1 : n == 10 && part >= 0 ? part + 1 : step ? step : n / (part < 0 ? 6 : 3);
    arm(n, all_after);
    scenario();
    for (int i = 0; i < 2000 && (n_live || n_mapped) && mode != QUERN_JIT_OFF; i++)
      usleep(1000); /* the background thread tidies up */
    armed = 0;
    group_count(1);
    if (n_live || n_mapped)
      group_fail("request %d: %d blocks and %d mappings of the library are left", n, n_live, n_mapped);
    if (n_bad_status || n_wrong)
      group_fail("request %d: %s (%d odd statuses, %d wrong results)", n, first_bad, n_bad_status, n_wrong);
  } while (n_refused && n < 200000);
  group_end();
  ok(n > 1 && n < 200000, "%s: %d requests", name, n_asked);
}

/* ---- In fresh processes ----------------------------------------------------------------------------------------- */

static atomic_int *shared; /* how often a child was refused */
static int cold_n;

static int cold(void *arg) {
  void (*scenario)(void) = *(void (**)(void))arg;
  arm(cold_n, 0);
  scenario();
  armed = 0;
  *shared = n_refused;
  if (n_bad_status || n_wrong) {
    fprintf(stderr, "# request %d of a fresh process: %s\n", cold_n, first_bad);
    return 1;
  }
  scenario(); /* all is well later */
  return n_bad_status || n_wrong ? 2 : 0;
}

static void drive_cold(const char *name, void (*scenario)(void), int step) {
  int result = 0;
  group_begin("%s, in fresh processes", name);
  cold_n = 0;
  do {
    cold_n += cold_n < 10 ? 1 : step;
    *shared = 0;
    result = in_child(cold, &scenario);
    group_count(1);
    if (result)
      group_fail("request %d: %s", cold_n, result < 0 ? "it hangs" : result > 1000 ? "a signal ended it" : "wrong");
  } while (result >= 0 && *shared && cold_n < 20000);
  group_end();
}

int main(void) {
  Dl_info self, library;
  const int is_all = test_part(2) < 0;
  forget_environment();
  if (!count_calls_from((void *)(uintptr_t)&quern_op_call, NULL) || !dladdr((void *)(uintptr_t)&main, &self) ||
      !dladdr((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "quern_op_call"), &library) || self.dli_fbase == library.dli_fbase)
    skip_all("the library is linked into this program: what it asks for cannot be told apart");
  count_calls_from(dlsym(RTLD_DEFAULT, "quern_op_call"), NULL);
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) bail("no memory to share");
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/quern-t592.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(folder)) bail("no folder");
  for (int i = 0; i < N; i++) {
    x[i] = (float)(i % 201 - 100);
    w[i] = (float)(i % 37 - 20);
  }
  fflush(stdout);

  /* Before anything has been loaded here: children begin as they are. */
  mode = QUERN_JIT_OFF;
  drive_cold("expressions, interpreted", scenario_expressions, 1);
  mode = QUERN_JIT_SYNC;
  drive_cold("expressions, compiled", scenario_expressions, is_all ? 9 : 27);

  mode = QUERN_JIT_OFF;
  drive("expressions, interpreted", scenario_expressions, 0, 1);
  drive("expressions, interpreted", scenario_expressions, 1, 1);
  text_used = rows;
  drive("expressions that reduce, interpreted", scenario_expressions, 0, 1);
  drive("expressions that reduce, interpreted", scenario_expressions, 1, 1);
  find_compiler();
  if (compiler) {
    mode = QUERN_JIT_SYNC;
    drive("expressions that reduce, compiled", scenario_expressions, 0, is_all ? 41 : 61);
    mode = QUERN_JIT_OFF;
  }
  text_used = elementwise;
  quern_ctx *ctx = ctx_of(QUERN_JIT_OFF);
  const int has_generator = quern_spec_load_text(ctx, "empty.lua", "", 0) == QUERN_OK;
  quern_ctx_release(ctx);
  if (has_generator) {
    drive("a spec, interpreted", scenario_spec, 0, is_all ? 5 : 15);
    drive("a spec, interpreted", scenario_spec, 1, is_all ? 9 : 27);
    if (count_calls_from(NULL, "quern-gen.so")) {
      drive("a spec, in the generator", scenario_spec, 0, 0);
      drive("a spec, in the generator", scenario_spec, 1, 0);
    } else {
      fail("quern-gen.so is not mapped");
    }
    count_calls_from(dlsym(RTLD_DEFAULT, "quern_op_call"), NULL);
  } else {
    skip(1, "no generator is here");
  }
  if (compiler) {
    mode = QUERN_JIT_SYNC; /* each run compiles */
    drive("expressions, compiled", scenario_expressions, 0, is_all ? 1 : 5);
    drive("expressions, compiled", scenario_expressions, 1, is_all ? 4 : 8);
    drive("expressions, kept on disk and recorded", scenario_disk, 0, is_all ? 3 : 9);
    mode = QUERN_JIT_ASYNC;
    drive("expressions, compiled in the background", scenario_expressions, 0, is_all ? 3 : 9);
  } else {
    skip(1, "no compiler of kernels is here");
  }
  char command[260];
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  if (system(command)) diag("%s is left", folder);
  return done_testing();
}
#endif
