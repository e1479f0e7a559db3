/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_clang.c: opens the module, and hands it one compilation after the other, on two threads of its own: one is for large ones, which others
 * need not wait for. See jit_clang.h.
 *
 * A thread has a large stack (Clang recurses) and blocks all signals. A fatal error of LLVM blocks it for good; the
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
#include "base/threads/clock.h"
#include "base/threads/idle.h"
#include "base/threads/thread_shield.h"
#include "base/jit_environment.h"
#include "base/files/module.h"
#include "base/threads/transient.h"
#include "base/memory/thread_memory.h"

#define MODULE_FILE "quern-clang.so"
#define STACK_BYTES (8 << 20)
/* What a compile must be able to get: Clang and LLVM do not survive a lack of memory, being built without exceptions. */
#define RESERVE_BYTES ((size_t)64 << 20)
#define MOST_MS 60000
#define MOST_FORK_MS 200       /* that a fork waits for compiles to come to a safe point */
#define MOST_WAIT_MS 400       /* for the compiles under way, when the process ends */
#define MOST_WAIT_SHARED 30000 /* where LLVM's destructors run: they must not meet a compile */

/* The libraries that the module was linked with: paths separated by ':', LLVM's first. Set by the build. */
#ifndef QN_CLANG_LIBRARIES
#define QN_CLANG_LIBRARIES ""
#endif

typedef struct compilation {
  quern_clang_request ask;
  struct compilation *next;
  int32_t most_ms;
  int is_done, is_good;
  int is_short; /* of memory */
} compilation;

typedef struct lane {
  compilation *first;   /* waiting, oldest first */
  compilation *current; /* being compiled */
  int is_inside, is_parked; /* the module compiles; it waits at a safe point for the end of a fork */
  int has_thread;
  int is_over;          /* the thread has left its loop, or is blocked for good */
  int is_retired;       /* it has ended, since it was idle, and is to be joined */
  pthread_t thread;
} lane;

static _Thread_local lane *here; /* that of this thread */

static struct tier {
  pthread_mutex_t lock;
  pthread_cond_t work, news; /* signalled to the threads; to threads that wait for them */
  const quern_clang_interface *module; /* NULL: not opened so far */
  lane lanes[2];
  int n_opening;             /* threads that are opening the module */
  atomic_int is_ending;      /* the process exits, or the library is unloaded */
  atomic_int n_forks;        /* under way; compiles wait at their next safe point */
  int is_dead;               /* no compile is possible any more; `state` has the reason */
} tier = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static char failure[2][512]; /* written once each: [0] why there is no module, [1] why it is dead */
static _Atomic(const char *) state = "not loaded yet";

/* ---- With the lock held ---- */

static void say(char *why, size_t size, const char *text) {
  snprintf(why, size, "%s", text);
}

/* Ends compiling for good. what, detail: the reason. */
static void disable_tier(const char *what, const char *detail) {
  if (tier.is_dead) return;
  snprintf(failure[1], sizeof failure[1], "%s%s", what, detail);
  tier.is_dead = 1;
  atomic_store(&state, failure[1]);
}

static void finish(compilation *j, int is_good) {
  j->is_good = is_good;
  j->is_done = 1;
  pthread_cond_broadcast(&tier.news);
}

static void refuse_all(const char *why) {
  for (int i = 0; i < 2; i++) {
    while (tier.lanes[i].first) {
      compilation *j = tier.lanes[i].first;
      tier.lanes[i].first = j->next;
      say(j->ask.why, j->ask.why_size, why);
      finish(j, 0);
    }
  }
}

/* ---- Called by the module ---- */

static void failed(const char *message) {
  pthread_mutex_lock(&tier.lock);
  disable_tier("LLVM failed: ", message);
  say(here->current->ask.why, here->current->ask.why_size, failure[1]);
  finish(here->current, 0);
  refuse_all(failure[1]);
  here->current = NULL;
  here->has_thread = 0;
  here->is_over = 1;
  pthread_detach(here->thread); /* it is blocked for good, and cannot be joined */
  pthread_mutex_unlock(&tier.lock);
}

/* Waits while the process is forked: LLVM and Clang hold no lock and change no data that a compile of the child needs. */
static void park(void) {
  pthread_mutex_lock(&tier.lock);
  here->is_parked = 1;
  pthread_cond_broadcast(&tier.news);
  while (atomic_load(&tier.n_forks)) pthread_cond_wait(&tier.news, &tier.lock);
  here->is_parked = 0;
  pthread_mutex_unlock(&tier.lock);
}

