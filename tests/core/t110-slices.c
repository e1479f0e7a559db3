/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t110: slices run once each, on the pool or on the host's threads; nesting, forks, many callers, the floating point
 * environment, signals. Runs under TSan as well. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/core/base/float_env.h"
#include "runtime/core/base/slices.h"
#include "tap.h"

#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#elif __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifdef UNDER_TSAN
/* TSan would refuse to make threads in the child of a process with threads; ours makes none. At the end of a process it would sleep
 * for as long as it takes idle workers to end, and report these. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
  return "die_after_fork=0:atexit_sleep_ms=100";
}
#endif

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static qn_slices *create_slices(int32_t threads,
                                void (*host_for)(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg),
                                void *host) {
  const quern_options options = {.size = sizeof options, .threads = threads, .parallel_for = host_for, .host = host};
  return qn_slices_create(&options);
}

/* ---- Once each ---- */

#define MAX_N 5000

typedef struct work {
  int count[MAX_N]; /* not atomic: each slice has its own; TSan watches */
  pthread_t thread[MAX_N];
} work;

static void count_slice(void *arg, int64_t i) {
  work *w = arg;
  w->count[i]++;
  w->thread[i] = pthread_self();
}

static int once_each(const work *w, int n) {
  for (int i = 0; i < MAX_N; i++) {
    if (w->count[i] != (i < n)) return 0;
  }
  return 1;
}

static work *new_work(void) {
  return calloc(1, sizeof(work));
}

static void test_once(void) {
  static const int sizes[] = {0, 1, 2, 3, 7, 16, 63, 64, 65, 1000, MAX_N};
  static const int threads[] = {1, 2, 3, 8, 40, 70};
  group_begin("each slice runs once");
  for (int t = 0; t < 6; t++) {
    qn_slices *s = create_slices(threads[t], NULL, NULL);
    if (qn_slices_limit(s) != threads[t]) group_fail("limit %d, made with %d", qn_slices_limit(s), threads[t]);
    for (int k = 0; k < 11; k++) {
      for (int again = 0; again < 20; again++) {
        work *w = new_work();
        qn_slices_run(s, sizes[k], count_slice, w);
        group_count(1);
        if (!once_each(w, sizes[k])) group_fail("threads %d, n %d", threads[t], sizes[k]);
        free(w);
      }
    }
    qn_slices_destroy(s);
  }
  group_end();
  qn_slices *s = create_slices(0, NULL, NULL);
  ok(qn_slices_limit(s) >= 1, "by default %d threads", qn_slices_limit(s));
  qn_slices_destroy(s);
  setenv("QUERN_NUM_THREADS", "3", 1);
  s = create_slices(0, NULL, NULL);
  is_int(qn_slices_limit(s), 3, "QUERN_NUM_THREADS");
  qn_slices_destroy(s);
  s = create_slices(2, NULL, NULL);
  is_int(qn_slices_limit(s), 2, "what the host says comes before it");
  qn_slices_destroy(s);
  unsetenv("QUERN_NUM_THREADS");
}

/* ---- In parallel ---- */

/* Slices that wait for each other: done only if `n` run at once. */
typedef struct meeting {
  atomic_int here;
  int n;
  atomic_int alone;
} meeting;

static void meet(void *arg, int64_t i) {
  meeting *m = arg;
  const double start = seconds();
  (void)i;
  atomic_fetch_add(&m->here, 1);
  while (atomic_load(&m->here) < m->n) {
    if (seconds() - start > 20) {
      atomic_store(&m->alone, 1);
      return;
    }
    sched_yield();
  }
}

static void test_parallel(void) {
  qn_slices *s = create_slices(4, NULL, NULL);
  meeting m = {.n = 4};
  qn_slices_run(s, 4, meet, &m);
  ok(!atomic_load(&m.alone), "four slices run at once on four threads");
  usleep(100000);
  meeting again = {.n = 4};
  qn_slices_run(s, 4, meet, &again);
  ok(!atomic_load(&again.alone), "and again when the workers have slept");
  qn_slices_destroy(s);
}

/* Calls that come about when the only worker falls asleep, 200 us after the last. What could go wrong takes the caller some
 * nanoseconds; under TSan, where it takes longer, a wake-up that is lost is seen in each run. */
