/* SPDX-License-Identifier: Apache-2.0
 *
 * develop.c: see develop.h. Contexts differ in threads, in when they compile (QUERN_JIT_*) and in their disk cache; the text is
 * the same in all of them, and so must be the result. Only what is said of the disk cache is measured with one. */
#define _DEFAULT_SOURCE /* mkdtemp, realpath */
#include "develop.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "picture.h"
#include "support.h"

/* demo.c's steps, in its order. rgb is 8-bit and so is the result; in between all is f32. */
static const char expression[] =
    "param exposure;\n"
    "f32 x      = (f32)rgb * (1 / 255);\n"
    "f32 linear = (x > 0.04045 ? pow((x + 0.055) / 1.055, 2.4) : x / 12.92) * gain;\n"
    "f32 tone   = demo.filmic(linear, exposure);\n"
    "f32 coded  = tone > 0.0031308 ? fma(pow(tone, 1 / 2.4), 1.055, -0.055) : tone * 12.92;\n"
    "developed  = (u8)fma(clip(coded, 0, 1), 255, 0.5);\n";

/* A context, the expression's op in it, and what its calls take. */
typedef struct developer {
  const develop_job *job;
  quern_ctx *ctx;
  quern_op *op;
  DLTensor *in[2], *out[1];
  quern_scalar exposure;
  quern_call call;
  char tier[32], reason[512], compile_ms[32]; /* what explain said last */
} developer;

/* 0: specs cannot be loaded here. */
static int developer_open(developer *d, const develop_job *job, int32_t jit, int32_t threads, const char *cache_dir) {
  const quern_options options = {.size = sizeof options, .jit = jit, .threads = threads, .cache_dir = cache_dir};
  *d = (developer){.job = job, .in = {job->picture, job->gain}, .out = {job->result}};
  d->exposure = (quern_scalar){QUERN_F64, {.f = {job->exposure}}};
  d->call = (quern_call){.size = sizeof d->call, .params = &d->exposure, .n_params = 1};
  if (quern_ctx_create(&options, &d->ctx) != 0) fail("a context", quern_last_error());
  const quern_status status = quern_spec_load(d->ctx, job->spec);
  if (status != 0 && status != QUERN_E_UNSUPPORTED) fail(job->spec, quern_last_error());
  return status == 0;
}

static void developer_close(developer *d) {
  quern_op_release(d->op);
  quern_ctx_release(d->ctx);
  *d = (developer){.job = NULL};
}

static void run(void *arg) {
  developer *d = arg;
  if (quern_op_call(d->op, 2, d->in, 1, d->out, &d->call) != 0) fail("the expression", quern_last_error());
}

/* The value in the line `key: value` of explain's text; "" if there is none. */
static void find_line(const char *text, const char *key, char *value, size_t size) {
  const size_t n = strlen(key);
  value[0] = 0;
  while (*text && !(strncmp(text, key, n) == 0 && text[n] == ':')) {
    text += strcspn(text, "\n");
    text += *text == '\n';
  }
  if (*text) snprintf(value, size, "%.*s", (int)strcspn(text + n + 2, "\n"), text + n + 2);
}

/* How a call would run now. */
static void explain(developer *d) {
  char text[16384];
  if (quern_op_explain(d->op, 2, d->in, 1, d->out, &d->call, text, sizeof text) != 0) fail("explain", quern_last_error());
  find_line(text, "tier", d->tier, sizeof d->tier);
  find_line(text, "reason", d->reason, sizeof d->reason);
  find_line(text, "compile_ms", d->compile_ms, sizeof d->compile_ms);
}

static int is_interpreted(const developer *d) { return strcmp(d->tier, "interpreter") == 0; }

/* ---- Results ---- */

static size_t result_size(const develop_job *job) {
  size_t n = 1;
  for (int32_t k = 0; k < job->result->ndim; k++) n *= (size_t)job->result->shape[k];
  return n;
}

/* From the text to the first result, in seconds; *text_took: for the text alone. */
static double first_result(developer *d, double *text_took) {
  memset(d->job->result->data, 0, result_size(d->job));
  const double start = now();
  if (quern_op_compile(d->ctx, expression, &d->op) != 0) fail("the expression", quern_last_error());
  *text_took = now() - start;
  run(d);
  const double took = now() - start;
  explain(d);
  return took;
}

/* 1: what the last run gave is wrong. */
static int is_wrong(const developer *d, const char *way) {
  const uint32_t crc = picture_crc32(0, d->job->result->data, result_size(d->job));
  if (crc == d->job->crc) return 0;
  printf("%s: CRC-32 %08x, not %08x\n", way, (unsigned)crc, (unsigned)d->job->crc);
  return 1;
}

/* Calls it until compiled code serves it, or no compile is under way. Returns the number of results before that. */
static int wait_for_code(developer *d) {
  int n = 1;
  for (const double start = now(); is_interpreted(d) && strncmp(d->reason, "being ", 6) == 0 && now() - start < 5; n++) {
    run(d);
    explain(d);
  }
  return n;
}

/* ---- What is shown ---- */