/* The reason to end a compile early, or NULL. Called at safe points: between passes, and at expansions of macros. */
static const char *is_over(const quern_clang_request *ask) {
  if (atomic_load_explicit(&tier.n_forks, memory_order_relaxed)) park();
  if (atomic_load_explicit(&tier.is_ending, memory_order_relaxed)) return "the process ends";
  return qn_clock_ms() > ask->until_ms ? "Clang took longer than a compile may (compile_ms_limit)" : NULL;
}

/* Waits until `until` for a lane's compile. A compile that is late goes on until the process is gone. It finds nothing destroyed: the
 * module drops LLVM's destructors, unless LLVM is a shared library. */
static void stop_lane(lane *own, const struct timespec *until) {
  pthread_mutex_lock(&tier.lock);
  const int waits = (own->has_thread || own->is_retired) && !pthread_equal(own->thread, pthread_self());
  int is_late = 0;
  while (waits && !own->is_over && !is_late) is_late = pthread_cond_timedwait(&tier.news, &tier.lock, until) == ETIMEDOUT;
  const int joins = waits && (own->has_thread || own->is_retired) && own->is_over; /* else LLVM has failed meanwhile, or it is late */
  own->has_thread = own->is_retired = 0;
  pthread_mutex_unlock(&tier.lock);
  if (joins) pthread_join(own->thread, NULL);
}

static quern_clang_host host;

/* Whether LLVM's destructors run when the process ends. */
static int has_destructors(void) { return host.is_shared || (tier.module && !tier.module->drops_destructors()); }

static void stop(void) {
  const int kept_cancel = qn_thread_shield();
  pthread_mutex_lock(&tier.lock);
  atomic_store(&tier.is_ending, 1);
  refuse_all("the process ends");
  pthread_cond_broadcast(&tier.work);
  const struct timespec until = qn_clock_deadline(has_destructors() ? MOST_WAIT_SHARED : MOST_WAIT_MS);
  pthread_mutex_unlock(&tier.lock);
  for (int i = 0; i < 2; i++) stop_lane(&tier.lanes[i], &until);
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
  if (!at) return 0;
  for (at += strlen(word); *at >= '0' && *at <= '9' && n < 1000000; at++) n = n * 10 + (*at - '0');
  return n;
}

/* For tests: delays the compilation, or a large one, for some time, or until the process ends. With the lock held. */
static void hold(void) {
  const char *test = qn_environment_test_compiler(), *large = here == &tier.lanes[1] ? "large=" : "hold=";
  const int64_t ms = number_after(test, test && strstr(test, large) ? large : "hold=");
  const struct timespec until = qn_clock_deadline(ms);
  while (ms > 0 && !tier.is_ending && pthread_cond_timedwait(&tier.work, &tier.lock, &until) != ETIMEDOUT) {
  }
}

static void set_inside(int is_inside) {
  pthread_mutex_lock(&tier.lock);
  while (is_inside && atomic_load(&tier.n_forks)) pthread_cond_wait(&tier.news, &tier.lock);
  here->is_inside = is_inside;
  pthread_cond_broadcast(&tier.news);
  pthread_mutex_unlock(&tier.lock);
}

static quern_clang_result compile_inside(compilation *j) {
  set_inside(1);
  const quern_clang_result result = tier.module->compile(&j->ask);
  set_inside(0);
  return result;
}

static void run_compilation(compilation *j) {
  const char *test = qn_environment_test_compiler();
  j->ask.is_to_fail = test && strstr(test, "fatal");
  j->ask.until_ms = qn_clock_ms() + j->most_ms;
  hold();
  if (tier.is_ending) {
    say(j->ask.why, j->ask.why_size, "the process ends");
    finish(j, 0);
    return;
  }
  pthread_mutex_unlock(&tier.lock);
  j->is_short = !qn_thread_memory_touch(RESERVE_BYTES);
  if (j->is_short) say(j->ask.why, j->ask.why_size, "no memory: a compile may need 64 MiB");
  const quern_clang_result result = j->is_short ? QUERN_CLANG_REFUSED : compile_inside(j);
  pthread_mutex_lock(&tier.lock);
  if (result == QUERN_CLANG_BROKEN) disable_tier("", j->ask.why);
  finish(j, result == QUERN_CLANG_DONE);
}

static void *run(void *arg) {
  lane *own = here = arg;
  const locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (c_locale) uselocale(c_locale);
  qn_float_env_enter();
  qn_idle_name_thread();
  pthread_mutex_lock(&tier.lock);
  while (!tier.is_ending) {
    compilation *j = own->first;
    if (tier.is_dead) refuse_all(failure[1]);
    if (tier.is_dead || !j) {
      if (qn_idle_wait(&tier.work, &tier.lock) || own->first || tier.is_ending) continue;
      own->has_thread = 0; /* the next compilation makes another */
      own->is_retired = 1;
      break;
    }
    own->first = j->next;
    own->current = j;
    run_compilation(j);
    own->current = NULL;
  }
  own->is_over = 1;
  pthread_cond_broadcast(&tier.news);
  pthread_mutex_unlock(&tier.lock);
  uselocale(LC_GLOBAL_LOCALE);
  if (c_locale) freelocale(c_locale);
  return NULL;
}