static void test_drowsy(void) {
  qn_slices *s = create_slices(2, NULL, NULL);
  int alone = 0;
  for (int call = 0; call < 4000 && !alone; call++) {
    meeting m = {.n = 2};
    const double until = seconds() + 1e-6 * (190 + 0.01 * (call * 1361 % 2500));
    while (seconds() < until) continue;
    qn_slices_run(s, 2, meet, &m);
    alone = atomic_load(&m.alone);
  }
  ok(!alone, "a worker that is about to fall asleep comes");
  qn_slices_destroy(s);
}

/* The processor time that a process with these threads takes in the 60 ms after a call, in microseconds. is_crowded: all of them
 * have one core. */
static long idle_us(const char *spin, int threads, int is_crowded) {
  int ends[2];
  long us = -1;
  if (pipe(ends)) bail("no pipe");
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) {
    struct timespec from, to;
    setenv("QUERN_SPIN", spin, 1);
#if defined(__linux__)
    cpu_set_t set;
    if (is_crowded && sched_getaffinity(0, sizeof set, &set) == 0) {
      int core = 0;
      while (!CPU_ISSET(core, &set)) core++;
      CPU_ZERO(&set);
      CPU_SET(core, &set);
      sched_setaffinity(0, sizeof set, &set);
    }
#endif
    qn_slices *s = create_slices(threads, NULL, NULL);
    meeting m = {.n = threads};
    qn_slices_run(s, threads, meet, &m);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &from);
    usleep(60000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &to);
    us = (to.tv_sec - from.tv_sec) * 1000000 + (to.tv_nsec - from.tv_nsec) / 1000;
    exit(write(ends[1], &us, sizeof us) != sizeof us);
  }
  close(ends[1]);
  if (read(ends[0], &us, sizeof us) != sizeof us) us = -1;
  close(ends[0]);
  waitpid(pid, NULL, 0);
  return us;
}

static void test_spin(void) {
  long asleep = idle_us("0", 2, 0), most = 0, crowded = idle_us("9999", 4, 1);
  for (int i = 0; i < 10 && (asleep < 0 || asleep > 2000); i++) asleep = idle_us("0", 2, 0);
  ok(asleep >= 0 && asleep <= 2000, "QUERN_SPIN=0: a worker without work takes %ld us", asleep);
#if defined(__linux__)
  for (int i = 0; i < 10 && (crowded < 0 || crowded > 4000); i++) crowded = idle_us("9999", 4, 1);
  ok(crowded >= 0 && crowded <= 4000, "QUERN_SPIN=9999: three workers on the caller's core take %ld us", crowded);
#else
  skip(1, "no affinity here: %ld", crowded);
#endif
  for (int i = 0; i < 30 && most <= 4000; i++) {
    const long us = idle_us("9999", 2, 0);
    if (us > most) most = us;
  }
  if (most <= 4000) skip(1, "other processes had this machine's cores");
  else ok(most <= 15000, "QUERN_SPIN=9999: one on a core of its own takes %ld us", most);
}

/* ---- Everybody's own share ---- */

#define N_SHARERS 4
#define OF_EACH 3

typedef struct sharing {
  meeting first;
  pthread_t thread[N_SHARERS * OF_EACH];
} sharing;

/* Whoever has the first slice of a share waits until all have one. */
static void share_slice(void *arg, int64_t i) {
  sharing *shares = arg;
  shares->thread[i] = pthread_self();
  if (i % OF_EACH == 0) meet(&shares->first, i);
}

/* Exits with 0 if each of the threads began with the same slices in all of many calls. */
static void share_again_and_again(void) {
  qn_slices *s = create_slices(N_SHARERS, NULL, NULL);
  static sharing before;
  for (int call = 0; call < 50; call++) {
    sharing now = {.first = {.n = N_SHARERS}};
    qn_slices_run(s, N_SHARERS * OF_EACH, share_slice, &now);
    if (atomic_load(&now.first.alone)) _exit(1);
    if (!pthread_equal(now.thread[0], pthread_self())) _exit(2);
    for (int i = 0; call && i < N_SHARERS * OF_EACH; i += OF_EACH) {
      if (!pthread_equal(now.thread[i], before.thread[i])) _exit(3);
    }
    before = now;
    if (call % 10 == 0) usleep(2000); /* they sleep */
  }
  _exit(0);
}

static void test_shares(void) {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) share_again_and_again();
  waitpid(pid, &status, 0);
  is_int(WIFEXITED(status) ? WEXITSTATUS(status) : 100, 0, "in every call a thread begins with the same slices");
}

/* ---- The end of the process ---- */

static qn_slices *last_slices;
static pthread_t last_caller;
static atomic_int n_helping;
static int is_written[8];