/* As an application meets it: a result at once, compiled code when there is some. */
static int show_async(developer *d) {
  double text;
  const double start = now(), first = first_result(d, &text), after = now();
  const int bad = is_wrong(d, "the first result");
  printf("\nThe first result came %.1f ms after the text was given (%.2f ms of it for the text), tier %s.\n", 1e3 * first,
         1e3 * text, d->tier);
  const double checked = now();
  const int n = wait_for_code(d);
  const double later = now() - start - (checked - after) - first;
  if (is_interpreted(d)) {
    printf("Compiled code is left out: %s.\n", d->reason);
    return bad;
  }
  printf("Compiled code took over %.0f ms later, after %d result%s: tier %s, %s.\n", 1e3 * later, n, n == 1 ? "" : "s", d->tier,
         d->reason);
  memset(d->job->result->data, 0, result_size(d->job));
  run(d);
  return bad | is_wrong(d, "compiled");
}

/* Compiles into an empty disk cache, then asks a context that has never seen the expression. */
static int show_disk(const develop_job *job, developer *d) {
  char made[4096], compile_ms[sizeof d->compile_ms];
  double text;
  developer fresh;
  snprintf(made, sizeof made, "%s/cache.XXXXXX", job->out);
  char *folder = mkdtemp(made) ? realpath(made, NULL) : NULL; /* a cache's path must be absolute */
  if (!folder) fail(made, strerror(errno));
  developer_open(d, job, QUERN_JIT_SYNC, 1, folder);
  first_result(d, &text);
  int bad = is_wrong(d, "compiled, one thread");
  memcpy(compile_ms, d->compile_ms, sizeof compile_ms);
  developer_open(&fresh, job, QUERN_JIT_SYNC, 1, folder);
  const double first = first_result(&fresh, &text);
  bad |= is_wrong(&fresh, "from disk");
  printf("Compiled again by the warm compiler: in %s ms. A new context that finds it in a disk cache: the first result\n"
         "after %.1f ms with one thread, tier %s.\n", compile_ms, 1e3 * first, fresh.tier);
  quern_cache_clear(fresh.ctx, NULL);
  developer_close(&fresh);
  rmdir(folder); /* it stays if something else has been put there */
  free(folder);
  return bad;
}

#define MAX_WAYS 10

/* Medians of all ways in turn. */
static void show_times(const develop_way *ways, int n_ways) {
  static double times[MAX_WAYS][2][N_RUNS];
  for (int r = 0; r < N_RUNS; r++)
    for (int k = 0; k < n_ways; k++)
      for (int one = 0; one < 2; one++) {
        if (!ways[k].run[one]) continue;
        const double start = now();
        ways[k].run[one](ways[k].arg[one]);
        times[k][one][r] = now() - start;
      }
  printf("\n%-36s %11s %10s\n", "The whole picture, milliseconds:", "all threads", "1 thread");
  for (int k = 0; k < n_ways; k++) {
    printf("  %-34s", ways[k].title);
    for (int one = 0; one < 2; one++) {
      if (ways[k].run[one]) printf(" %*.2f", one ? 10 : 11, 1e3 * median(times[k][one]));
      else printf(" %*s", one ? 10 : 11, "-");
    }
    printf("\n");
  }
}

int develop_show(const develop_job *job, const develop_way *others, int n_others) {
  developer interpreted[2], compiled[2] = {{.job = NULL}, {.job = NULL}};
  develop_way ways[MAX_WAYS] = {others[0]};
  int n_ways = 1, bad = 0;
  printf("\nAll of it as one expression: a text at run time, as is the spec of demo.filmic.\n\n%s", expression);
  const int can_load = developer_open(&interpreted[0], job, QUERN_JIT_OFF, 0, "");
  if (!can_load) printf("\nIt is left out: %s.\n", quern_last_error());
  if (can_load) {
    double text;
    developer_open(&compiled[0], job, QUERN_JIT_ASYNC, 0, "");
    bad |= show_async(&compiled[0]);
    developer_open(&interpreted[1], job, QUERN_JIT_OFF, 1, "");
    for (int one = 0; one < 2; one++) {
      first_result(&interpreted[one], &text);
      bad |= is_wrong(&interpreted[one], "interpreted");
    }
    ways[n_ways++] = (develop_way){"Quern, the expression interpreted", {run, run}, {&interpreted[0], &interpreted[1]}};
    if (!is_interpreted(&compiled[0])) {
      bad |= show_disk(job, &compiled[1]);
      ways[n_ways++] = (develop_way){"Quern, the expression compiled", {run, run}, {&compiled[0], &compiled[1]}};
    }
  }
  for (int k = 1; k < n_others; k++) ways[n_ways++] = others[k];
  show_times(ways, n_ways);
  for (int one = 0; one < 2 && can_load; one++) {
    developer_close(&interpreted[one]);
    developer_close(&compiled[one]);
  }
  if (can_load && !bad) printf("\nEvery way of the expression gave the same bytes: CRC-32 %08x.\n", (unsigned)job->crc);
  return bad;
}
