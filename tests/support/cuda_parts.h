/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_parts.h: what tests of the library's CUDA parts share: cases in processes of their own, each with a fake driver that
 * nobody has opened yet, and what the fake can be asked. */
#ifndef QUERN_TESTS_CUDA_PARTS_H
#define QUERN_TESTS_CUDA_PARTS_H

#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/cuda/cuda_driver.h"
#include "cuda/fake_cuda.h"
#include "tap.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
/* What a forked child has lost with its parent's threads is a leak to it: there a child leaves by _exit. */
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define LEAVE_CHILD _exit
#else
#define LEAVE_CHILD exit
#endif

static char fakes[512], old_fakes[600]; /* folders for QUERN_CUDA_PATH */

/* In a case: what it has found wrong goes to its parent, line by line. */
static FILE *findings;
#define CHECK(condition)                                                                 \
  do {                                                                                   \
    if (!(condition)) fprintf(findings, "line %d: %s; ", __LINE__, #condition);          \
  } while (0)
#define CHECK_INT(got, wanted)                                                                                  \
  do {                                                                                                          \
    const long long got_ = (got), wanted_ = (wanted);                                                           \
    if (got_ != wanted_) fprintf(findings, "line %d: %s is %lld, not %lld; ", __LINE__, #got, got_, wanted_);   \
  } while (0)
#define CHECK_HAS(text, part)                                                                              \
  do {                                                                                                     \
    const char *text_ = (text);                                                                            \
    if (!strstr(text_, part)) fprintf(findings, "line %d: '%s' in '%s'; ", __LINE__, part, text_);         \
  } while (0)

static inline void find_fakes(void) {
  const ssize_t n = readlink("/proc/self/exe", fakes, sizeof fakes - 8);
  fakes[n < 0 ? 0 : n] = 0;
  *strrchr(fakes, '/') = 0;
  snprintf(old_fakes, sizeof old_fakes, "%s/fake-old", fakes);
  strcat(fakes, "/fake");
}

/* Runs a case with the fake driver in `folder` and the variables a and b ("NAME=value"; NULL: none). "": all was well. */
static inline const char *run_case(const char *folder, const char *a, const char *b, void (*body)(void)) {
  static char said[4096];
  int ends[2], status = 0;
  size_t n = 0;
  ssize_t more;
  if (pipe(ends)) bail("no pipe");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    setenv("QUERN_CUDA_PATH", folder, 1);
    if (a) putenv((char *)(uintptr_t)a);
    if (b) putenv((char *)(uintptr_t)b);
    close(ends[0]);
    findings = fdopen(ends[1], "w");
    body();
    fclose(findings);
    if (!freopen("/dev/null", "w", stdout)) _exit(250); /* the parent's buffer is not ours to write */
    exit(0);
  }
  close(ends[1]);
  while (n < sizeof said - 1 && ((more = read(ends[0], said + n, sizeof said - 1 - n)) > 0 || (more < 0 && errno == EINTR)))
    n += more > 0 ? (size_t)more : 0;
  said[n] = 0;
  close(ends[0]);
  waitpid(pid, &status, 0);
  if (status) snprintf(said + n, sizeof said - n, "(the process ended with %#x)", status);
  return said;
}

/* ---- The fake, in a case ---- */

static inline void *of_fake(const char *name) {
  static void *fake;
  char path[700];
  snprintf(path, sizeof path, "%s/libcuda.so.1", getenv("QUERN_CUDA_PATH"));
  if (!fake) fake = dlopen(path, RTLD_NOW);
  void *function = fake ? dlsym(fake, name) : NULL;
  if (!function) bail("the fake has no %s", name);
  return function;
}

/* A function of the driver that the library has no use for. */
#define FAKE(name, arguments, ...) (((int (*) arguments)(uintptr_t)of_fake(name))(__VA_ARGS__))

static inline const char *calls(void) { return ((fake_cuda_log_function *)(uintptr_t)of_fake("fake_cuda_log"))(); }
static inline int n_calls(const char *of) { return ((fake_cuda_count_function *)(uintptr_t)of_fake("fake_cuda_count"))(of); }
static inline void forget_calls(void) { ((fake_cuda_clear_function *)(uintptr_t)of_fake("fake_cuda_clear"))(); }

/* "" as well: nothing fails from now on. Calls are counted anew. */
__attribute__((format(printf, 1, 2))) static inline void plan_failures(const char *format, ...) {
  char text[200];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  ((fake_cuda_plan_function *)(uintptr_t)of_fake("fake_cuda_plan"))(text);
}

static inline const qn_cuda_driver *the_fake(void) {
  quern_status status;
  const qn_cuda_driver *driver = qn_cuda_open(&status);
  if (!driver) bail("%s", quern_last_error());
  return driver;
}

static inline qn_cuda_context current_context(void) {
  qn_cuda_context context = NULL;
  the_fake()->context_get(&context);
  return context;
}

static inline qn_cuda_context make_context(int device) {
  qn_cuda_context context = NULL;
  the_fake();
  if (FAKE("cuCtxCreate_v2", (qn_cuda_context *, unsigned, int), &context, 0, device)) bail("no context");
  return context;
}

/* In the current context. */
static inline qn_cuda_stream make_stream(void) {
  qn_cuda_stream stream = NULL;
  if (FAKE("cuStreamCreate", (qn_cuda_stream *, unsigned), &stream, 1)) bail("no stream");
  return stream;
}

enum { CAPTURE_GLOBAL, CAPTURE_THREAD_LOCAL, CAPTURE_RELAXED };
static inline int begin_capture(qn_cuda_stream stream, int mode) {
  return FAKE("cuStreamBeginCapture_v2", (qn_cuda_stream, int), stream, mode);
}

/* 0: it was not lost. */
static inline int end_capture(qn_cuda_stream stream) {
  void *graph = NULL;
  const int result = FAKE("cuStreamEndCapture", (qn_cuda_stream, void **), stream, &graph);
  if (graph) FAKE("cuGraphDestroy", (void *), graph);
  return result;
}

#endif