/* A worker's slice takes so long that the process ends meanwhile. */
static void write_late(void *arg, int64_t i) {
  (void)arg;
  if (!pthread_equal(pthread_self(), last_caller)) {
    atomic_fetch_add(&n_helping, 1);
    usleep(300000);
  } else {
    while (!atomic_load(&n_helping)) usleep(100);
  }
  is_written[i] = 1;
}

static void *call_last(void *unused) {
  last_caller = pthread_self();
  qn_slices_run(last_slices, 8, write_late, NULL);
  for (int i = 0; i < 8; i++) {
    if (!is_written[i]) _exit(1);
  }
  return unused;
}

/* In a child of a process without a pool: it has one of its own. */
static void test_exit(void) {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    pthread_t caller;
    last_slices = create_slices(4, NULL, NULL);
    if (pthread_create(&caller, NULL, call_last, NULL) || pthread_detach(caller)) _exit(2);
    while (!atomic_load(&n_helping)) usleep(100);
    exit(0);
  }
  waitpid(pid, &status, 0);
  is_int(WIFEXITED(status) ? WEXITSTATUS(status) : 100, 0, "a call returns with all slices done though the process ends");
}

/* ---- The main thread leaves ---- */

#if defined(UNDER_TSAN) || defined(UNDER_ASAN)
static void test_leave(void) { skip(2, "the sanitizers have threads of their own"); }
#else
/* The result of a child, 1000 + the signal that ended it, or -1: it did not end within 20 s. */
static int end_of(pid_t pid) {
  int status;
  for (const double start = seconds(); seconds() - start < 20; usleep(10000)) {
    if (waitpid(pid, &status, WNOHANG) == pid) return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
  }
  kill(pid, SIGKILL);
  waitpid(pid, &status, 0);
  return -1;
}

static int n_threads(void) {
  char line[200];
  int n = 0;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) {
    if (sscanf(line, "Threads: %d", &n) == 1) break;
  }
  if (file) fclose(file);
  return n;
}

/* In children of a process without a pool. */
static void test_leave(void) {
  pid_t pid = fork();
  if (pid == 0) {
    meeting m = {.n = 4};
    qn_slices_run(create_slices(4, NULL, NULL), 4, meet, &m);
    pthread_exit(NULL);
  }
  is_int(end_of(pid), 0, "a process of which the main thread leaves by pthread_exit ends when its workers are idle");
  pid = fork();
  if (pid == 0) {
    qn_slices *s = create_slices(4, NULL, NULL);
    for (int round = 0; round < 3; round++) {
      meeting m = {.n = 4};
      qn_slices_run(s, 4, meet, &m);
      if (atomic_load(&m.alone) || n_threads() != 4) _exit(1);
      for (const double start = seconds(); n_threads() > 1; usleep(1000)) {
        if (seconds() - start > 10) _exit(2);
      }
    }
    exit(0);
  }
  is_int(end_of(pid), 0, "idle workers end, others come when they are needed");
}
#endif

/* ---- Threads that cannot be made ---- */

#if defined(UNDER_TSAN) || defined(UNDER_ASAN)
static void test_no_threads(void) { skip(1, "the sanitizers need all of the address space"); }
#else
static int n_said;

static void hear(void *host, int level, const char *text) {
  if (level == 1 && strstr(text, "threads") && host == &n_said) n_said++;
}

static void test_no_threads(void) {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    static work w;
    const quern_options options = {.size = sizeof options, .threads = 100, .log = hear, .host = &n_said};
    const struct rlimit limit = {(rlim_t)256 << 20, (rlim_t)256 << 20}; /* of 8 MiB a stack */
    qn_slices *s = qn_slices_create(&options);
    if (setrlimit(RLIMIT_AS, &limit)) _exit(9);
    errno = 77;
    for (int k = 0; k < 3; k++) {
      memset(&w, 0, sizeof w);
      qn_slices_run(s, 1000, count_slice, &w);
      if (!once_each(&w, 1000) || errno != 77) _exit(8);
    }
    _exit(n_said);
  }
  waitpid(pid, &status, 0);
  is_int(WIFEXITED(status) ? WEXITSTATUS(status) : 100, 1, "threads that cannot be made are said to the log, once");
}
#endif

/* ---- Nesting ---- */

typedef struct nesting {
  qn_slices *slices, *other;
  atomic_int bad, inner;
} nesting;

typedef struct inner_call {
  nesting *n;
  pthread_t thread;
} inner_call;

