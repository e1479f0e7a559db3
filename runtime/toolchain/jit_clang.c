/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_clang.c: opens the module, and hands it one compilation after the other on a thread of its own. See jit_clang.h.
 *
 * The thread has a large stack (Clang recurses) and blocks all signals. A fatal error of LLVM blocks it for good; the
 * caller and all later callers get the reason. The module is opened on the thread of the first caller, not on that
 * thread: a host may call from a constructor inside of dlopen, and another thread would then wait for the loader's
 * lock. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* RTLD_DEEPBIND, uselocale */
#endif
#include "toolchain/jit_clang.h"

#include <dlfcn.h>
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "toolchain/clang_module.h"
#include "core/base/float_env.h"
#include "core/base/thread.h"
#include "base/thread_shield.h"
#include "base/jit_environment.h"
#include "base/module.h"

#define MODULE_FILE "quern-clang.so"
#define STACK_BYTES (8 << 20)

/* The libraries that the module was linked with: paths separated by ':', LLVM's first. Set by the build. */
#ifndef QN_CLANG_LIBRARIES
#define QN_CLANG_LIBRARIES ""
#endif

typedef struct compilation {
  quern_clang_request ask;
  struct compilation *next;
  int is_done, is_good;
} compilation;

static struct tier {
  pthread_mutex_t lock;
  pthread_cond_t work, news; /* signalled to the thread; to threads that wait for it */
  const quern_clang_interface *module; /* NULL: not opened so far */
  compilation *first;        /* waiting, oldest first */
  compilation *current;      /* being compiled */
  int n_opening;             /* threads that are opening the module */
  int has_thread;
  int is_over;               /* the thread has left its loop, or is blocked for good */
  int is_ending;             /* the process exits, or the library is unloaded */
  int is_dead;               /* no compile is possible any more; `state` has the reason */
  pthread_t thread;
} tier = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static char trouble[2][512]; /* written once each: [0] why there is no module, [1] why it is dead */
static _Atomic(const char *) state = "not loaded yet";

/* ---- With the lock held ---- */

static void say(char *why, size_t size, const char *text) {
  snprintf(why, size, "%s", text);
}

/* Ends compiling for good. what, detail: the reason. */
static void die(const char *what, const char *detail) {
  if (tier.is_dead) return;
  snprintf(trouble[1], sizeof trouble[1], "%s%s", what, detail);
  tier.is_dead = 1;
  atomic_store(&state, trouble[1]);
}

static void finish(compilation *j, int is_good) {
  j->is_good = is_good;
  j->is_done = 1;
  pthread_cond_broadcast(&tier.news);
}

static void refuse_all(const char *why) {
  while (tier.first) {
    compilation *j = tier.first;
    tier.first = j->next;
    say(j->ask.why, j->ask.why_size, why);
    finish(j, 0);
  }
}

/* ---- Called by the module ---- */

static void failed(const char *message) {
  pthread_mutex_lock(&tier.lock);
  die("LLVM failed: ", message);
  say(tier.current->ask.why, tier.current->ask.why_size, trouble[1]);
  finish(tier.current, 0);
  refuse_all(trouble[1]);
  tier.current = NULL;
  tier.has_thread = 0;
  tier.is_over = 1;
  pthread_detach(tier.thread); /* it is blocked for good, and cannot be joined */
  pthread_mutex_unlock(&tier.lock);
}

static void stop(void) {
  const int kept_cancel = qn_thread_shield();
  pthread_mutex_lock(&tier.lock);
  const int waits = tier.has_thread && !pthread_equal(tier.thread, pthread_self());
  tier.is_ending = 1;
  refuse_all("the process ends");
  pthread_cond_broadcast(&tier.work);
  while (waits && !tier.is_over) pthread_cond_wait(&tier.news, &tier.lock);
  const int joins = waits && tier.has_thread; /* else LLVM has failed meanwhile */
  tier.has_thread = 0;
  pthread_mutex_unlock(&tier.lock);
  if (joins) pthread_join(tier.thread, NULL);
  qn_thread_unshield(kept_cancel);
}

static quern_clang_host host = {failed, stop, 0};

__attribute__((destructor)) static void leave(void) {
  stop();
  if (tier.module) tier.module->leave(&host);
}

/* ---- The thread ---- */

