/* SPDX-License-Identifier: Apache-2.0
 *
 * built.h: what the tests of CUDA kernels built ahead share: a folder of them, made by fake_nvcc of what the generator writes for
 * the library; cases in processes of their own; operands on the CPU and on the device, and what explain says of a call.
 * Header-only. With the fake driver only. */
#ifndef QUERN_TESTS_CUDA_BUILT_H
#define QUERN_TESTS_CUDA_BUILT_H

#include <stdarg.h>
#include <sys/wait.h>

#include "on_device.h"

static char built_folder[200]; /* for QUERN_MODULE_DIR: it has the folder cuda, nothing else */

__attribute__((format(printf, 1, 2))) UNUSED static int shell(const char *format, ...) {
  char command[4000];
  va_list args;
  va_start(args, format);
  vsnprintf(command, sizeof command, format, args);
  va_end(args);
  return system(command);
}

/* Skips the test where it cannot be made. files: of the .cu files those that are compiled (a shell pattern). Opens no driver. */
UNUSED static void built_make(const char *options, const char *files) {
  char own[512];
  const char *source = getenv("QUERN_SOURCE_DIR"), *tmp = getenv("TMPDIR");
  if (is_on_gpu() || getenv("QUERN_CUDA_PATH")) skip_all("it is of the fake driver");
  if (!source) skip_all("QUERN_SOURCE_DIR is not set");
  if (system("c++ --version >/dev/null 2>&1")) skip_all("there is no c++ to compile the fake driver's kernels with");
  forget_environment();
  const ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
  own[n < 0 ? 0 : n] = 0;
  *strrchr(own, '/') = 0;
  snprintf(built_folder, sizeof built_folder, "%.150s/quern-built.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(built_folder)) bail("no scratch folder");
  if (shell("set -e; cd '%s'; lua5.4 '%s/build.lua' generate --library --target c,cuda %s --out gen >/dev/null; mkdir cuda; "
            "cp gen/cuda/kernels.txt cuda; cd gen/cuda; "
            "ls %s | xargs -P 2 -I@ sh -c \"'%s/fake-nvcc' @ ../../cuda/\\$(basename @ .cu).fatbin\"",
            built_folder, source, options, files, own))
    bail("the kernels cannot be made");
  setenv("QUERN_MODULE_DIR", built_folder, 1);
}

UNUSED static void built_remove(void) { shell("rm -rf '%s'", built_folder); }

/* ---- Cases -------------------------------------------------------------------------------------------------------- */

static int n_wants; /* in a case: what was not as it should be */

#define want(condition, ...)                                                             \
  do {                                                                                   \
    if (condition) break;                                                                \
    n_wants++;                                                                           \
    fprintf(stderr, "# line %d: %s: ", __LINE__, #condition);                            \
    fprintf(stderr, __VA_ARGS__);                                                        \
    fprintf(stderr, "\n");                                                               \
  } while (0)
#define want_has(text, part)                                                             \
  do {                                                                                   \
    const char *text_ = (text);                                                          \
    want(strstr(text_, part) != NULL, "'%s' in '%s'", part, text_);                      \
  } while (0)

/* Children end by _exit() with the library's threads: no leak. TSan reads these defaults of its options. */
#ifdef __SANITIZE_THREAD__
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) { return "report_thread_leaks=0"; }
#endif

/* body in a process of its own, where no driver is open, with these variables ("NAME=value"; NULL: none). 0: all was
 * well. */
UNUSED static int case_status(const char *a, const char *b, void (*body)(void)) {
  int status = 0;
  fflush(stdout);
  const pid_t pid = fork();
  if (pid < 0) bail("no child");
  if (pid == 0) {
    if (a) putenv((char *)(uintptr_t)a);
    if (b) putenv((char *)(uintptr_t)b);
    if (!freopen("/dev/null", "w", stdout)) _exit(250);
    const char *why = device_open();
    if (why) fprintf(stderr, "# %s\n", why), _exit(251);
    device_do(cuda.context_set(cuda.contexts[0]));
    body();
    fflush(stderr);
    _exit(n_wants > 100 ? 100 : n_wants);
  }
  waitpid(pid, &status, 0);
  return status;
}

UNUSED static void run_case(const char *name, const char *a, const char *b, void (*body)(void)) {
  const int status = case_status(a, b, body);
  ok(status == 0, "%s", name);
  if (status && !(WIFEXITED(status) && WEXITSTATUS(status) <= 100)) diag("the process ended with %#x", (unsigned)status);
}

/* ---- Calls -------------------------------------------------------------------------------------------------------- */

/* Operands on the CPU, and the same on the device. Zero it first. */
typedef struct pair {
  operands o;
  mirror in[MOST_OPERANDS], out[MOST_OPERANDS];
  DLTensor *ins[MOST_OPERANDS], *outs[MOST_OPERANDS];
} pair;

UNUSED static void pair_mirror(pair *p) {
  for (int k = 0; k < p->o.n_in; k++) mirror_make(&p->in[k], &p->o.in[k], 0), p->ins[k] = &p->in[k].t;
  for (int k = 0; k < p->o.n_out; k++) mirror_make(&p->out[k], &p->o.out[k], 0), p->outs[k] = &p->out[k].t;
}

UNUSED static void pair_make(pair *p, const char *in, const char *out, int ndim, const int64_t *shape) {
  rng r;
  rng_seed(&r, (uint64_t)(shape[0] + ndim));
  operands_make(&p->o, in, out, ndim, shape, &r);
  pair_mirror(p);
}

/* Swaps the first two dimensions of an operand, which are of one length, on both sides. */
UNUSED static void pair_transpose(pair *p, int k) {
  int64_t *strides = p->o.in[k].strides, first = strides[0];
  strides[0] = strides[1], strides[1] = first;
}

UNUSED static void pair_free(pair *p) {
  for (int k = 0; k < p->o.n_in; k++) mirror_free(&p->in[k]);
  for (int k = 0; k < p->o.n_out; k++) mirror_free(&p->out[k]);
  operands_free(&p->o);
}

/* Called on both sides, it gives the same bytes. */
UNUSED static void pair_call(pair *p, quern_op *op, const quern_call *call, int line) {
  char what[400];
  want(operands_call(op, &p->o, call) == 0, "line %d: %s", line, quern_last_error());
  want(quern_op_call(op, p->o.n_in, p->ins, p->o.n_out, p->outs, call) == 0, "line %d: %s", line, quern_last_error());
  for (int k = 0; k < p->o.n_out; k++)
    want(mirror_same(&p->out[k], what, sizeof what), "line %d: output %d: %s", line, k, what);
}

UNUSED static const char *pair_explained(pair *p, quern_op *op, const quern_call *call, const char *key) {
  static _Thread_local char text[16384];
  if (quern_op_explain(op, p->o.n_in, p->ins, p->o.n_out, p->outs, call, text, sizeof text)) return quern_last_error();
  return line_of(text, key);
}

/* Waits until a call would run code of that tier; 0: it did not come. */
UNUSED static int pair_becomes(pair *p, quern_op *op, const quern_call *call, const char *tier) {
  for (double start = now_ms(); now_ms() - start < 60000; sleep_ms(5))
    if (strcmp(pair_explained(p, op, call, "tier"), tier) == 0) return 1;
  return 0;
}

#endif
