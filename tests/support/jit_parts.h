/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_parts.h: what tests of run-time compilation share: a compiler that is there, expressions x0 * x1 + N on f32, a
 * log that counts. */
#ifndef QUERN_TESTS_JIT_PARTS_H
#define QUERN_TESTS_JIT_PARTS_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/core/base/isa.h"
#include "runtime/core/base/kernel_abi.h"
#include "runtime/core/base/status.h"
#include "runtime/jit/jit.h"
#include "runtime/toolchain/cpu_target.h"
#include "runtime/toolchain/jit_cc.h"
#include "runtime/toolchain/jit_clang.h"
#include "tap.h"

#ifndef __has_feature
#define __has_feature(name) 0
#endif
#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#else
#define UNDER_TSAN 0
#endif
#if defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#else
#define UNDER_ASAN 0
#endif

static char scratch[256]; /* a folder of this test's own */

static inline double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* ---- What the library says ---- */

typedef struct heard {
  pthread_mutex_t lock;
  int n_compiled, n_warnings;
  char warning[256]; /* the last */
  void (*also)(void *arg, const char *text);
  void *arg;
} heard;

#define HEARD_START {.lock = PTHREAD_MUTEX_INITIALIZER}

static inline void hear(void *host, int level, const char *text) {
  heard *h = host;
  pthread_mutex_lock(&h->lock);
  h->n_compiled += strstr(text, "compiled by") != NULL;
  if (level <= 1) {
    h->n_warnings++;
    snprintf(h->warning, sizeof h->warning, "%s", text);
  }
  pthread_mutex_unlock(&h->lock);
  if (h->also) h->also(h->arg, text);
}

static inline int n_compiled(heard *h) {
  pthread_mutex_lock(&h->lock);
  const int n = h->n_compiled;
  pthread_mutex_unlock(&h->lock);
  return n;
}

/* ---- A compiler ---- */

static const char *cc_given; /* NULL: Clang in process is there; else the C compiler that stands in for it */
static const char *tier;     /* "clang" or "cc" */

/* Finds a compiler and a generator, or skips the test. Nothing of this machine's user is read or written. */
static inline void need_parts(void) {
  static const char *const dtypes[] = {"f32", "f32", "f32"};
  const qn_source_request request = {.symbol = "qj_0", .canonical = "x0 * x1 + 1", .dtypes = dtypes, .n_in = 2,
                                     .n_out = 1, .classes = "ccc", .rank = 1};
  qn_bytes source = {NULL, 0};
  qn_generator *generator = qn_generator_create();
  char text[2048];
  setenv("QUERN_CACHE_DIR", "none", 1);
  unsetenv("QUERN_JIT");
  unsetenv("QUERN_CC");
  unsetenv("QUERN_DUMP");
  unsetenv("QUERN_RECORD");
  cc_given = qn_clang_identity(text, sizeof text) ? NULL : "cc";
  tier = cc_given ? "cc" : "clang";
  if (cc_given && !qn_cc_identity(cc_given, text, sizeof text)) skip_all("no compiler of kernels is here");
  if (qn_generator_source(generator, &request, &source, NULL)) skip_all("%s", quern_last_error());
  free(source.data);
  qn_generator_destroy(generator);
  const char *tmp = getenv("TMPDIR");
  snprintf(scratch, sizeof scratch, "%s/quern-jit.XXXXXX", tmp ? tmp : "/tmp");
  if (!mkdtemp(scratch)) bail("no scratch folder");
}

static inline void leave_parts(void) {
  char command[300];
  snprintf(command, sizeof command, "rm -rf '%s'", scratch);
  if (system(command)) diag("%s is left", scratch);
}

typedef struct subject {
  qn_generator *generator;
  qn_jit *jit;
} subject;

static inline subject subject_with(quern_options options, heard *h) {
  subject s = {qn_generator_create(), NULL};
  options.size = sizeof options;
  if (h) {
    options.log = hear;
    options.host = h;
  }
  if (!options.cc) options.cc = cc_given;
  s.jit = qn_jit_create(&options, s.generator);
  if (!s.generator || !s.jit) bail("no memory");
  return s;
}

