/* SPDX-License-Identifier: Apache-2.0
 * tags: threads-full
 *
 * t529-passing: failures that pass, in a process that then has what was missing: no free descriptor, no memory for a mapping, no
 * memory for a thread. Calls are interpreted and right meanwhile, a spec is refused with MEMORY; afterwards expressions are compiled
 * and specs load. What will not pass, a compiler that is not there, is not tried again. */
#include <fcntl.h>
#include <sys/resource.h>

#include "expressions.h"

enum { N = 4000 };
static float x[N], y[N];

static quern_status run(quern_op *op, float scale, const char **tier, const char **reason) {
  static char text[4000];
  int64_t n = N;
  DLTensor in_tensor = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n}, out_tensor = in_tensor;
  DLTensor *in = &in_tensor, *out = &out_tensor;
  out_tensor.data = y;
  memset(y, 0x77, sizeof y);
  quern_status status = quern_op_call(op, 1, &in, 1, &out, NULL);
  for (int i = 0; i < N && status == QUERN_OK; i++) {
    if (y[i] != x[i] * scale + 1) _exit(20);
  }
  *tier = *reason = "";
  if (status || quern_op_explain(op, 1, &in, 1, &out, NULL, text, sizeof text)) return status;
  *tier = strstr(text, "tier: ") + 6;
  *reason = strstr(text, "reason: ") + 8;
  text[strcspn(text, "\n")] = 0;
  ((char *)(uintptr_t)*reason)[strcspn(*reason, "\n")] = 0;
  return status;
}

/* Takes all descriptors, all address space, or so much that no thread's stack has room; gives it back. */
typedef struct shortage {
  const char *name;
  void (*begin)(void), (*end)(void);
} shortage;

static int taken[4096], n_taken;
static void take_descriptors(void) {
  const struct rlimit few = {64, 4096};
  setrlimit(RLIMIT_NOFILE, &few);
  while (n_taken < 4096 && (taken[n_taken] = open("/dev/null", O_RDONLY)) >= 0) n_taken++;
}
static void give_descriptors(void) {
  while (n_taken) close(taken[--n_taken]);
}

static void limit_memory(size_t free_bytes) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "r");
  if (!file || fscanf(file, "%lu", &pages) != 1) _exit(30);
  fclose(file);
  const struct rlimit limit = {pages * 4096 + free_bytes, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &limit);
}
static void take_memory(void) { limit_memory(256 << 10); }
static void give_memory(void) {
  const struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &all);
}

static const shortage shortages[] = {{"no free descriptor", take_descriptors, give_descriptors},
                                     {"256 KiB of address space", take_memory, give_memory}};

static int32_t mode;
static const char *cc;
static const char spec[] = "op \"twice\" { doc = \"d\", inputs = \"x\", dtypes = floating, body = \"x * 2\", examples = {} }";

/* Exits with 0, or the number of what is wrong. */
static void in_shortage(const shortage *s) {
  const char *tier, *reason;
  quern_ctx *ctx = ctx_with((quern_options){.jit = mode, .threads = 1, .cc = cc});
  quern_op *op = op_from(ctx, "x * 3 + 1"), *other = NULL;
  s->begin();
  if (run(op, 3, &tier, &reason) || strcmp(tier, "interpreter")) _exit(1);
  const quern_status refused = load_spec(ctx, "s.lua", spec);
  const int is_told = refused == QUERN_E_MEMORY || refused == QUERN_OK;
  char said[200];
  snprintf(said, sizeof said, "%s", quern_last_error());
  if (mode == QUERN_JIT_ASYNC) sleep_ms(50);
  s->end();
  if (!is_told) {
    printf("# %d: %s\n", refused, said);
    fflush(stdout);
    _exit(2);
  }
  if (refused && load_spec(ctx, "s.lua", spec)) _exit(3);
  if (quern_op_find(ctx, "twice", &other)) _exit(4);
  const double start = now_ms();
  do {
    sleep_ms(20);
    if (run(op, 3, &tier, &reason)) _exit(5);
  } while (strcmp(tier, "interpreter") == 0 && now_ms() - start < 10000);
  if (strcmp(tier, "interpreter") == 0) {
    printf("# %s\n", reason);
    fflush(stdout);
    _exit(6);
  }
  quern_op *next = op_from(ctx, "x * 5 + 1");
  if (run(next, 5, &tier, &reason)) _exit(7);
  if (mode == QUERN_JIT_SYNC && strcmp(tier, "interpreter") == 0) _exit(8);
  _exit(0);
}

/* A plan finds the code, too, though the op is not called. */
static void plan_in_shortage(const shortage *s) {
  int64_t n = N;
  DLTensor in_tensor = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n}, out_tensor = in_tensor;
  DLTensor *in = &in_tensor, *out = &out_tensor;
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1, .cc = cc});
  quern_op *op = op_from(ctx, "x * 3 + 1");
  quern_plan *plan = NULL;
  char text[4000];
  out_tensor.data = y;
  s->begin();
  const quern_status status = quern_op_prepare(op, 1, &in, 1, &out, NULL, &plan);
  s->end();
  if (status) _exit(1);
  sleep_ms(150);
  void *from = x, *to = y;
  if (quern_plan_run(plan, &from, &to, NULL)) _exit(2);
  if (quern_op_explain(op, 1, &in, 1, &out, NULL, text, sizeof text) || strstr(text, "tier: interpreter")) _exit(3);
  _exit(0);
}

