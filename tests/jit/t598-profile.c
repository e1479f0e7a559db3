/* SPDX-License-Identifier: Apache-2.0
 * tags: threads
 *
 * t598: profiles (QUERN_PROFILE, quern_options.profile): one line a call, of every kind of op, with what it ran on; none of
 * what does not compute; totals at exit; many threads, forks, files that cannot be written. */
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <quern/dlpack_exchange.h>
#include <quern/quern.h>

#include "tap.h"

enum { MOST = 1 << 19 };
static char path[256], text[MOST], heard[400];

/* ---- Calls ---- */

static quern_ctx *context(const char *profile) {
  const quern_options options = {.size = sizeof options, .jit = QUERN_JIT_OFF, .threads = 1, .profile = profile};
  quern_ctx *ctx;
  if (quern_ctx_create(&options, &ctx)) bail("%s", quern_last_error());
  return ctx;
}

static quern_op *find(quern_ctx *ctx, const char *name) {
  quern_op *op;
  if (quern_op_find(ctx, name, &op)) bail("%s", quern_last_error());
  return op;
}

static quern_op *compile(quern_ctx *ctx, const char *expression) {
  quern_op *op;
  if (quern_op_compile(ctx, expression, &op)) bail("%s", quern_last_error());
  return op;
}

static float items[4][6] = {{1, 2, 3, 4, 5, 6}, {2, 2, 0, 2, 2, 2}};
static int64_t wide[2] = {2, 3}, flat[1] = {6}, none[2] = {0, 3};

static DLTensor tensor(int k, int32_t ndim, int64_t *shape) {
  return (DLTensor){items[k], {kDLCPU, 0}, ndim, {kDLFloat, 32, 1}, shape, NULL, 0};
}

/* Calls an op of n inputs of shape 2 x 3, with an output of that shape. */
static quern_status call_wide(quern_op *op, int32_t n) {
  DLTensor x = tensor(0, 2, wide), y = tensor(1, 2, wide), z = tensor(2, 2, wide), *in[2] = {&x, &y}, *out[1] = {&z};
  return quern_op_call(op, n, in, 1, out, NULL);
}

/* ---- The file ---- */

static const char *read_file(void) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  text[n < 0 ? 0 : n] = 0;
  if (fd >= 0) close(fd);
  return text;
}

static int count(const char *in, const char *part) {
  int n = 0;
  for (const char *at = in; (at = strstr(at, part)); at += strlen(part)) n++;
  return n;
}

/* The lines since the last time are one: of that event and op, with these columns behind the milliseconds. */
static size_t seen;
static void one_line(const char *event, const char *head, const char *columns, const char *name) {
  const char *line = read_file() + seen;
  char begin[256];
  snprintf(begin, sizeof begin, "quern_profile,%s,%d,%s", event, (int)getpid(), head);
  ok(strncmp(line, begin, strlen(begin)) == 0 && strstr(line, columns) && count(line, "\n") == 1, "%s is one line: %s", name, line);
  seen += strlen(line);
}

static void no_line(const char *name) {
  const char *lines = read_file() + seen;
  is_str(lines, "", "%s is none", name);
  seen += strlen(lines);
}

/* What a process writes to the file that runs `body` and ends by itself. Its lines are not the next test's. */
static const char *said_by(void (*body)(void)) {
  int status;
  const size_t from = seen;
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    body();
    fclose(stdout);
    exit(0); /* the functions of atexit run */
  }
  waitpid(pid, &status, 0);
  ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "  the process ends well");
  const char *all = read_file();
  seen = strlen(all);
  return all + from;
}

/* ---- Every kind of op ---- */

static quern_status answer(void *self, int32_t n_in, DLTensor *const *in, int32_t n_out, DLTensor *const *out, const quern_call *call) {
  (void)n_in, (void)in, (void)n_out, (void)out, (void)call;
  return *(quern_status *)self;
}