static void inner_slice(void *arg, int64_t i) {
  inner_call *c = arg;
  (void)i;
  if (!pthread_equal(c->thread, pthread_self())) atomic_store(&c->n->bad, 1);
  atomic_fetch_add(&c->n->inner, 1);
}

static void outer_slice(void *arg, int64_t i) {
  nesting *n = arg;
  inner_call c = {n, pthread_self()};
  if (qn_slices_limit(n->slices) != 1 || qn_slices_limit(n->other) != 1) atomic_store(&n->bad, 1);
  qn_slices_run(i % 2 ? n->slices : n->other, 10, inner_slice, &c);
}

static void test_nesting(qn_slices *s, qn_slices *other, const char *name) {
  nesting n = {.slices = s, .other = other};
  qn_slices_run(s, 100, outer_slice, &n);
  ok(!atomic_load(&n.bad) && atomic_load(&n.inner) == 1000, "nested calls run inline: %s", name);
  ok(qn_slices_limit(s) > 1, "and not afterwards");
}

/* ---- The host's threads ---- */

typedef struct host_range {
  int64_t from, to;
  void (*slice)(void *arg, int64_t i);
  void *arg;
} host_range;

static void *host_thread(void *arg) {
  host_range *r = arg;
  for (int64_t i = r->from; i < r->to; i++) r->slice(r->arg, i);
  return NULL;
}

static int host_calls;

static void host_for(void *host, int64_t n, void (*slice)(void *arg, int64_t i), void *arg) {
  pthread_t threads[3];
  host_range r[3];
  ++*(int *)host;
  for (int t = 0; t < 3; t++) {
    r[t] = (host_range){n * t / 3, n * (t + 1) / 3, slice, arg};
    pthread_create(&threads[t], NULL, host_thread, &r[t]);
  }
  for (int t = 0; t < 3; t++) pthread_join(threads[t], NULL);
}

static void test_host(qn_slices *pool) {
  qn_slices *s = create_slices(3, host_for, &host_calls);
  is_int(qn_slices_limit(s), 3, "the host has three threads");
  work *w = new_work();
  qn_slices_run(s, 100, count_slice, w);
  ok(once_each(w, 100), "each slice runs once on the host's threads");
  is_int(host_calls, 1, "by one call");
  int elsewhere = 1;
  for (int i = 0; i < 100; i++) elsewhere &= !pthread_equal(w->thread[i], pthread_self());
  ok(elsewhere, "and not on this thread");
  free(w);
  test_nesting(s, pool, "the host's in the host's and in the pool's");
  test_nesting(pool, s, "the pool's in the pool's and in the host's");
  w = new_work();
  qn_slices_run(s, 1, count_slice, w);
  ok(once_each(w, 1) && pthread_equal(w->thread[0], pthread_self()), "a single slice stays here");
  free(w);
  qn_slices_destroy(s);
}

/* ---- The floating point environment ---- */

#if defined(__x86_64__)
#define HAVE_CONTROL 1
static uint32_t control(void) { return __builtin_ia32_stmxcsr() & QN_FLOAT_ENV_CONTROL; }
static void set_odd(void) { __builtin_ia32_ldmxcsr(0x1f80u | 0x8040u | 0x2000u); } /* FTZ, DAZ, round down */
static void set_default(void) { __builtin_ia32_ldmxcsr(0x1f80u); }
#define ODD (0x1f80u | 0x8040u | 0x2000u)
#endif

#ifdef HAVE_CONTROL
typedef struct environment_seen {
  atomic_int bad;
  meeting m;
} environment_seen;

static void see_environment(void *arg, int64_t i) {
  environment_seen *e = arg;
  if (control() != QN_FLOAT_ENV_DEFAULT) atomic_store(&e->bad, 1);
  meet(&e->m, i);
}

static void test_environment(qn_slices *s, int n, const char *name) {
  environment_seen e = {.m = {.n = n}};
  set_odd();
  qn_slices_run(s, n, see_environment, &e);
  const uint32_t after = control();
  set_default();
  ok(!atomic_load(&e.bad), "slices run in the default floating point environment: %s", name);
  is_int(after, ODD & QN_FLOAT_ENV_CONTROL, "and the caller's own is given back");
}

static void test_environments(void) {
  qn_slices *many = create_slices(48, NULL, NULL), *one = create_slices(1, NULL, NULL);
  qn_slices *host = create_slices(3, host_for, &host_calls);
  test_environment(many, 48, "workers made under another");
  test_environment(one, 1, "inline");
  test_environment(host, 3, "the host's threads");
  qn_slices_destroy(many);
  qn_slices_destroy(one);
  qn_slices_destroy(host);
}
#endif

