/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_nvrtc.c: see cuda_nvrtc.h.
 *
 * Each compile has its own thread, made for it and joined: NVRTC needs some MB of stack, too much for a permanent thread. The
 * thread has the locale C and the default floating-point environment, and blocks all signals. Concurrent callers
 * wait, those of large compiles for each other only. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr, uselocale */
#endif
#include "cuda/cuda_nvrtc.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/float_env.h"
#include "core/base/thread.h"
#include "base/threads/clock.h"
#include "base/threads/thread_shield.h"
#include "cuda/cuda_driver.h"
#include "cuda/cuda_image.h"

#define STACK_BYTES (8 << 20)
#define MOST_MS 60000
enum { MOST_ARCHS = 256 };

typedef struct compilation {
  const qn_nvrtc *nvrtc;
  const qn_nvrtc_request *request;
  qn_bytes image;
  char *why;
  size_t why_size;
  int64_t until_ms;
  _Atomic(const char *) over; /* why NVRTC was told to end; NULL: it was not */
  int is_good;
} compilation;

static struct tier {
  pthread_mutex_t lock;
  pthread_cond_t news;
  compilation *current[2]; /* [1]: a large one */
  atomic_int is_ending;    /* the process exits */
  int listens;             /* the exit handler is registered */
} tier = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

/* ---- On the thread ---- */

static int fail(compilation *j, const char *function, int result) {
  snprintf(j->why, j->why_size, "%s: %s", function, j->nvrtc->error_string(result));
  return 0;
}

/* The architecture to compile for. *is_ptx: it is older than the device's, so the driver compiles its PTX. */
static int choose_arch(compilation *j, int *arch, int *is_ptx) {
  const qn_nvrtc *c = j->nvrtc;
  const int wanted = j->request->capability;
  int archs[MOST_ARCHS], n = 0, result = c->n_archs(&n), best = 0, first = 0;
  if (!result && n > MOST_ARCHS) result = QN_NVRTC_INVALID_OPTION;
  if (!result) result = c->archs(archs);
  if (result) return fail(j, "nvrtcGetSupportedArchs", result);
  for (int i = 0; i < n; i++) {
    if (archs[i] <= wanted && archs[i] > best) best = archs[i];
    if (!first || archs[i] < first) first = archs[i];
  }
  *arch = best;
  *is_ptx = best != wanted;
  if (best) return 1;
  snprintf(j->why, j->why_size, "NVRTC %d.%d compiles for compute capability %d.%d at least; the device has %d.%d",
           c->version / 1000, c->version % 1000 / 10, first / 10, first % 10, wanted / 10, wanted % 10);
  return 0;
}

/* The error of a compile: NVRTC's log, or the name of its result if the log is empty. */
static int fail_with_log(compilation *j, qn_nvrtc_program program, int result) {
  const qn_nvrtc *c = j->nvrtc;
  size_t size = 0;
  char *log = !c->log_size(program, &size) && size > 1 ? malloc(size + 1) : NULL;
  const int has_log = log && !c->log(program, log);
  if (has_log) {
    log[size] = 0;
    snprintf(j->why, j->why_size, "%s", log);
  }
  free(log);
  return has_log ? 0 : fail(j, "nvrtcCompileProgram", result);
}

/* NVRTC asks it, on any thread. Once it is 1 it stays so. */
static int is_over(void *payload, void *unused) {
  compilation *j = payload;
  const char *why = atomic_load(&j->over);
  (void)unused;
  if (why) return 1;
  if (atomic_load(&tier.is_ending)) why = "the process ends";
  else if (j->request->is_cancelled && atomic_load(j->request->is_cancelled)) why = "cancelled";
  else if (qn_clock_ms() > j->until_ms) why = "NVRTC took longer than a compile may (compile_ms_limit)";
  if (why) atomic_store(&j->over, why);
  return why != NULL;
}

/* No option may change rounding: the text specifies it for each operation. --minimal omits unused built-in declarations and
 * halves the time; NVRTC before CUDA 12.4 does not know it. */
static int compile_for(compilation *j, qn_nvrtc_program program, int arch, int is_ptx) {
  static atomic_int is_minimal_unknown;
  char chip[64];
  snprintf(chip, sizeof chip, "--gpu-architecture=%s_%d", is_ptx ? "compute" : "sm", arch);
  const char *const options[] = {chip, "--std=c++17", "--minimal"};
  int result = QN_NVRTC_INVALID_OPTION;
  if (!atomic_load(&is_minimal_unknown)) result = j->nvrtc->compile(program, 3, options);
  if (result == QN_NVRTC_INVALID_OPTION) {
    result = j->nvrtc->compile(program, 2, options);
    if (result != QN_NVRTC_INVALID_OPTION) atomic_store(&is_minimal_unknown, 1);
  }
  const char *over = atomic_load(&j->over);
  if (!result) return 1;
  if (!over) return fail_with_log(j, program, result);
  snprintf(j->why, j->why_size, "%s", over);
  return 0;
}

