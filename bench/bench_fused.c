/* SPDX-License-Identifier: Apache-2.0
 *
 * bench_fused.c: see bench_fused.h. All contexts but fused_warm's are without a disk cache. Where nothing can be compiled,
 * the cases that want it are left out, with the reason on standard error. */
#include "bench_fused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <quern/quern.h>

#include "measure.h"
#include "stream.h"

typedef struct expression {
  quern_ctx *ctx;
  quern_op *op;
  int32_t n_in;
  array in[4], out;
  DLTensor *ins[4], *outs[1];
  char tier[32], reason[512];
} expression;

/* ---- An expression and its operands ---- */

static void open_context(expression *e, int32_t jit, const char *cache_dir) {
  const quern_options options = {.size = sizeof options, .jit = jit, .threads = threads(), .cache_dir = cache_dir};
  if (quern_ctx_create(&options, &e->ctx)) fail();
  e->op = NULL;
}

static void compile(expression *e, const char *text) {
  if (quern_op_compile(e->ctx, text, &e->op)) fail();
}

static void run(void *arg) {
  expression *e = arg;
  if (quern_op_call(e->op, e->n_in, e->ins, 1, e->outs, NULL)) fail();
}

static void link_operands(expression *e, int32_t n_in) {
  e->n_in = n_in;
  for (int k = 0; k < 4; k++) e->ins[k] = &e->in[k].t;
  e->outs[0] = &e->out.t;
}

/* n_in inputs of n elements. */
static void make_vectors(expression *e, int32_t n_in, int64_t n) {
  for (int32_t k = 0; k < n_in; k++) array_make(&e->in[k], "f32", 1, n, 0, 0);
  array_make(&e->out, "f32", 1, n, 0, 0);
  link_operands(e, n_in);
}

static void free_operands(expression *e) {
  for (int32_t k = 0; k < e->n_in; k++) free(e->in[k].memory);
  free(e->out.memory);
}

static void find_line(const char *text, const char *key, char *value, size_t size) {
  const char *at = strstr(text, key);
  value[0] = 0;
  if (at) snprintf(value, size, "%.*s", (int)strcspn(at + strlen(key), "\n"), at + strlen(key));
}

static void explain(expression *e) {
  char text[16384];
  if (quern_op_explain(e->op, e->n_in, e->ins, 1, e->outs, NULL, text, sizeof text)) fail();
  find_line(text, "tier: ", e->tier, sizeof e->tier);
  find_line(text, "reason: ", e->reason, sizeof e->reason);
}

/* Whether code was compiled; if not, prints the reason on standard error. */
static int is_compiled(expression *e, const char *name) {
  explain(e);
  if (strcmp(e->tier, "interpreter") != 0) return 1;
  fprintf(stderr, "quern-bench: %s is left out: %s\n", name, e->reason);
  return 0;
}

/* ---- Cases ---- */

typedef struct fused_case {
  const char *name, *text;
  int32_t n_in;
  const char *dtypes[4];
  const char *shapes; /* a letter an input: '.' all of it, '|' one column, '-' one row */
  int64_t rows, columns; /* columns 0: one dimension */
} fused_case;

#define LIGHT "y = a * b + c"
#define GELU "y = gelu(a * b + c) * d"
#define CHAIN "f32 u = abs((a * b + c) * 0.5 - a); y = ((u * b + 1.5) * u - c) * 0.25 + a + u"
#define F32 {"f32", "f32", "f32", "f32"}

static const fused_case cases[] = {
    {"fused_light_1e5", LIGHT, 3, F32, "...", 100000, 0},
    {"fused_light_1e7", LIGHT, 3, F32, "...", 10000000, 0},
    {"fused_gelu_1e5", GELU, 4, F32, "....", 100000, 0},
    {"fused_gelu_1e7", GELU, 4, F32, "....", 10000000, 0},
    {"fused_chain12_1e5", CHAIN, 3, F32, "...", 100000, 0},
    {"fused_chain12_1e7", CHAIN, 3, F32, "...", 10000000, 0},
    {"fused_mixed_1e5", LIGHT, 3, {"f16", "f32", "f16"}, "...", 100000, 0},
    {"fused_mixed_1e7", LIGHT, 3, {"f16", "f32", "f16"}, "...", 10000000, 0},
    {"fused_broadcast_1e7", LIGHT, 3, F32, ".|-", 10000, 1000},
};