/* ---- Plans ---- */

typedef struct preparing {
  quern_op *op;
  DLTensor tensor[2];
  quern_plan *plan;
} preparing;

static void prepare_slice(void *arg, int64_t i) {
  preparing *p = arg;
  DLTensor *in = &p->tensor[0], *out = &p->tensor[1];
  if (i == 0 && quern_op_prepare(p->op, 1, &in, 1, &out, NULL, &p->plan)) p->plan = NULL;
}

/* How many threads a run has is decided by where it runs, not by where its plan was made. */
static void test_plan(qn_slices *s) {
  enum { N = 400000 };
  static float x[N], y[N];
  int64_t n = N;
  preparing p = {.plan = NULL};
  quern_ctx *ctx = NULL;
  const quern_options options = {.size = sizeof options, .threads = 3, .parallel_for = host_for, .host = &host_calls};
  if (quern_ctx_create(&options, &ctx) || quern_op_find(ctx, "negative", &p.op)) bail("%s", quern_last_error());
  p.tensor[0] = (DLTensor){.device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n};
  p.tensor[1] = p.tensor[0];
  qn_slices_run(s, 4, prepare_slice, &p);
  if (!p.plan) bail("%s", quern_last_error());
  void *in = x, *out = y;
  const int before = host_calls;
  x[N - 1] = 1;
  is_int(quern_plan_run(p.plan, &in, &out, NULL), QUERN_OK, "a plan prepared within a slice runs");
  ok(host_calls == before + 1 && y[N - 1] == -1, "on all threads");
  quern_plan_release(p.plan);
  quern_op_release(p.op);
  quern_ctx_release(ctx);
}

/* ---- Signals, errno ---- */

typedef struct signals_seen {
  pthread_t caller;
  atomic_int open;
  meeting m;
} signals_seen;

static void see_signals(void *arg, int64_t i) {
  signals_seen *s = arg;
  sigset_t set;
  pthread_sigmask(SIG_SETMASK, NULL, &set);
  if (!pthread_equal(pthread_self(), s->caller) && (!sigismember(&set, SIGINT) || !sigismember(&set, SIGUSR1))) {
    atomic_store(&s->open, 1);
  }
  meet(&s->m, i);
}

static void test_signals(qn_slices *s) {
  sigset_t set;
  signals_seen seen = {.caller = pthread_self(), .m = {.n = 4}};
  errno = 77;
  qn_slices_run(s, 4, see_signals, &seen);
  is_int(errno, 77, "errno is as it was");
  ok(!atomic_load(&seen.open), "workers block signals");
  pthread_sigmask(SIG_SETMASK, NULL, &set);
  ok(!sigismember(&set, SIGINT), "the caller does not");
}

/* ---- Many callers ---- */

#define N_CALLERS 24

typedef struct caller {
  qn_slices *slices;
  int seed, bad;
} caller;

static void *call_often(void *arg) {
  caller *c = arg;
  for (int k = 0; k < 150; k++) {
    const int n = (c->seed * 31 + k * 7) % 50;
    work *w = new_work();
    qn_slices_run(c->slices, n, count_slice, w);
    if (!once_each(w, n)) c->bad = 1;
    free(w);
  }
  return NULL;
}

static void *meet_call(void *arg) {
  caller *c = arg;
  meeting m = {.n = 1};
  for (int k = 0; k < 50; k++) qn_slices_run(c->slices, 8, meet, &m);
  return NULL;
}

static void test_callers(qn_slices *s) {
  pthread_t threads[N_CALLERS];
  caller callers[N_CALLERS];
  int bad = 0;
  for (int t = 0; t < N_CALLERS; t++) {
    callers[t] = (caller){s, t, 0};
    pthread_create(&threads[t], NULL, t % 4 == 3 ? meet_call : call_often, &callers[t]);
  }
  for (int t = 0; t < N_CALLERS; t++) {
    pthread_join(threads[t], NULL);
    bad |= callers[t].bad;
  }
  ok(!bad, "%d callers at once get their slices once each", N_CALLERS);
}

/* ---- Forks ---- */

