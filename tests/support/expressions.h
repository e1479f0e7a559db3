/* SPDX-License-Identifier: Apache-2.0
 *
 * expressions.h: what the tests of run-time ops share, by the public functions only: contexts, a compiler if there is
 * one, calls on operands of any kind, what explain says of them. Header-only. */
#ifndef QUERN_TESTS_EXPRESSIONS_H
#define QUERN_TESTS_EXPRESSIONS_H

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tensors.h"

/* Nothing of this machine's user is read or written, and nothing that he has set counts. */
UNUSED static void forget_settings(void) {
  static const char *const names[] = {"QUERN_JIT",           "QUERN_CC",  "QUERN_RECORD",     "QUERN_DUMP",
                                      "QUERN_TEST_COMPILER", "QUERN_ISA", "QUERN_MODULE_DIR", "QUERN_LOG",
                                      "QUERN_NUM_THREADS"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
  setenv("QUERN_CACHE_DIR", "none", 1);
}

/* The same; skips where ops are missing. */
UNUSED static void forget_environment(void) {
  forget_settings();
  if (is_subset()) skip_all("this build has some ops only");
}

UNUSED static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

UNUSED static void sleep_ms(int ms) { usleep((useconds_t)ms * 1000); }

/* ---- Contexts and ops ------------------------------------------------------------------------------------------- */

UNUSED static quern_ctx *ctx_with(quern_options options) {
  quern_ctx *ctx = NULL;
  options.size = sizeof options;
  if (!options.cache_dir) options.cache_dir = "";
  if (quern_ctx_create(&options, &ctx)) bail("ctx_create: %s", quern_last_error());
  return ctx;
}

/* The compiler that is here: "clang", which QUERN_TEST_COMPILER can hold, else "cc", else NULL; and the option that
 * chooses it. */
static const char *compiler, *compiler_option;

UNUSED static quern_ctx *ctx_of(int32_t jit) {
  return ctx_with((quern_options){.jit = jit, .threads = 2, .cc = compiler_option});
}

UNUSED static quern_op *op_from(quern_ctx *ctx, const char *text) {
  quern_op *op = NULL;
  if (quern_op_compile(ctx, text, &op)) bail("%s: %s", text, quern_last_error());
  return op;
}

UNUSED static quern_status load_spec(quern_ctx *ctx, const char *name, const char *text) {
  return quern_spec_load_text(ctx, name, text, strlen(text));
}

UNUSED static quern_op *op_named(quern_ctx *ctx, const char *name) {
  quern_op *op = NULL;
  if (quern_op_find(ctx, name, &op)) bail("%s: %s", name, quern_last_error());
  return op;
}

/* ---- Calls ------------------------------------------------------------------------------------------------------ */

#define MOST_OPERANDS 32

/* Operands of a call of one expression; zero it first. */
typedef struct operands {
  int n_in, n_out;
  operand in[MOST_OPERANDS], out[MOST_OPERANDS];
  DLTensor *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
} operands;

UNUSED static void operands_point(operands *o) {
  for (int k = 0; k < o->n_in; k++) o->ins[k] = &o->in[k].t;
  for (int k = 0; k < o->n_out; k++) o->outs[k] = &o->out[k].t;
}

/* Compact operands of one shape, with random contents; "f32 i32" names dtypes. */
UNUSED static void operands_make(operands *o, const char *in, const char *out, int ndim, const int64_t *shape, rng *r) {
  memset(o, 0, sizeof *o);
  for (int way = 0; way < 2; way++) {
    char word[16];
    int used;
    for (const char *at = way ? out : in; sscanf(at, " %15s%n", word, &used) == 1; at += used) {
      ref_dtype d = 0;
      while (d < REF_N_DTYPES && strcmp(ref_dtype_name(d), word) != 0) d++;
      if (d == REF_N_DTYPES) bail("no dtype %s", word);
      operand_make(way ? &o->out[o->n_out++] : &o->in[o->n_in++], d, ndim, shape, NULL, r);
    }
  }
  operands_point(o);
}

UNUSED static void operands_vector(operands *o, const char *in, const char *out, int64_t n, rng *r) {
  operands_make(o, in, out, 1, &n, r);
}

UNUSED static void operands_free(operands *o) {
  for (int k = 0; k < MOST_OPERANDS; k++) {
    operand_free(&o->in[k]);
    operand_free(&o->out[k]);
  }
}

UNUSED static quern_status operands_call(quern_op *op, operands *o, const quern_call *call) {
  return quern_op_call(op, o->n_in, o->ins, o->n_out, o->outs, call);
}

/* The value of a line `key: value` of a text, into one of a few static buffers; "" where there is none. */
UNUSED static const char *line_of(const char *text, const char *key) {
  static _Thread_local char values[8][512];
  static _Thread_local unsigned turn;
  char *value = values[turn++ % 8];
  size_t n = strlen(key);
  value[0] = 0;
  for (const char *at = text; at && *at; at = strchr(at, '\n'), at += at != NULL) {
    if (strncmp(at, key, n) == 0 && at[n] == ':' && at[n + 1] == ' ') {
      snprintf(value, sizeof values[0], "%.*s", (int)strcspn(at + n + 2, "\n"), at + n + 2);
      break;
    }
  }
  return value;
}

/* What explain says under `key`. */
UNUSED static const char *explained(quern_op *op, operands *o, const quern_call *call, const char *key) {
  static _Thread_local char text[16384];
  if (quern_op_explain(op, o->n_in, o->ins, o->n_out, o->outs, call, text, sizeof text)) return quern_last_error();
  return line_of(text, key);
}

UNUSED static const char *tier_of(quern_op *op, operands *o, const quern_call *call) {
  return explained(op, o, call, "tier");
}

/* What quern_ctx_describe says under `key`. */
UNUSED static const char *described(quern_ctx *ctx, const char *key) {
  static char text[8192];
  if (quern_ctx_describe(ctx, text, sizeof text)) bail("%s", quern_last_error());
  return line_of(text, key);
}

/* Waits until the compiled code is there; 0: it did not come. */
UNUSED static int becomes(quern_op *op, operands *o, const quern_call *call, const char *tier) {
  for (double start = now_ms(); now_ms() - start < 30000; sleep_ms(2)) {
    if (strcmp(tier_of(op, o, call), tier) == 0) return 1;
  }
  return 0;
}

/* Whether the elements of two tensors of one shape and dtype have the same bits. */
UNUSED static int same_elements(const operand *a, const operand *b) {
  int64_t index[QUERN_MAX_NDIM + 1] = {0};
  if (ref_n_elements(&a->t) == 0) return 1;
  do {
    if (memcmp(ref_address(&a->t, index), ref_address(&b->t, index), (size_t)ref_dtype_size(a->d)) != 0) return 0;
  } while (ref_next_index(a->t.ndim, a->t.shape, index));
  return 1;
}

/* A call is refused with that status and a sentence with these words, and so is a plan; outputs stay as they are. */
UNUSED static void refuses(quern_op *op, operands *o, const quern_call *call, quern_status status, const char *words,
                    const char *name) {
  for (int k = 0; k < o->n_out; k++)
    if (o->out[k].memory) operand_save(&o->out[k]);
  const quern_status got = operands_call(op, o, call);
  ok(got == status, "%s: %s, wanted %s", name, status_name(got), status_name(status));
  if (got == status) has_str(quern_last_error(), words, "  said");
  quern_plan *plan = NULL;
  int is_same = 1;
  for (int k = 0; k < o->n_out; k++) is_same &= !o->out[k].memory || operand_same(&o->out[k]);
  ok(is_same, "  nothing was written");
  if (status == QUERN_E_OVERLAP) return; /* of data pointers, which plans do not have */
  is_int(quern_op_prepare(op, o->n_in, o->ins, o->n_out, o->outs, call, &plan), status, "  no plan");
}

/* ---- A compiler ------------------------------------------------------------------------------------------------- */

UNUSED static int compiles_with(const char *option, const char *tier) {
  rng r;
  operands o;
  quern_ctx *ctx = ctx_with((quern_options){.jit = QUERN_JIT_SYNC, .threads = 1, .cc = option});
  quern_op *op = op_from(ctx, "x * x + 1");
  rng_seed(&r, 0);
  operands_vector(&o, "f32", "f32", 8, &r);
  int is_good = operands_call(op, &o, NULL) == QUERN_OK && strcmp(tier_of(op, &o, NULL), tier) == 0;
  if (!is_good) diag("no %s: %s", tier, explained(op, &o, NULL, "reason"));
  operands_free(&o);
  quern_op_release(op);
  quern_ctx_release(ctx);
  return is_good;
}

/* Sets compiler and compiler_option. */
UNUSED static void find_compiler(void) {
  compiler = NULL;
  compiler_option = NULL;
  if (compiles_with(NULL, "clang")) {
    compiler = "clang";
  } else if (compiles_with("cc", "cc")) {
    compiler = "cc";
    compiler_option = "cc";
  }
}

/* A compile takes so long from now on; 0: no longer than it must. */
UNUSED static void hold_compiles(int ms) {
  char text[40];
  snprintf(text, sizeof text, "hold=%d", ms);
  if (ms)
    setenv("QUERN_TEST_COMPILER", text, 1);
  else
    unsetenv("QUERN_TEST_COMPILER");
}

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

UNUSED static quern_scalar scalar_i(int64_t i) { return (quern_scalar){QUERN_I64, {.i = i}}; }

UNUSED static quern_scalar scalar_f(double f) { return (quern_scalar){QUERN_F64, {.f = {f, 0}}}; }

/* ---- Processes -------------------------------------------------------------------------------------------------- */

/* Runs body in a forked child: its result, 1000 + the signal that ended it, or -1: it hung. */
UNUSED static int in_child(int (*body)(void *arg), void *arg) {
  fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) bail("no child");
  if (pid == 0) _exit(body(arg));
  for (double start = now_ms(); now_ms() - start < 20000; sleep_ms(1)) {
    int status;
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  kill(pid, SIGKILL);
  waitpid(pid, NULL, 0);
  return -1;
}

#endif /* QUERN_TESTS_EXPRESSIONS_H */
