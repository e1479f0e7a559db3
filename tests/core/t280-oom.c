/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t280-oom: the n-th allocation of the library fails, for every n, and every allocation from the n-th on: each function
 * succeeds in full or fails with MEMORY and a sentence, outputs are right or untouched, nothing leaks, nothing crashes.
 * See refused_memory.h. */
#include <sys/wait.h>
#include <unistd.h>

#include "tensors.h"

#if SANITIZED
int main(void) {
  skip_all("malloc belongs to the sanitizer");
}
#else

#include "refused_memory.h"

/* ---- Scenarios -------------------------------------------------------------------------------------------------- */

static int n_bad_status, n_wrong;

/* 1 = go on. Counts statuses that may not be. */
static int fine(quern_status s, const char *what) {
  if (s == QUERN_OK) return 1;
  if (s != QUERN_E_MEMORY || !*quern_last_error()) {
    int was = armed;
    armed = 0;
    diag("%s: %s: %s", what, status_name(s), quern_last_error());
    armed = was;
    n_bad_status++;
  }
  return 0;
}

#define N 400000
static float x[N], y[N];

static void check_output(quern_status s, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (y[i] != (s == QUERN_OK ? -x[i] : -77)) {
      n_wrong++;
      return;
    }
  }
}

static void use(quern_op *op, int64_t n) {
  int64_t shape = n;
  DLTensor a = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &shape}, b = a, *in = &a, *out = &b;
  quern_plan *plan = NULL;
  char text[2000];
  size_t bytes;
  quern_shape inferred = {.size = sizeof inferred};
  void *pi = x, *po = y;
  b.data = y;
  for (int64_t i = 0; i < n; i++) y[i] = -77;
  quern_status s = quern_op_call(op, 1, &in, 1, &out, NULL);
  fine(s, "call");
  check_output(s, n);
  fine(quern_op_infer(op, 1, &in, 1, &inferred), "infer");
  fine(quern_op_workspace(op, 1, &in, 1, &out, NULL, &bytes), "workspace");
  fine(quern_op_explain(op, 1, &in, 1, &out, NULL, text, sizeof text), "explain");
  if (fine(quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan), "prepare")) {
    for (int64_t i = 0; i < n; i++) y[i] = -77;
    s = quern_plan_run(plan, &pi, &po, NULL);
    fine(s, "run");
    check_output(s, n);
    quern_plan_release(plan);
  }
}

/* Ops that reduce, on one axis or all, in and out of order; wanted: what they gave before any request was refused. */
enum { N_REDUCED = 7 };
static void reduce(quern_ctx *ctx, int which) {
  static const struct {
    const char *name;
    int64_t strides[2], axes, n_out;
  } cases[N_REDUCED] = {{"sum", {1000, 1}, 3, 1},   {"sum", {1, 400}, 3, 1},     {"max", {1000, 1}, 1, 1000},
                        {"max", {1, 400}, 2, 400},  {"mean", {1, 400}, 1, 1000}, {"softmax", {1000, 1}, 3, N},
                        {"softmax", {1, 400}, 2, N}};
  static float wanted[N_REDUCED][N];
  static char is_known[N_REDUCED];
  quern_op *op = NULL;
  quern_status s = quern_op_find(ctx, cases[which].name, &op);
  if (s == QUERN_E_NOTFOUND && is_subset()) return;
  if (!fine(s, "find")) return;
  const quern_op_info *info = quern_op_describe(op);
  const int is_full = cases[which].n_out == N;
  int64_t shape[2] = {400, 1000}, strides[2] = {cases[which].strides[0], cases[which].strides[1]}, n_out = cases[which].n_out;
  DLTensor a = {x, {kDLCPU, 0}, 2, {2, 32, 1}, shape, strides, 0}, b = {y, {kDLCPU, 0}, n_out > 1, {2, 32, 1}, &n_out, NULL, 0};
  DLTensor *in = &a, *out = &b;
  if (is_full) b.ndim = 2, b.shape = shape;
  quern_scalar params[8] = {{.kind = QUERN_I64}};
  quern_call call = {.size = sizeof call, .params = params};
  while (call.n_params < 7 && strcmp(info->params[call.n_params].name, "axes") != 0) {
    params[call.n_params] = info->params[call.n_params].value;
    call.n_params++;
  }
  params[call.n_params++] = (quern_scalar){.kind = QUERN_I64, .v.i = cases[which].axes};
  for (int64_t i = 0; i < n_out; i++) y[i] = -77;
  s = quern_op_call(op, 1, &in, 1, &out, &call);
  fine(s, cases[which].name);
  if (s == QUERN_OK && !is_known[which]) memcpy(wanted[which], y, sizeof *y * (size_t)n_out), is_known[which] = 1;
  for (int64_t i = 0; i < n_out; i++) {
    if (s == QUERN_OK ? memcmp(&y[i], &wanted[which][i], sizeof *y) == 0 : y[i] == -77) continue;
    n_wrong++;
    break;
  }
  quern_op_release(op);
}

static void scenario_reduce(void) {
  quern_ctx *ctx = NULL;
  quern_options options = {.size = sizeof options, .threads = 3};
  if (!fine(quern_ctx_create(&options, &ctx), "create")) return;
  for (int k = 0; k < N_REDUCED; k++) reduce(ctx, k);
  quern_ctx_release(ctx);
}

static quern_status negate(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                           const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_E_UNSUPPORTED; /* declines: the built-in one runs */
}