static int take(compilation *j, qn_nvrtc_program program, int is_ptx) {
  const qn_nvrtc *c = j->nvrtc;
  size_t size = 0;
  int result = is_ptx ? c->ptx_size(program, &size) : c->cubin_size(program, &size);
  if (result) return fail(j, is_ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize", result);
  char *data = size ? malloc(size) : NULL;
  if (data) result = is_ptx ? c->ptx(program, data) : c->cubin(program, data);
  if (data && result) {
    free(data);
    return fail(j, is_ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN", result);
  }
  if (data && is_ptx) data[size - 1] = 0; /* PTX text ends with a 0 */
  const qn_cuda_code code = {data, size, is_ptx, j->request->capability, j->request->items_per_thread};
  if (data) j->image = qn_cuda_image_pack(&code);
  free(data);
  if (!j->image.data) snprintf(j->why, j->why_size, size ? "out of memory" : "NVRTC made no code");
  return j->image.data != NULL;
}

static int compile(compilation *j) {
  int arch = 0, is_ptx = 0;
  qn_nvrtc_program program = NULL;
  if (!choose_arch(j, &arch, &is_ptx)) return 0;
  const int result = j->nvrtc->create(&program, j->request->source, j->request->name, 0, NULL, NULL);
  if (result) return fail(j, "nvrtcCreateProgram", result);
  if (j->nvrtc->set_flow_callback) j->nvrtc->set_flow_callback(program, is_over, j); /* if it fails, the compile has no end but its own */
  const int is_good = compile_for(j, program, arch, is_ptx) && take(j, program, is_ptx);
  j->nvrtc->destroy(&program);
  return is_good;
}

static void *run(void *arg) {
  compilation *j = arg;
  const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c_locale) uselocale(c_locale);
  qn_float_env_enter();
  j->until_ms = qn_clock_ms() + (j->request->most_ms ? j->request->most_ms : MOST_MS);
  if (!is_over(j, NULL)) j->is_good = compile(j);
  else snprintf(j->why, j->why_size, "%s", atomic_load(&j->over));
  uselocale(LC_GLOBAL_LOCALE);
  if (c_locale) freelocale(c_locale);
  return NULL;
}

/* ---- Forks and the end ---- */

static void before_nvrtc_fork(void) { pthread_mutex_lock(&tier.lock); }
static void after_nvrtc_fork(void) { pthread_mutex_unlock(&tier.lock); }

/* The compiling threads do not exist in the child. */
static void after_nvrtc_fork_in_child(void) {
  tier.current[0] = tier.current[1] = NULL;
  tier.news = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pthread_mutex_unlock(&tier.lock);
}

__attribute__((constructor)) static void watch_nvrtc_forks(void) {
  pthread_atfork(before_nvrtc_fork, after_nvrtc_fork, after_nvrtc_fork_in_child);
}

/* Exit handler: registered after NVRTC was opened, so it runs before NVRTC's destructors. */
static void stop(void) {
  const int kept_cancel = qn_thread_shield();
  pthread_mutex_lock(&tier.lock);
  atomic_store(&tier.is_ending, 1);
  while (tier.current[0] || tier.current[1]) pthread_cond_wait(&tier.news, &tier.lock);
  pthread_mutex_unlock(&tier.lock);
  qn_thread_unshield(kept_cancel);
}

/* ---- Outside ---- */

static const char *take_turn(compilation *j) {
  pthread_mutex_lock(&tier.lock);
  if (!tier.listens) tier.listens = atexit(stop) == 0;
  compilation **own = &tier.current[j->request->is_large != 0];
  while (*own && !atomic_load(&tier.is_ending)) pthread_cond_wait(&tier.news, &tier.lock);
  const char *failure = atomic_load(&tier.is_ending) ? "the process ends" : NULL;
  if (!failure) *own = j;
  pthread_mutex_unlock(&tier.lock);
  return failure;
}

static void give_turn(const compilation *j) {
  pthread_mutex_lock(&tier.lock);
  tier.current[j->request->is_large != 0] = NULL;
  pthread_cond_broadcast(&tier.news);
  pthread_mutex_unlock(&tier.lock);
}

int qn_nvrtc_compile(const qn_nvrtc_request *request, qn_bytes *image, char *why, size_t why_size) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  compilation j = {.request = request, .why = why, .why_size = why_size};
  quern_status status;
  pthread_t thread;
  why[0] = 0;
  j.nvrtc = qn_cuda_compiler(&status);
  const char *failure = j.nvrtc ? take_turn(&j) : quern_last_error();
  if (!failure) {
    if (qn_thread_start(&thread, STACK_BYTES, run, &j)) pthread_join(thread, NULL);
    else failure = "no thread could be made for NVRTC";
    give_turn(&j);
  }
  if (failure) snprintf(why, why_size, "%s", failure);
  if (j.is_good) *image = j.image;
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return j.is_good;
}

int qn_nvrtc_identity(char *text, size_t size) {
  const int kept_errno = errno;
  const qn_nvrtc *c = qn_cuda_compiler_there();
  Dl_info info;
  struct stat file;
  void *function;
  int n = 0;
  if (!c) return 0;
  memcpy(&function, &c->get_version, sizeof function);
  if (dladdr(function, &info) && info.dli_fname && stat(info.dli_fname, &file) == 0)
    n = snprintf(text, size, "nvrtc %d.%d; %s %lld %lld.%09ld", c->version / 1000, c->version % 1000 / 10, info.dli_fname,
                 (long long)file.st_size, (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec);
  errno = kept_errno;
  return n > 0 && (size_t)n < size;
}

int qn_nvrtc_is_there(char *why, size_t why_size) {
  quern_status status;
  if (qn_cuda_compiler(&status)) return 1;
  snprintf(why, why_size, "%s", quern_last_error());
  return 0;
}