static int make_thread(lane *own) {
  if (own->is_retired) pthread_join(own->thread, NULL);
  own->is_over = own->is_retired = 0;
  return qn_thread_start(&own->thread, STACK_BYTES, run, own);
}

/* ---- Forks: a child has no thread, and makes one when it needs it ----
 * A fork waits until the compiles under way are at safe points: then the child can compile, too. */

static int is_unsafe(void) {
  for (int i = 0; i < 2; i++)
    if (tier.lanes[i].is_inside && !tier.lanes[i].is_parked) return 1;
  return tier.n_opening > 0;
}

static void before_clang_fork(void) {
  const int kept_errno = errno;
  pthread_mutex_lock(&tier.lock);
  atomic_fetch_add(&tier.n_forks, 1);
  const struct timespec until = qn_clock_deadline(MOST_FORK_MS);
  while (is_unsafe() && !tier.is_dead && pthread_cond_timedwait(&tier.news, &tier.lock, &until) != ETIMEDOUT) {}
  errno = kept_errno;
}

static void after_clang_fork(void) {
  atomic_fetch_sub(&tier.n_forks, 1);
  pthread_cond_broadcast(&tier.news);
  pthread_mutex_unlock(&tier.lock);
}

static void after_clang_fork_in_child(void) {
  if (tier.n_opening) disable_tier("the process was forked while Clang was being opened", "");
  else if (is_unsafe()) disable_tier("the process was forked while Clang compiled", "");
  tier.n_opening = 0;
  atomic_store(&tier.n_forks, 0);
  for (int i = 0; i < 2; i++) tier.lanes[i] = (lane){0};
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
static int make_ready(lane *own, char *why, size_t size) {
  int is_shared = 0;
  if (!tier.module && !tier.is_dead) {
    tier.n_opening++;
    pthread_mutex_unlock(&tier.lock);
    qn_transient_take();
    const quern_clang_interface *module = open_module(&is_shared, why, size);
    pthread_mutex_lock(&tier.lock);
    tier.n_opening--;
    pthread_cond_broadcast(&tier.news); /* to a fork */
    if (!module && qn_transient_take()) { /* it may open the next time */
      qn_transient_note(ENOMEM);
      return 0;
    }
    if (!module) {
      if (!failure[0][0]) snprintf(failure[0], sizeof failure[0], "%s", why);
      if (!tier.is_dead) atomic_store(&state, failure[0]);
      return 0;
    }
    if (!tier.module && !tier.is_ending) {
      host.is_shared = is_shared;
      if (module->enter(&host)) tier.module = module;
      else disable_tier("too many copies of this library use Clang", "");
      if (!tier.is_dead) atomic_store(&state, "ready");
    }
  }
  if (tier.is_dead) {
    say(why, size, failure[1]);
  } else if (tier.is_ending) {
    say(why, size, "the process ends");
  } else if (!own->has_thread && !(own->has_thread = make_thread(own))) {
    say(why, size, "no thread could be made for Clang");
    qn_transient_note(EAGAIN);
  } else {
    return 1;
  }
  return 0;
}

/* ---- Outside ---- */

int qn_clang_compile(const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size) {
  const int kept_errno = errno, kept_cancel = qn_thread_shield();
  lane *own = &tier.lanes[request->is_large != 0];
  compilation j = {.ask = {.host = &host, .source = request->source, .size = request->size, .level = qn_isa_name(request->isa),
                   .headers = qn_kernel_headers, .n_headers = qn_n_kernel_headers, .allocate = malloc, .why = why,
                   .why_size = why_size, .lane = request->is_large != 0, .is_over = is_over},
                   .most_ms = request->most_ms ? request->most_ms : MOST_MS};
  pthread_mutex_lock(&tier.lock);
  if (make_ready(own, why, why_size)) {
    compilation **at = &own->first;
    while (*at) at = &(*at)->next;
    *at = &j;
    pthread_cond_broadcast(&tier.work);
    while (!j.is_done) qn_idle_watch(&tier.news, &tier.lock);
  }
  pthread_mutex_unlock(&tier.lock);
  if (j.is_short) qn_transient_note(ENOMEM);
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
  return now != failure[0] && now != failure[1];
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