static quern_status nothing(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out,
                            const quern_call *call) {
  (void)self, (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return QUERN_OK;
}

static int n_released;
static void release(void *self) {
  (void)self;
  n_released++;
}

static void scenario_context(void) {
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  quern_options options = {.size = sizeof options, .threads = 3, .cache_dir = "/proc/nonexistent", .cc = "cc"};
  if (!fine(quern_ctx_create(&options, &ctx), "create")) return;
  if (fine(quern_op_find(ctx, "negative", &op), "find")) {
    use(op, 100);
    use(op, N);
    quern_op_release(op);
  }
  if (quern_op_find(ctx, "negativ", &op) == QUERN_OK) n_bad_status++;
  quern_ctx_release(ctx);
}

static void scenario_register(void) {
  static const char *const names[] = {"x", "out"};
  static const quern_param_info params[] = {{.name = "p", .value = {.kind = QUERN_F64}}};
  quern_op_def def = {.size = sizeof def, .name = "acme.nothing", .doc = "Nothing.", .n_in = 1, .n_out = 1, .n_params = 1,
                      .arg_names = names, .params = params, .call = nothing, .release = release};
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  int wanted = 0;
  n_released = 0;
  if (!fine(quern_ctx_create(NULL, &ctx), "create")) return;
  wanted += fine(quern_op_register(ctx, &def), "register");
  def.name = "negative";
  def.n_params = 0;
  def.call = negate;
  wanted += fine(quern_op_register(ctx, &def), "register an override");
  int32_t count = quern_op_count(ctx);
  for (int32_t i = 0; i < count; i += 7) {
    if (!fine(quern_op_at(ctx, i, &op), "at")) continue;
    if (!quern_op_describe(op)) n_wrong++;
    quern_op_release(op);
  }
  if (fine(quern_op_find(ctx, "negative", &op), "find")) {
    use(op, 100);
    quern_op_release(op);
  }
  quern_ctx_release(ctx);
  if (n_released != wanted) n_wrong++; /* on failure release is not called; else exactly once */
}

/* Fails allocation 1, 2, ... until a whole run asks for fewer. */
static void drive(const char *name, void (*scenario)(void), int all_after) {
  int n = 0;
  scenario(); /* whatever is made once in a process */
  n_bad_status = n_wrong = 0;
  group_begin("%s, %s", name, all_after ? "no allocation from the n-th on" : "the n-th allocation fails");
  do {
    n++;
    for (int i = 0; i < MAX_LIVE; i++) live[i] = NULL;
    n_live = n_refused = n_asked = 0;
    countdown = n;
    sticky = all_after;
    armed = 1;
    scenario();
    armed = 0;
    group_count(1);
    if (n_live) group_fail("allocation %d failed: %d blocks of the library are left", n, n_live);
    if (n_bad_status || n_wrong) group_fail("allocation %d failed: %d odd statuses, %d wrong results", n, n_bad_status, n_wrong);
    n_bad_status = n_wrong = 0;
  } while (n_refused && n < 5000);
  group_end();
  ok(n > 1 && n < 5000, "%s asks for %d allocations", name, n_asked);
}

/* The default context in a fresh process: made at first use, and again after it could not be made. */
static void drive_default(void) {
  int n = 0, status, hit;
  group_begin("the default context, the n-th allocation of a process fails");
  do {
    int hits[2];
    n++;
    if (pipe(hits)) bail("no pipe");
    pid_t pid = fork();
    if (pid == 0) {
      quern_op *op = NULL;
      countdown = n;
      armed = 1;
      quern_status s = quern_op_find(NULL, "negative", &op);
      fine(s, "find");
      if (s == QUERN_OK) use(op, N);
      armed = 0;
      if (s != QUERN_OK && quern_op_find(NULL, "negative", &op) != QUERN_OK) n_bad_status += 100; /* it can be had later */
      use(op, 100);
      quern_op_release(op);
      char c = n_refused > 0;
      if (write(hits[1], &c, 1) != 1) _exit(9);
      _exit(n_bad_status || n_wrong ? 1 : 0);
    }
    char c = 0;
    close(hits[1]);
    hit = read(hits[0], &c, 1) == 1 && c;
    close(hits[0]);
    waitpid(pid, &status, 0);
    group_count(1);
    if (!WIFEXITED(status) || WEXITSTATUS(status)) {
      group_fail("allocation %d failed: status 0x%x", n, status);
      break;
    }
  } while (hit && n < 5000);
  group_end();
}

int main(void) {
  Dl_info self, library;
  count_calls_from((void *)(uintptr_t)&quern_op_call, NULL);
  if (!code_high || !dladdr((void *)(uintptr_t)&main, &self) ||
      !dladdr((void *)(uintptr_t)dlsym(RTLD_DEFAULT, "quern_op_call"), &library) || self.dli_fbase == library.dli_fbase) {
    skip_all("the library is linked into this program: its allocations cannot be told apart");
  }
  count_calls_from(dlsym(RTLD_DEFAULT, "quern_op_call"), NULL);
  for (int i = 0; i < N; i++) x[i] = (float)(i + 1);
  fflush(stdout);
  drive_default();
  drive("contexts, calls and plans", scenario_context, 0);
  drive("contexts, calls and plans", scenario_context, 1);
  drive("ops that reduce", scenario_reduce, 0);
  drive("ops that reduce", scenario_reduce, 1);
  drive("registered ops", scenario_register, 0);
  drive("registered ops", scenario_register, 1);
  return done_testing();
}
#endif