static int64_t number_after(const char *text, const char *word) {
  const char *at = text ? strstr(text, word) : NULL;
  int64_t n = 0;
  for (at += at ? strlen(word) : 0; at && *at >= '0' && *at <= '9' && n < 1000000; at++) n = n * 10 + (*at - '0');
  return n;
}

/* For tests: delays the compilation for some time, or until the process ends. With the lock held. */
static void hold(void) {
  const int64_t ms = number_after(qn_environment_test_compiler(), "hold=");
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ms / 1000;
  until.tv_nsec += ms % 1000 * 1000000;
  if (until.tv_nsec >= 1000000000) {
    until.tv_sec++;
    until.tv_nsec -= 1000000000;
  }
  while (ms > 0 && !tier.is_ending && pthread_cond_timedwait(&tier.work, &tier.lock, &until) != ETIMEDOUT) {
  }
}

static void run_compilation(compilation *j) {
  const char *test = qn_environment_test_compiler();
  j->ask.is_to_fail = test && strstr(test, "fatal");
  hold();
  if (tier.is_ending) {
    say(j->ask.why, j->ask.why_size, "the process ends");
    finish(j, 0);
    return;
  }
  pthread_mutex_unlock(&tier.lock);
  const quern_clang_result result = tier.module->compile(&j->ask);
  pthread_mutex_lock(&tier.lock);
  if (result == QUERN_CLANG_BROKEN) die("", j->ask.why);
  finish(j, result == QUERN_CLANG_DONE);
}

static void *run(void *unused) {
  (void)unused;
  const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c_locale) uselocale(c_locale);
  qn_float_env_enter();
  pthread_mutex_lock(&tier.lock);
  while (!tier.is_ending) {
    compilation *j = tier.first;
    if (tier.is_dead) refuse_all(trouble[1]);
    if (tier.is_dead || !j) {
      pthread_cond_wait(&tier.work, &tier.lock);
      continue;
    }
    tier.first = j->next;
    tier.current = j;
    run_compilation(j);
    tier.current = NULL;
  }
  tier.is_over = 1;
  pthread_cond_broadcast(&tier.news);
  pthread_mutex_unlock(&tier.lock);
  uselocale(LC_GLOBAL_LOCALE);
  if (c_locale) freelocale(c_locale);
  return NULL;
}

static int make_thread(void) {
  tier.is_over = 0;
  return qn_thread_start(&tier.thread, STACK_BYTES, run, NULL);
}

/* ---- Forks: a child has no thread, and makes one when it needs it ---- */

static void before_clang_fork(void) {
  pthread_mutex_lock(&tier.lock);
}

static void after_clang_fork(void) {
  pthread_mutex_unlock(&tier.lock);
}

static void after_clang_fork_in_child(void) {
  if (tier.current) die("the process was forked while Clang compiled", "");
  if (tier.n_opening) die("the process was forked while Clang was being opened", "");
  tier.current = tier.first = NULL;
  tier.has_thread = tier.is_over = tier.n_opening = 0;
  /* Condition variables may count waiters that do not exist in the child. */
  tier.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  tier.news = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  pthread_mutex_unlock(&tier.lock);
}

/* Registered at load: a fork that has begun when the first compile begins must run these handlers, too. */
__attribute__((constructor)) static void watch_clang_forks(void) {
  pthread_atfork(before_clang_fork, after_clang_fork, after_clang_fork_in_child);
}

/* ---- Opening ---- */

/* Whether a library with the file name of that path is loaded in the process. */
static int is_in_process(const char *path, size_t size) {
  char name[256];
  const char *end = path + size, *start = end;
  while (start > path && start[-1] != '/') start--;
  if (size == 0 || (size_t)(end - start) >= sizeof name) return 0;
  memcpy(name, start, (size_t)(end - start));
  name[end - start] = 0;
  void *there = dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
  if (there) dlclose(there);
  dlerror();
  return there != NULL;
}

/* Whether LLVM was in the process before this library opened it: determined once, by the first call. */
static int is_llvm_shared(void) {
  static atomic_int answer; /* 0: not asked yet; 1: no; 2: yes */
  int expected = 0;
  if (!atomic_load(&answer)) {
    const int found = 1 + is_in_process(QN_CLANG_LIBRARIES, strcspn(QN_CLANG_LIBRARIES, ":"));
    atomic_compare_exchange_strong(&answer, &expected, found);
  }
  return atomic_load(&answer) == 2;
}