static void without_compiler(const shortage *s) {
  const char *tier, *reason;
  (void)s;
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1, .cc = "/nowhere/cc"});
  setenv("QUERN_MODULE_DIR", "/nowhere", 1);
  quern_op *op = op_from(ctx, "x * 3 + 1");
  for (int i = 0; i < 3; i++) {
    if (run(op, 3, &tier, &reason)) _exit(1);
    sleep_ms(120);
  }
  _exit(strstr(reason, "/nowhere/cc") || strcmp(tier, "interpreter") ? 0 : 2);
}

/* No more kernels than the limit says, while all are in use. */
static void within_kernels(const shortage *s) {
  const char *tier, *reason;
  char text[40];
  quern_op *ops[5];
  (void)s;
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1, .cc = cc, .kernel_limit = 3});
  for (int i = 0; i < 5; i++) {
    snprintf(text, sizeof text, "x * %d + 1", i + 2);
    ops[i] = op_from(ctx, text);
    if (run(ops[i], (float)(i + 2), &tier, &reason)) _exit(1);
    if ((i < 3) != (strcmp(tier, "interpreter") != 0)) _exit(2);
    if (i >= 3 && !strstr(reason, "kernel_limit")) _exit(3);
  }
  for (int i = 0; i < 3; i++) quern_op_release(ops[i]);
  sleep_ms(150);
  for (int i = 3; i < 5; i++) {
    if (run(ops[i], (float)(i + 2), &tier, &reason)) _exit(4);
    if (strcmp(tier, "interpreter") == 0) _exit(5);
  }
  _exit(0);
}

static size_t most_bytes;

/* 0: it is compiled within so much address space. 1: there is none for the module or its thread; 2: for the rest. */
static void within(const shortage *s) {
  const char *tier, *reason;
  const struct rlimit limit = {most_bytes, RLIM_INFINITY};
  (void)s;
  setrlimit(RLIMIT_AS, &limit);
  quern_ctx *ctx = NULL;
  const quern_options options = {.size = sizeof options, .jit = QUERN_JIT_SYNC, .threads = 1, .cache_dir = ""};
  if (quern_ctx_create(&options, &ctx)) _exit(1);
  if (run(op_from(ctx, "x * 3 + 1"), 3, &tier, &reason)) _exit(3);
  if (strcmp(tier, "interpreter")) _exit(0);
  _exit(strstr(reason, "thread could") || strstr(reason, "shared object") ? 1 : 2);
}

static void (*const bodies[])(const shortage *s) = {in_shortage, plan_in_shortage, without_compiler, within, within_kernels};

/* In a process of its own, in which no module is open: its result, or 1000 + the signal that ended it. */
static int process(int body, size_t shortage) {
  char argument[96];
  int status = -1;
  snprintf(argument, sizeof argument, "%d %zu %d %zu %s", body, shortage, mode, most_bytes, cc ? cc : "-");
  fflush(NULL);
  const pid_t pid = fork();
  if (pid == 0) {
    execl("/proc/self/exe", "t529", argument, (char *)NULL);
    _exit(99);
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void try_in_process(int body, size_t shortage, const char *name) { is_int(process(body, shortage), 0, "%s", name); }

/* Limits from the least with which there is a thread for Clang: nothing is ended by the loader for lack of thread-local memory. */
static void test_limits(void) {
  enum { MIB = 1 << 20 };
  size_t low = 64, high = 2048;
  int worst = 0;
  while (high - low > 1) {
    most_bytes = (low + high) / 2 * MIB;
    *(process(3, 0) == 1 ? &low : &high) = most_bytes / MIB;
  }
  for (int i = 0; i < 24 && worst < 3; i++) {
    most_bytes = low * MIB + (size_t)i * (MIB / 4);
    worst = process(3, 0);
  }
  ok(worst < 3, "address space of %zu to %zu MiB: no process is ended (%d)", low, low + 6, worst);
  most_bytes = (low + 200) * MIB;
  is_int(process(3, 0), 0, "with 200 MiB more it is compiled");
}

int main(int argc, char **argv) {
  static char given[64];
  char name[200];
  int body;
  size_t k;
  for (int i = 0; i < N; i++) x[i] = (float)(i % 1000);
  if (argc > 1) {
    if (sscanf(argv[1], "%d %zu %d %zu %63s", &body, &k, &mode, &most_bytes, given) != 5) return 98;
    if (strcmp(given, "-")) cc = given;
    bodies[body](&shortages[k]);
  }
  forget_environment();
  find_compiler();
  if (!compiler) skip_all("no compiler is here");
  for (k = 0; k < sizeof shortages / sizeof *shortages; k++) {
    if (SANITIZED && k) {
      skip(1, "%s: the sanitizer needs all of the address space", shortages[k].name);
      continue;
    }
    for (int by = 0; by < 2; by++) {
      cc = by ? "cc" : NULL;
      if (!by && strcmp(compiler, "clang")) continue;
      for (mode = QUERN_JIT_SYNC; mode <= QUERN_JIT_ASYNC; mode++) {
        snprintf(name, sizeof name, "%s, %s, %s: it passes", shortages[k].name, by ? "cc" : "Clang",
                 mode == QUERN_JIT_SYNC ? "sync" : "async");
        try_in_process(0, k, name);
      }
    }
  }
  cc = compiler_option;
  try_in_process(1, 0, "a plan made meanwhile");
  try_in_process(4, 0, "more kernels in use than kernel_limit allows: the others are interpreted, until some are released");
  try_in_process(2, 0, "a compiler that is not there is not looked for again");
  if (SANITIZED || strcmp(compiler, "clang"))
    skip(2, "no Clang in process, or the sanitizer needs all of the address space");
  else
    test_limits();
  return done_testing();
}