static inline subject subject_make(int32_t mode, heard *h) {
  return subject_with((quern_options){.jit = mode, .cache_dir = ""}, h);
}

static inline void subject_end(subject *s) {
  qn_jit_destroy(s->jit);
  qn_generator_destroy(s->generator);
}

/* ---- Kernels ---- */

static const uint8_t three_f32[] = {QN_F32, QN_F32, QN_F32};
static const uint8_t three_contiguous[] = {QN_CLASS_CONTIGUOUS, QN_CLASS_CONTIGUOUS, QN_CLASS_CONTIGUOUS};

static inline qn_code_request request_of(const char *canonical) {
  return (qn_code_request){.target = &qn_cpu_target, .canonical = canonical, .n_in = 2, .n_out = 1, .dtypes = three_f32,
                           .classes = three_contiguous, .rank = 1};
}

static inline qn_code *acquire_text(qn_jit *jit, const char *canonical) {
  const qn_code_request request = request_of(canonical);
  return qn_jit_acquire(jit, &request);
}

/* x0 * x1 + n */
static inline qn_code *acquire(qn_jit *jit, int n) {
  char canonical[40];
  snprintf(canonical, sizeof canonical, "x0 * x1 + %d", n);
  return acquire_text(jit, canonical);
}

static inline qn_code_info info_of(const qn_code *code) {
  qn_code_info info;
  qn_code_describe(code, &info);
  return info;
}

/* The kernel once there is one. */
static inline qn_kernel *kernel_of(const qn_code *code) {
  return atomic_load_explicit(&((qn_code *)(uintptr_t)code)->kernel, memory_order_acquire);
}

/* Whether the code computes x0 * x1 + n. */
static inline int computes(const qn_code *code, int n) {
  float a[37], b[37], out[37];
  qn_kernel *kernel = kernel_of(code);
  char *ptr[] = {(char *)a, (char *)b, (char *)out};
  const int64_t stride[3][2] = {{4, 0}, {4, 0}, {4, 0}}, extent[2] = {37, 1};
  if (!kernel) return 0;
  for (int i = 0; i < 37; i++) {
    a[i] = (float)i - 11;
    b[i] = (float)(3 * i);
    out[i] = -1;
  }
  kernel(ptr, stride, extent, NULL);
  for (int i = 0; i < 37; i++) {
    if (out[i] != a[i] * b[i] + (float)n) return 0;
  }
  return 1;
}

/* Waits for a kernel; 0: it did not come. */
static inline int comes(qn_code *code) {
  for (int i = 0; i < 60000 && !kernel_of(code); i++) usleep(1000);
  return kernel_of(code) != NULL;
}

/* ---- Processes ---- */

/* A child's exit status; -2: it hung. */
static inline int status_of(pid_t pid) {
  int status = -1;
  if (pid < 0) return -1;
  for (int waited = 0; waited < 12000; waited++) {
    const pid_t done = waitpid(pid, &status, WNOHANG);
    if (done == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
    usleep(10000);
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -2;
}

/* Runs body in a child where a compile is held for so long; the line of its first failure, 0: none. The child leaves
 * through exit(), past all destructors, if it `exits`. */
static inline int child_with(int hold_ms, int exits, int (*body)(void)) {
  char text[40];
  snprintf(text, sizeof text, "hold=%d", hold_ms);
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    if (hold_ms) setenv("QUERN_TEST_COMPILER", text, 1);
    const int failed = body();
    if (!exits) _exit(failed);
    if (!freopen("/dev/null", "w", stdout)) _exit(250); /* the parent's buffer is not ours to write */
    exit(failed);
  }
  return status_of(pid);
}

/* In a child's body: gives the line back, as an exit status can hold it. */
#define MUST(condition)                                 \
  do {                                                  \
    if (!(condition)) {                                 \
      fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
      return 1 + __LINE__ % 200;                        \
    }                                                   \
  } while (0)

#endif