static void make_operands(expression *e, const fused_case *c) {
  for (int32_t k = 0; k < c->n_in; k++) {
    const char shape = c->shapes[k];
    if (!c->columns) array_make(&e->in[k], c->dtypes[k], 1, c->rows, 0, 0);
    else if (shape == '-') array_make(&e->in[k], c->dtypes[k], 1, c->columns, 0, 0);
    else array_make(&e->in[k], c->dtypes[k], 2, c->rows, shape == '|' ? 1 : c->columns, 0);
  }
  array_make(&e->out, "f32", c->columns ? 2 : 1, c->rows, c->columns, 0);
  link_operands(e, c->n_in);
}

static void run_case(const fused_case *c) {
  char interpreted[64];
  snprintf(interpreted, sizeof interpreted, "%s_interpreted", c->name);
  if (!is_wanted(c->name) && !is_wanted(interpreted)) return;
  expression e;
  make_operands(&e, c);
  double bytes = array_bytes(&e.out);
  for (int32_t k = 0; k < c->n_in; k++) bytes += array_bytes(&e.in[k]);
  for (int is_off = 0; is_off < 2; is_off++) {
    const char *name = is_off ? interpreted : c->name;
    if (!is_wanted(name)) continue;
    open_context(&e, is_off ? QUERN_JIT_OFF : QUERN_JIT_SYNC, "");
    compile(&e, c->text);
    run(&e);
    if (is_off || is_compiled(&e, name)) report(name, median_ns(run, &e), bytes);
    quern_op_release(e.op);
    quern_ctx_release(e.ctx);
  }
  free_operands(&e);
}

/* ---- Hand-written loops over the same number of bytes ---- */

static void streams(void) {
  if ((!is_wanted("fused_stream_3_1e7") && !is_wanted("fused_stream_4_1e7")) || !stream_is_there()) return;
  expression e;
  stream s = {.n = 10000000};
  make_vectors(&e, 4, s.n);
  for (int k = 0; k < 4; k++) s.in[k] = e.in[k].memory;
  s.out = e.out.memory;
  if (is_wanted("fused_stream_3_1e7")) report("fused_stream_3_1e7", median_ns(stream_3, &s), 16.0 * (double)s.n);
  if (is_wanted("fused_stream_4_1e7")) report("fused_stream_4_1e7", median_ns(stream_4, &s), 20.0 * (double)s.n);
  free_operands(&e);
}

void fused_cases(void) {
  for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) run_case(&cases[k]);
  streams();
}

/* ---- How soon ---- */

enum { SMALL = 1000, N_NEW = 9 };

/* The time from a text to its first result. `number`, the last constant, makes the text new to this process. */
static double time_new(expression *e, const char *text, int number) {
  char new_text[4096];
  snprintf(new_text, sizeof new_text, "%s + %d.5", text, number);
  quern_op_release(e->op);
  const double start = now();
  compile(e, new_text);
  run(e);
  return now() - start;
}

/* Waits until no compile for it is under way. */
static void wait_for_compiler(expression *e) {
  const struct timespec pause = {0, 1000000};
  const double start = now();
  do {
    nanosleep(&pause, NULL);
    explain(e);
  } while (!strcmp(e->tier, "interpreter") && !strncmp(e->reason, "being ", 6) && now() - start < 10e9);
}

int fused_first(double start) {
  expression e;
  make_vectors(&e, 4, SMALL);
  open_context(&e, QUERN_JIT_ASYNC, "");
  compile(&e, GELU);
  run(&e);
  report("first_expression_in_process", now() - start, 0);
  double times[N_NEW], worst = 0;
  wait_for_compiler(&e);
  for (int k = 0; k < N_NEW; k++) {
    times[k] = time_new(&e, GELU, k);
    if (times[k] > worst) worst = times[k];
    wait_for_compiler(&e);
  }
  report("first_expression_later", median(times, N_NEW), 0);
  report("first_expression_later_worst", worst, 0);
  quern_op_release(e.op);
  quern_ctx_release(e.ctx);
  free_operands(&e);
  return 0;
}