static void test_kinds(void) {
  quern_ctx *ctx = context(path);
  quern_op *add = find(ctx, "add"), *sum = find(ctx, "sum"), *scan = find(ctx, "cumulative_sum"), *nonzero = find(ctx, "nonzero");
  quern_op *astype = find(ctx, "astype"), *fused = compile(ctx, "y = x * w +\n 1"), *rows = compile(ctx, "bias: s = sum(x * y)");
  quern_plan *plan;
  DLTensor x = tensor(0, 2, wide), y = tensor(1, 2, wide), z = tensor(2, 2, wide), *in[2] = {&x, &y}, *out[1] = {&z};
  const char *first = "quern_profile,event,pid,op,device,tier,threads,ms,dtypes,shapes,kernel,text\n";
  is_str(read_file(), first, "the first line names the columns");
  seen = strlen(first);

  is_int(call_wide(add, 2), QUERN_OK, "add");
  one_line("call", "add,cpu,built,1,", ",f32 f32 > f32,2x3 2x3 > 2x3,qk_add_f32_f32_f32_", "its call");
  ok(items[2][5] == 8, "  which computes as ever");
  is_int(quern_op_prepare(add, 2, in, 1, out, NULL, &plan), QUERN_OK, "a plan");
  char explained[4096];
  size_t bytes;
  quern_shape shape = {.size = sizeof shape};
  quern_op_explain(add, 2, in, 1, out, NULL, explained, sizeof explained);
  has_str(explained, "tier: built", "an explanation");
  quern_op_workspace(add, 2, in, 1, out, NULL, &bytes);
  quern_op_infer(add, 2, in, 1, &shape);
  no_line("what computes nothing");
  void *data_in[2] = {items[0], items[1]}, *data_out[1] = {items[2]};
  is_int(quern_plan_run(plan, data_in, data_out, NULL), QUERN_OK, "a run of the plan");
  one_line("run", "add,cpu,built,1,", ",f32 f32 > f32,2x3 2x3 > 2x3,", "it");
  quern_plan_release(plan);

  is_int(call_wide(fused, 2), QUERN_OK, "an expression");
  one_line("call", "expression,cpu,interpreter,1,", ",2x3 2x3 > 2x3,none,\"y = x * w +  1\"", "its call");
  DLTensor all = tensor(2, 0, NULL), *one[1] = {&all};
  is_int(quern_op_call(rows, 2, in, 1, one, NULL), QUERN_OK, "an expression that reduces");
  one_line("call", "bias,cpu,interpreter,1,", "\"bias: s = sum(x * y)\"", "its call");
  is_int(quern_op_call(sum, 1, in, 1, one, NULL), QUERN_OK, "sum");
  one_line("call", "sum,cpu,built,1,", ",f32 > f32,2x3 > (),qk_", "its call");
  const quern_scalar along = {.kind = QUERN_I64, .v = {.i = 2}};
  const quern_call axis = {.size = sizeof axis, .params = &along, .n_params = 1};
  is_int(quern_op_call(scan, 1, in, 1, out, &axis), QUERN_OK, "a scan");
  one_line("call", "cumulative_sum,cpu,built,1,", ",f32 > f32,2x3 > 2x3,qk_", "its call");
  int64_t places[6][2], there[2] = {6, 2};
  DLTensor found = {places, {kDLCPU, 0}, 2, {kDLInt, 64, 1}, there, NULL, 0}, *founds[1] = {&found};
  is_int(quern_op_call(nonzero, 1, in, 1, founds, NULL), QUERN_OK, "nonzero: %s", quern_last_error());
  one_line("call", "nonzero,cpu,built,1,", ",f32 > i64,2x3 > 6x2,", "its call");
  double wider[6];
  DLTensor f64 = {wider, {kDLCPU, 0}, 2, {kDLFloat, 64, 1}, wide, NULL, 0}, *doubles[1] = {&f64};
  is_int(quern_op_call(astype, 1, in, 1, doubles, NULL), QUERN_OK, "a cast");
  one_line("call", "astype,cpu,built,1,", ",f32 > f64,2x3 > 2x3,", "its call");
  struct DLManagedTensorVersioned *made;
  is_int(quern_op_call_alloc(add, 2, in, 1, NULL, &made, NULL, NULL), QUERN_OK, "a call that makes its output");
  made->deleter(made);
  one_line("call", "add,cpu,built,1,", ",", "it");
  DLTensor empty = tensor(0, 2, none), result = tensor(2, 2, none), *nothing[2] = {&empty, &empty}, *empties[1] = {&result};
  is_int(quern_op_call(add, 2, nothing, 1, empties, NULL), QUERN_OK, "a call of no elements");
  one_line("call", "add,cpu,built,1,", ",0x3 0x3 > 0x3,none,", "it");

  DLTensor wrong = tensor(2, 1, flat), *wrongs[1] = {&wrong};
  is_int(quern_op_call(add, 2, in, 1, wrongs, NULL), QUERN_E_SHAPE, "a call that fails");
  no_line("it");

  quern_status given = QUERN_OK;
  quern_op_def def = {.size = sizeof def, .name = "add", .n_in = 2, .n_out = 1, .self = &given, .call = answer};
  is_int(quern_op_register(ctx, &def), QUERN_OK, "an implementation of the host's");
  quern_op *registered = find(ctx, "add");
  call_wide(registered, 2);
  one_line("call", "add,cpu,registered,-,", ",f32 f32 > f32,2x3 2x3 > 2x3,-,", "its call");
  given = QUERN_E_UNSUPPORTED;
  call_wide(registered, 2);
  one_line("call", "add,cpu,built,1,", ",", "its call where it declines");
  given = QUERN_E_DRIVER;
  is_int(call_wide(registered, 2), QUERN_E_DRIVER, "its error");
  no_line("it");
  quern_op *const ops[] = {add, sum, scan, nonzero, astype, fused, rows, registered};
  for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) quern_op_release(ops[k]);
  quern_ctx_release(ctx);
}

/* ---- Where ---- */

static void hear(void *host, int level, const char *words) {
  (void)host;
  snprintf(heard, sizeof heard, "%d %s", level, words);
}

