/* SPDX-License-Identifier: Apache-2.0
 *
 * command_info.c: quern info and quern cache: what the library says about itself and its disk cache. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command_line.h"
#include "command_tables.h"
#include "commands.h"
#include "say.h"

static quern_status fill_description(void *ctx, char *text, size_t size) { return quern_ctx_describe(ctx, text, size); }

/* The library opens its modules, and CUDA, at first need, and whether it can is asked here: a small expression is compiled, past
 * every cache, for the CPU and for the first CUDA device. Failures are what the description tells. */
static void wake_modules(void) {
  const quern_options options = {.size = sizeof options, .jit = QUERN_JIT_SYNC, .threads = 1, .cache_dir = ""};
  int64_t shape[1] = {1};
  float items[2] = {1, 1};
  DLTensor x = {.data = &items[0], .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = shape}, y = x;
  DLTensor *const in[1] = {&x}, *const out[1] = {&y};
  quern_ctx *ctx = NULL;
  quern_op *op = NULL;
  quern_plan *plan = NULL;
  char *source = NULL;
  y.data = &items[1];
  if (quern_ctx_create(&options, &ctx) == QUERN_OK && quern_op_compile(ctx, "y = x * x + x", &op) == QUERN_OK) {
    if (quern_op_source(op, 1, in, 1, out, &source) == QUERN_OK) quern_free(source);
    if (quern_op_prepare(op, 1, in, 1, out, NULL, &plan) == QUERN_OK) quern_plan_release(plan);
    x.device = y.device = (DLDevice){kDLCUDA, 0};
    x.data = y.data = NULL; /* a plan keeps none */
    if (quern_op_prepare(op, 1, in, 1, out, NULL, &plan) == QUERN_OK) quern_plan_release(plan);
  }
  quern_op_release(op);
  quern_ctx_release(ctx);
}

int command_info(int argc, char **argv) {
  command_line line = {.usage = info_usage, .argc = argc, .argv = argv};
  const char *value;
  const int got = command_line_next(&line, info_options, &value);
  if (got == COMMAND_LINE_MISUSE) return STATUS_MISUSE;
  if (got == COMMAND_LINE_WORD) return misuse(info_usage, "unexpected '%.100s'", value);
  wake_modules();
  quern_ctx *ctx = open_context(NULL, NULL);
  char *text = ctx ? text_of_any_size(fill_description, ctx) : NULL;
  if (text) fputs(text, stdout);
  const int status = text ? finish_output() : STATUS_FAILED;
  free(text);
  quern_ctx_release(ctx);
  return status;
}

/* ---- The cache ---- */

typedef struct cache_total {
  int64_t entries, bytes;
} cache_total;

/* Prints one line: the entry's last use, size and key. Control characters of the key become spaces. */
static void print_entry(void *arg, const char *key, int64_t bytes, int64_t used) {
  cache_total *total = arg;
  char when[32] = "?";
  struct tm fields;
  const time_t seconds = (time_t)used;
  if (gmtime_r(&seconds, &fields)) strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &fields);
  printf("%s %8lld  ", when, (long long)bytes);
  for (; *key; key++) putchar((unsigned char)*key < ' ' || *key == 0x7f ? ' ' : *key);
  putchar('\n');
  total->entries++;
  total->bytes += bytes;
}

static int list_cache(quern_ctx *ctx) {
  cache_total total = {0, 0};
  if (quern_cache_list(ctx, print_entry, &total)) return complain_library();
  printf("%lld entries, %lld bytes\n", (long long)total.entries, (long long)total.bytes);
  return finish_output();
}

static int clear_cache(quern_ctx *ctx) {
  int64_t n_removed = 0;
  if (quern_cache_clear(ctx, &n_removed)) return complain_library();
  printf("%lld entries removed\n", (long long)n_removed);
  return finish_output();
}

int command_cache(int argc, char **argv) {
  command_line line = {.usage = cache_usage, .argc = argc, .argv = argv};
  const char *value, *action = "list";
  int got, n_words = 0;
  while ((got = command_line_next(&line, cache_options, &value)) != COMMAND_LINE_END) {
    if (got == COMMAND_LINE_MISUSE) return STATUS_MISUSE;
    if (++n_words > 1) return misuse(cache_usage, "unexpected '%.100s'", value);
    action = value;
  }
  const int is_clear = strcmp(action, "clear") == 0;
  if (!is_clear && strcmp(action, "list") != 0) {
    static const char *const actions[] = {"list", "clear"};
    char hint[COMMAND_LINE_HINT_SIZE];
    return misuse(cache_usage, "unknown action '%.100s'%s", action, command_line_hint(action, actions, 2, sizeof actions[0], hint));
  }
  quern_ctx *ctx = open_context(NULL, NULL);
  const int status = !ctx ? STATUS_FAILED : is_clear ? clear_cache(ctx) : list_cache(ctx);
  quern_ctx_release(ctx);
  return status;
}