/* The number of operations in the compiled loop: assignments to temporaries in its text. */
static int operations(expression *e) {
  char *text;
  int n = 0;
  if (quern_op_source(e->op, e->n_in, e->ins, 1, e->outs, &text)) fail();
  for (const char *at = text; (at = strstr(at, " t")); at += 2) {
    const size_t digits = strspn(at + 2, "0123456789");
    n += digits && !strncmp(at + 2 + digits, " = ", 3);
  }
  quern_free(text);
  return n;
}

int fused_compile(double start) {
  static const struct {
    const char *name, *text;
    int32_t n_in;
  } kinds[] = {{"compile_light", LIGHT, 3}, {"compile_chain12", CHAIN, 3}, {"compile_exp", "y = exp(a * b) * c", 3},
               {"compile_tanh", "y = tanh(a * b + c)", 3}, {"compile_gelu", GELU, 4}, {"compile_60_light", NULL, 3}};
  expression e;
  char long_text[1024] = "a";
  make_vectors(&e, 4, SMALL);
  open_context(&e, QUERN_JIT_SYNC, "");
  compile(&e, GELU);
  run(&e);
  const double first = now() - start;
  if (!is_compiled(&e, "--compile")) return 0;
  report("compile_in_fresh_process", first, operations(&e));
  for (int k = 0; k < 29; k++) { /* two operations more each time, and time_new adds one */
    char shorter[sizeof long_text];
    strcpy(shorter, long_text);
    snprintf(long_text, sizeof long_text, "(%.900s * b %c c)", shorter, k % 2 ? '-' : '+');
  }
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    double times[N_NEW];
    e.n_in = kinds[k].n_in;
    for (int i = 0; i < N_NEW; i++) times[i] = time_new(&e, kinds[k].text ? kinds[k].text : long_text, i);
    if (is_compiled(&e, kinds[k].name)) report(kinds[k].name, median(times, N_NEW), operations(&e));
  }
  quern_op_release(e.op);
  quern_ctx_release(e.ctx);
  e.n_in = 4;
  free_operands(&e);
  return 0;
}

/* The number of files of LLVM, Clang and Lua that this process has mapped. */
static int count_modules(void) {
  static const char *const words[] = {"LLVM", "clang", "lua", "quern-gen"};
  FILE *maps = fopen("/proc/self/maps", "r");
  char line[4096], last[sizeof line] = "";
  int n = 0;
  while (maps && fgets(line, sizeof line, maps)) {
    const char *path = strchr(line, '/'), *file = path ? strrchr(path, '/') + 1 : "";
    int is_one = 0;
    for (size_t k = 0; k < sizeof words / sizeof words[0]; k++) is_one |= strstr(file, words[k]) != NULL;
    n += is_one && strcmp(path, last) != 0;
    if (is_one) strcpy(last, path);
  }
  if (maps) fclose(maps);
  return maps ? n : -1;
}

int fused_warm(double start, const char *cache_dir) {
  expression e;
  make_vectors(&e, 4, SMALL);
  open_context(&e, QUERN_JIT_SYNC, cache_dir);
  compile(&e, GELU);
  run(&e);
  const double took = now() - start;
  if (!is_compiled(&e, "--warm")) return 0;
  report(!strcmp(e.tier, "disk") ? "warm_start" : "cold_start", took, 0);
  report("modules_mapped", count_modules(), 0);
  quern_op_release(e.op);
  quern_ctx_release(e.ctx);
  free_operands(&e);
  return 0;
}

/* As for one op: mixed dtypes and a transposition, so that every block is in use, and temporaries besides. */
int fused_memory(void) {
  expression e;
  array_make(&e.in[0], "u8", 2, 10000, 10000, 0);
  array_make(&e.in[1], "f16", 1, 10000, 0, 0);
  e.in[0].strides[0] = 1, e.in[0].strides[1] = 10000;
  array_make(&e.out, "f16", 2, 10000, 10000, 0);
  link_operands(&e, 2);
  open_context(&e, QUERN_JIT_OFF, "");
  const long before = peak_kilobytes();
  compile(&e, "y = gelu(a + b) * b - exp(b) * a");
  run(&e);
  report("memory_beyond_operands_expression", 1024.0 * (double)(peak_kilobytes() - before), 0);
  return 0;
}