/* Without the lock. NULL: why has the reason. */
static const quern_clang_interface *open_module(int *is_shared, char *why, size_t size) {
  *is_shared = is_llvm_shared();
  return qn_module_open(MODULE_FILE, QUERN_CLANG_SYMBOL, QUERN_CLANG_ABI, QUERN_CLANG_VERSION, why, size);
}

/* With the lock held; releases it while it opens the module. 0: why has the reason. */
static int make_ready(char *why, size_t size) {
  int is_shared = 0;
  if (!tier.module && !tier.is_dead) {
    tier.n_opening++;
    pthread_mutex_unlock(&tier.lock);
    const quern_clang_interface *module = open_module(&is_shared, why, size);
    pthread_mutex_lock(&tier.lock);
    tier.n_opening--;
    if (!module) {
      if (!trouble[0][0]) snprintf(trouble[0], sizeof trouble[0], "%s", why);
      if (!tier.is_dead) atomic_store(&state, trouble[0]);
      return 0;
    }
    if (!tier.module && !tier.is_ending) {
      host.is_shared = is_shared;
      if (module->enter(&host)) tier.module = module;
      else die("too many copies of this library use Clang", "");
      if (!tier.is_dead) atomic_store(&state, "ready");
    }
  }
  if (tier.is_dead) {
    say(why, size, trouble[1]);
  } else if (tier.is_ending) {
    say(why, size, "the process ends");
  } else if (!tier.has_thread && !(tier.has_thread = make_thread())) {
    say(why, size, "no thread could be made for Clang");
  } else {
    return 1;
  }
  return 0;
}

/* ---- Outside ---- */

int qn_clang_compile(const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  compilation j = {.ask = {.host = &host, .source = request->source, .size = request->size, .level = qn_isa_name(request->isa),
                   .headers = qn_kernel_headers, .n_headers = qn_n_kernel_headers, .allocate = malloc, .why = why,
                   .why_size = why_size}};
  pthread_mutex_lock(&tier.lock);
  if (make_ready(why, why_size)) {
    compilation **at = &tier.first;
    while (*at) at = &(*at)->next;
    *at = &j;
    pthread_cond_signal(&tier.work);
    while (!j.is_done) pthread_cond_wait(&tier.news, &tier.lock);
  }
  pthread_mutex_unlock(&tier.lock);
  if (j.is_good) *object = (qn_bytes){j.ask.object, j.ask.object_size};
  qn_thread_unshield(kept_cancel);
  errno = kept_errno;
  return j.is_good;
}

const char *qn_clang_state(void) {
  return atomic_load(&state);
}

int qn_clang_may_compile(void) {
  const char *now = atomic_load(&state);
  return now != trouble[0] && now != trouble[1];
}

/* Appends to the path in *text the file's size and time, or that it is missing, and moves *text to the end. 0: no room;
 * 1: missing; 2: present. */
static int describe(char **text, size_t *size) {
  struct stat file;
  const int is_there = stat(*text, &file) == 0;
  const size_t length = strlen(*text);
  *text += length;
  *size -= length;
  const int n = is_there ? snprintf(*text, *size, " %lld %lld.%09ld", (long long)file.st_size,
                                    (long long)file.st_mtim.tv_sec, file.st_mtim.tv_nsec)
                         : snprintf(*text, *size, " -");
  if (n < 0 || (size_t)n >= *size) return 0;
  *text += n;
  *size -= (size_t)n;
  return is_there + 1;
}

int qn_clang_identity(char *text, size_t size) {
  static const char head[] = "clang; ";
  const int kept_errno = errno;
  int is_good = size > sizeof head;
  if (is_good) {
    memcpy(text, head, sizeof head);
    text += sizeof head - 1;
    size -= sizeof head - 1;
    is_good = qn_module_path(MODULE_FILE, text, size) && describe(&text, &size) == 2;
  }
  for (const char *at = QN_CLANG_LIBRARIES; is_good && *at;) {
    const size_t length = strcspn(at, ":");
    if (length) is_good = (size_t)snprintf(text, size, "; %.*s", (int)length, at) < size;
    if (length && is_good) {
      text += 2;
      size -= 2;
      is_good = describe(&text, &size) > 0;
    }
    at += length + (at[length] == ':');
  }
  errno = kept_errno;
  return is_good;
}