/* Allocates nothing: not every sanitizer's malloc may be used in the child of a process with threads. */
static int in_child(qn_slices *s) {
  static work child_work;
  work *w = &child_work;
  int code = 0;
  if (qn_slices_limit(s) != 1) code |= 1;
  for (int k = 0; k < 50; k++) {
    memset(w, 0, sizeof *w);
    qn_slices_run(s, 100, count_slice, w);
    if (!once_each(w, 100)) code |= 2;
    for (int i = 0; i < 100; i++) {
      if (!pthread_equal(w->thread[i], pthread_self())) code |= 4;
    }
  }
  return code;
}

static int fork_once(qn_slices *s) {
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    const int code = in_child(s);
    if (code) _exit(code);
    _exit(0);
  }
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

static atomic_int stop_calling;

static void *call_until_told(void *arg) {
  caller *c = arg;
  while (!atomic_load(&stop_calling)) {
    work *w = new_work();
    qn_slices_run(c->slices, 20, count_slice, w);
    if (!once_each(w, 20)) c->bad = 1;
    free(w);
  }
  return NULL;
}

/* Forks once, in the caller's thread or in a worker. */
typedef struct forking {
  pthread_t caller;
  int in_worker;
  atomic_int done;
  pid_t pid;
} forking;

static void fork_in_slice(void *arg, int64_t i) {
  forking *f = arg;
  (void)i;
  const int in_worker = !pthread_equal(pthread_self(), f->caller);
  if (in_worker == f->in_worker && !atomic_exchange(&f->done, 1)) {
    f->pid = fork();
  } else {
    usleep(1000); /* so that each thread gets a slice */
  }
}

static void test_fork_in_slice(qn_slices *s, int in_worker, const char *name) {
  forking f = {.caller = pthread_self(), .in_worker = in_worker, .pid = -1};
  const pid_t self = getpid();
  int status = -1;
  for (int k = 0; k < 100 && !atomic_load(&f.done); k++) qn_slices_run(s, 40, fork_in_slice, &f);
  if (getpid() != self) _exit(0); /* the child is not stuck in the call */
  waitpid(f.pid, &status, 0);
  ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", name);
}

static void test_forks(qn_slices *s) {
  int bad = 0;
  is_int(fork_once(s), 0, "a forked child runs alone");
  work *w = new_work();
  qn_slices_run(s, 100, count_slice, w);
  ok(once_each(w, 100), "its parent goes on");
  free(w);

  pthread_t threads[2];
  caller callers[2] = {{s, 0, 0}, {s, 1, 0}};
  for (int t = 0; t < 2; t++) pthread_create(&threads[t], NULL, call_until_told, &callers[t]);
  for (int k = 0; k < 20; k++) bad |= fork_once(s);
  atomic_store(&stop_calling, 1);
  for (int t = 0; t < 2; t++) {
    pthread_join(threads[t], NULL);
    bad |= callers[t].bad;
  }
  is_int(bad, 0, "children forked while others compute");

#ifdef UNDER_ASAN
  skip(1, "the leak checker would run in the child");
#else
  fflush(NULL);
  int status = -1;
  const pid_t pid = fork();
  if (pid == 0) {
    /* Ends by exit(): there is no thread to be joined. */
    in_child(s);
    fclose(stdout);
    exit(0);
  }
  waitpid(pid, &status, 0);
  ok(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child that exits");
#endif

  test_fork_in_slice(s, 0, "a child forked within a slice returns from the call");
#if defined(UNDER_TSAN) || defined(UNDER_ASAN)
  skip(1, "the sanitizer cannot go on in a child that is one of its parent's workers");
#else
  test_fork_in_slice(s, 1, "a child forked within a worker ends");
#endif
}

int main(void) {
  alarm(300);
  test_spin();
  setenv("QUERN_SPIN", "200", 1); /* what test_drowsy reckons with */
  test_exit();
  test_shares();
  test_leave();
  test_no_threads();
  is_int(qn_slices_limit(NULL), 1, "NULL is one thread");
  work *alone = new_work();
  qn_slices_run(NULL, 5, count_slice, alone);
  ok(once_each(alone, 5), "which is this one");
  free(alone);
  test_once();
  test_parallel();
  test_drowsy();
  qn_slices *s = create_slices(4, NULL, NULL);
  test_nesting(s, s, "the pool's in the pool's");
  test_host(s);
  test_plan(s);
#ifdef HAVE_CONTROL
  test_environments();
#else
  skip(6, "no control word known on this target");
#endif
  test_signals(s);
  test_callers(s);
  test_forks(s);
  qn_slices_destroy(s);
  qn_slices_destroy(NULL);
  return done_testing();
}