static void call_of(const quern_options *options) {
  quern_ctx *ctx;
  if (quern_ctx_create(options, &ctx)) bail("%s", quern_last_error());
  quern_op *add = find(ctx, "add");
  is_int(call_wide(add, 2), QUERN_OK, "  a call");
  quern_op_release(add);
  quern_ctx_release(ctx);
}

static void test_destinations(void) {
  quern_options options = {.size = sizeof options, .log = hear};
  for (int k = 0; k < 2; k++) {
    options.profile = k ? "" : "0";
    setenv("QUERN_PROFILE", path, 1);
    call_of(&options);
    no_line("with profile '0' or ''");
  }
  options.profile = NULL;
  call_of(&options);
  one_line("call", "add,cpu,", ",", "with QUERN_PROFILE");
  options.size = offsetof(quern_options, profile);
  options.profile = "garbage behind the struct";
  call_of(&options);
  one_line("call", "add,cpu,", ",", "and with options of before that field");
  setenv("QUERN_PROFILE", "0", 1);
  call_of(NULL);
  no_line("with QUERN_PROFILE=0");
  options = (quern_options){.size = sizeof options, .log = hear, .profile = "/proc/nonexistent/profile"};
  call_of(&options);
  has_str(heard, "1 profile: /proc/nonexistent/profile cannot be written", "a file that cannot be written is logged");
  unsetenv("QUERN_PROFILE");
}

/* ---- Threads, processes, totals ---- */

enum { THREADS = 8, CALLS = 200 };
static quern_ctx *shared;

static void *call_often(void *arg) {
  quern_op *op = find(shared, (intptr_t)arg % 2 ? "add" : "multiply");
  float mine[3][6] = {{0}};
  DLTensor x = {mine[0], {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, flat, NULL, 0}, y = x, z = x, *in[2] = {&x, &y}, *out[1] = {&z};
  y.data = mine[1];
  z.data = mine[2];
  for (int k = 0; k < CALLS; k++) quern_op_call(op, 2, in, 1, out, NULL);
  quern_op_release(op);
  return NULL;
}

static void call_from_threads(void) {
  pthread_t threads[THREADS];
  for (intptr_t k = 0; k < THREADS; k++)
    if (pthread_create(&threads[k], NULL, call_often, (void *)k)) bail("no thread");
  for (int k = 0; k < THREADS; k++) pthread_join(threads[k], NULL);
}

static void call_thrice(void) {
  quern_op *exp = find(shared, "exp");
  for (int k = 0; k < 3; k++) call_wide(exp, 1);
  quern_op_release(exp);
}

static void do_nothing(void) {}

/* Whether each line is whole. */
static int are_whole(const char *lines) {
  for (const char *at = lines; *at; at = strchr(at, '\n') + 1) {
    int commas = 0;
    if (strncmp(at, "quern_profile,", 14) != 0 || !strchr(at, '\n')) return 0;
    for (const char *c = at; *c != '\n'; c++) commas += *c == ',';
    if (commas != 9 && commas != 11) return 0;
  }
  return 1;
}

static void test_processes(void) {
  char line[80];
  shared = context(path);
  const char *said = said_by(call_from_threads);
  is_int(count(said, ",call,"), THREADS * CALLS, "many threads: a line a call");
  ok(are_whole(said), "  each whole");
  is_int(count(said, ",total,"), 2, "  two totals at exit");
  snprintf(line, sizeof line, ",add,%d,", THREADS / 2 * CALLS);
  has_str(said, line, "  of all calls");
  is_int(count(said, "quern_profile,event,pid,op,calls,ms,percent,mean_ms,max_ms,text\n"), 1, "  under the names of their columns");
  call_thrice(); /* in this process, which has 3 of its own */
  seen = strlen(read_file());
  said = said_by(call_thrice);
  is_int(count(said, ",exp,cpu,"), 3, "a child's calls");
  ok(count(said, ",total,") == 1 && strstr(said, ",exp,3,"), "  its totals have no calls of its parent: %s", said);
  is_str(said_by(do_nothing), "", "a child without calls says nothing");
  quern_ctx_release(shared);
}

static void call_gelu(void) {
  static float many[1 << 16];
  int64_t large[1] = {1 << 16};
  DLTensor x = {many, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, large, NULL, 0}, *in[1] = {&x};
  shared = context(path);
  quern_op *gelu = find(shared, "gelu");
  for (int k = 0; k < 20; k++) quern_op_call(gelu, 1, in, 1, in, NULL);
  quern_op_release(gelu);
  quern_ctx_release(shared);
}

int main(void) {
  snprintf(path, sizeof path, "%s/quern-t598-%d", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", (int)getpid());
  unlink(path);
  unsetenv("QUERN_PROFILE");
  test_kinds();
  test_destinations();
  test_processes();
  const char *said = said_by(call_gelu);
  const char *total = strstr(said, ",total,");
  ok(total && count(said, ",total,") == 1 && strstr(total, ",gelu,20,") && strstr(total, ",100.0,"), "one op has all of the time: %s", said);
  unlink(path);
  return done_testing();
}
