/* SPDX-License-Identifier: Apache-2.0
 * tags: memory threads
 *
 * t565: what goes on while a kernel is being compiled: the process ends, forks, closes the library, its context is
 * released, by another thread or by the log that the compile calls; a thread that waits for it is cancelled. */
#include <dlfcn.h>
#include <stdatomic.h>

#include "jit_parts.h"

/* ---- The end of the process ---- */

/* In a sanitized process LLVM's destructors cannot be kept from running while Clang is being opened or compiles for the
 * first time (clang_module.cc). */
#define LLVM_ENDS_EARLY (UNDER_TSAN || UNDER_ASAN)

static void warm_up(qn_jit *jit, int is_held) {
  if (!LLVM_ENDS_EARLY || cc_given) return;
  qn_code *code = acquire(jit, 100);
  if (is_held)
    for (int i = 0; i < 60000 && strcmp(qn_clang_state(), "ready") != 0; i++) usleep(1000);
  else
    comes(code);
  qn_code_release(code);
}

static int ends_at_once(int is_held) {
  static subject s; /* never ended */
  s = subject_make(QUERN_JIT_ASYNC, NULL);
  warm_up(s.jit, is_held);
  for (int i = 0; i < 10; i++) qn_code_release(acquire(s.jit, i));
  usleep(10000); /* the first is under way */
  return 0;      /* exit: with nine jobs in the queue */
}

static int ends_free(void) { return ends_at_once(0); }
static int ends_held(void) { return ends_at_once(1); }

static int ends_after_release(void) {
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  warm_up(s.jit, 0);
  for (int i = 0; i < 3; i++) qn_code_release(acquire(s.jit, i));
  usleep(10000);
  subject_end(&s);
  return 0;
}

#if UNDER_TSAN || UNDER_ASAN
static void test_leave(void) { skip(3, "the sanitizers have threads of their own"); }
#else
/* The main thread leaves by pthread_exit: the process ends when nothing is being compiled, and is not deaf meanwhile. */
static int leaves(void) {
  static subject s;
  s = subject_make(QUERN_JIT_ASYNC, NULL);
  for (int i = 0; i < 2; i++) qn_code_release(acquire(s.jit, i));
  pthread_exit(NULL);
}

static void test_leave(void) {
  int status = -1;
  is_int(child_with(0, 1, leaves), 0, "a process of which the main thread leaves ends after its compiles");
  setenv("QUERN_TEST_COMPILER", "hold=60000", 1);
  for (int blocks = 0; blocks < 2; blocks++) {
    fflush(NULL);
    const pid_t pid = fork();
    if (pid == 0) {
      sigset_t term;
      sigemptyset(&term);
      sigaddset(&term, SIGTERM);
      if (blocks) pthread_sigmask(SIG_BLOCK, &term, NULL);
      leaves();
    }
    usleep(300000);
    kill(pid, SIGTERM);
    int ended = 0;
    for (int i = 0; i < (blocks ? 200 : 1000) && !ended; i++) {
      ended = waitpid(pid, &status, WNOHANG) == pid;
      usleep(10000);
    }
    if (cc_given)
      skip(1, "a C compiler does not hold");
    else if (blocks)
      ok(!ended, "nor by one that the host has blocked");
    else
      ok(ended && WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM, "while it compiles, it is ended by SIGTERM");
    if (!ended) kill(pid, SIGKILL), waitpid(pid, &status, 0);
  }
  unsetenv("QUERN_TEST_COMPILER");
}
#endif

/* A thread that asks, and waits, while the process ends under it. */
static void *asks_on(void *arg) {
  qn_jit *jit = arg;
  for (int i = 0;; i++) qn_code_release(acquire(jit, i % 50));
  return NULL;
}

static int ends_under_threads(void) {
  static subject s;
  pthread_t thread;
  s = subject_make(QUERN_JIT_SYNC, NULL);
  warm_up(s.jit, 0);
  for (int i = 0; i < 3; i++) {
    if (pthread_create(&thread, NULL, asks_on, s.jit)) return 1;
    pthread_detach(thread);
  }
  usleep(60000);
  return 0;
}

static void test_exit(void) {
  double start = now_ms();
  is_int(child_with(0, 1, ends_free), 0, "exit with jobs in the queue");
  if (cc_given) {
    skip(1, "only Clang in process can be held");
  } else {
    start = now_ms();
    const int status = child_with(60000, 1, ends_held);
    ok(status == 0 && now_ms() - start < 30000, "exit cuts a compile that is held short: status %d", status);
  }
  is_int(child_with(0, 1, ends_after_release), 0, "exit after the context was released");
  is_int(child_with(0, 1, ends_under_threads), 0, "exit while threads ask on");
}

/* ---- Forks ---- */

static int leaks;

/* Asked by the leak sanitizer when the process ends. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void) { return leaks; }

/* Whether the kernel comes. A fork waits for compiles under way to come to a safe point. A process that was forked while Clang was
 * being opened in it, which may take longer than a fork waits, has no Clang, but says so. */
static int comes_here(qn_code *code, int n, int is_child) {
  for (int i = 0; i < 60000 && !kernel_of(code); i++) {
    if (is_child && strstr(info_of(code).reason, "clang: the process was forked while Clang was being opened")) return 1;
    usleep(1000);
  }
  return computes(code, n);
}

static int works_here(qn_code **codes, int n, int is_child) {
  subject s = subject_make(QUERN_JIT_SYNC, NULL);
  qn_code *code = acquire(s.jit, 500);
  MUST(comes_here(code, 500, is_child));
  qn_code_release(code);
  subject_end(&s);
  for (int i = 0; i < n; i++) qn_code_ask(codes[i]);
  for (int i = 0; i < n; i++) MUST(comes_here(codes[i], i, is_child));
  return 0;
}

/* With compiles of `n` kernels under way and in the queue: children are made again and again. */
static int forks(void) {
  enum { N = 6 };
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  qn_code *codes[N];
  for (int i = 0; i < N; i++) codes[i] = acquire(s.jit, i);
  for (int k = 0; k < 6; k++) {
    usleep(7000);
    const pid_t pid = fork();
    if (pid == 0) {
      int has_forked = 0;
      for (int i = 0; i < N; i++) {
        const qn_code_info info = info_of(codes[i]);
        const int is_lost = !info.tier[0] && strcmp(info.reason, "forked") == 0;
        has_forked += is_lost;
        if (!info.tier[0] && !is_lost) _exit(1);
      }
      if (k == 0 && !has_forked) _exit(2);
      qn_code *same = acquire(s.jit, N - 1);
      if (same != codes[N - 1]) _exit(3);
      qn_code_release(same);
      int failed = works_here(codes, N, 1);
      for (int i = 0; i < N; i++) qn_code_release(codes[i]);
      subject_end(&s);
      _exit(failed ? 4 : 0);
    }
    MUST(status_of(pid) == 0);
  }
  MUST(works_here(codes, N, 0) == 0);
  for (int i = 0; i < N; i++) qn_code_release(codes[i]);
  subject_end(&s);
  return 0;
}

/* A child of a child, that leaves through exit. */
static int forks_and_exits(void) {
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  qn_code *code = acquire(s.jit, 1);
  usleep(UNDER_ASAN ? 150000 : 5000);
  const pid_t pid = fork();
  if (pid == 0) {
    leaks = 1; /* what the parent's thread had in hand */
    exit(0);
  }
  MUST(status_of(pid) == 0);
  MUST(comes(code));
  qn_code_release(code);
  subject_end(&s);
  return 0;
}

static int stop_asking;

static void *asks_until_told(void *arg) {
  qn_jit *jit = arg;
  for (int i = 0; !__atomic_load_n(&stop_asking, __ATOMIC_RELAXED); i++) qn_code_release(acquire(jit, i % 20));
  return NULL;
}

/* Forks while other threads are anywhere inside. */
static int forks_under_threads(void) {
  char dir[300];
  snprintf(dir, sizeof dir, "%s/forks", scratch);
  const quern_options options = {.jit = QUERN_JIT_SYNC, .cache_dir = dir, .kernel_memory_limit = 20000};
  subject s = subject_with(options, NULL);
  pthread_t threads[3];
  int bad = 0;
  for (int i = 0; i < 3; i++) pthread_create(&threads[i], NULL, asks_until_told, s.jit);
  for (int k = 0; k < 15; k++) {
    usleep(3000);
    const pid_t pid = fork();
    if (pid == 0) {
      qn_code *code = acquire(s.jit, k % 20);
      const int good = comes_here(code, k % 20, 1);
      qn_code_release(code);
      _exit(!good);
    }
    const int status = status_of(pid);
    if (status) fprintf(stderr, "# fork %d: status %d\n", k, status), bad++;
  }
  __atomic_store_n(&stop_asking, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  subject_end(&s);
  MUST(bad == 0);
  return 0;
}

static void test_forks(void) {
  if (UNDER_TSAN) {
    skip(4, "the thread sanitizer does not let a forked child start threads");
    return;
  }
  is_int(child_with(cc_given ? 0 : 300, 1, forks_and_exits), 0, "a forked child that exits while a compile is held");
  if (UNDER_ASAN) { /* but for when all of them are known to wait */
    skip(3, "the address sanitizer does not let a child allocate that was forked while other threads did");
    return;
  }
  is_int(child_with(cc_given ? 0 : 30, 1, forks), 0, "forks while compiles are under way: all go on");
  is_int(child_with(0, 1, forks_and_exits), 0, "a forked child that only exits");
  is_int(child_with(0, 1, forks_under_threads), 0, "forks while three threads ask");
}

/* ---- The end of a context ---- */

static int releases_early(void) {
  subject s = subject_make(QUERN_JIT_ASYNC, NULL);
  qn_code *kept = acquire(s.jit, 1), *queued = acquire(s.jit, 2);
  usleep(100000); /* its source is there, and it is held */
  const double start = now_ms();
  subject_end(&s);
  MUST(now_ms() - start < 1000);
  MUST(!kernel_of(kept) && !kernel_of(queued));
  MUST(strcmp(info_of(queued).reason, "its context was released") == 0);
  qn_code_ask(queued);
  for (int i = 0; i < 1000 && strcmp(info_of(kept).reason, "being compiled") == 0; i++) usleep(10000);
  MUST(strcmp(info_of(kept).reason, "its context was released") == 0);
  qn_code_release(kept);
  qn_code_release(queued);
  return 0;
}

static void *comes_and_goes(void *arg) {
  rng r;
  rng_seed(&r, (uint64_t)(uintptr_t)arg);
  for (int i = 0; i < 8; i++) {
    heard h = HEARD_START;
    subject s = subject_make(rng_below(&r, 3) ? QUERN_JIT_ASYNC : QUERN_JIT_SYNC, &h);
    qn_code *codes[3];
    for (int k = 0; k < 3; k++) codes[k] = acquire(s.jit, (int)rng_below(&r, 4));
    usleep((useconds_t)rng_below(&r, 15000));
    for (int k = 0; k < 2; k++) qn_code_release(codes[k]);
    subject_end(&s);
    qn_code_release(codes[2]);
    pthread_mutex_destroy(&h.lock); /* the log is not called any more */
    memset(&h, 0xff, sizeof h);
  }
  return NULL;
}

static void test_contexts(void) {
  pthread_t threads[6];
  if (cc_given)
    skip(1, "only Clang in process can be held");
  else
    is_int(child_with(1500, 1, releases_early), 0, "a context is released while its compile is held: it does not wait");
  for (int i = 0; i < 6; i++) pthread_create(&threads[i], NULL, comes_and_goes, (void *)(uintptr_t)i);
  for (int i = 0; i < 6; i++) pthread_join(threads[i], NULL);
  pass("6 threads make and release 48 contexts with compiles under way");
}

/* ---- Threads that are cancelled ---- */

static void *asks_until_cancelled(void *arg) {
  qn_code_release(acquire(arg, 1));
  pthread_testcancel();
  return NULL;
}

static int cancels(void) {
  subject s = subject_make(QUERN_JIT_SYNC, NULL);
  pthread_t thread;
  void *result = NULL;
  alarm(60); /* it hangs */
  MUST(pthread_create(&thread, NULL, asks_until_cancelled, s.jit) == 0);
  usleep(100000); /* it waits */
  MUST(pthread_cancel(thread) == 0);
  qn_code *other = acquire(s.jit, 2), *same = acquire(s.jit, 1);
  MUST(computes(other, 2) && computes(same, 1));
  MUST(pthread_join(thread, &result) == 0);
  MUST(result == PTHREAD_CANCELED);
  qn_code_release(other);
  qn_code_release(same);
  subject_end(&s);
  return 0;
}

static void test_cancel(void) {
  if (cc_given)
    skip(1, "only Clang in process can be held");
  else
    is_int(child_with(400, 1, cancels), 0, "a thread is cancelled while it waits for a compile: others go on, it ends then");
}

/* ---- Logs that call back ---- */

typedef struct caller {
  subject s;
  atomic_int may, done;
  int good;
} caller;

static void release_context(void *arg, const char *text) {
  caller *c = arg;
  if (!strstr(text, "compiled by") || atomic_load(&c->done)) return;
  while (!atomic_load(&c->may)) usleep(1000); /* no thread is inside */
  subject_end(&c->s);
  atomic_store(&c->done, 1);
}

static void test_log_releases(void) {
  static caller c;
  heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .also = release_context, .arg = &c};
  c.s = subject_make(QUERN_JIT_ASYNC, &h);
  qn_code *code = acquire(c.s.jit, 9);
  atomic_store(&c.may, 1);
  for (int i = 0; i < 6000 && !atomic_load(&c.done); i++) usleep(10000);
  ok(atomic_load(&c.done), "a log releases the context that calls it");
  ok(computes(code, 9), "the code is there for who holds it");
  qn_code_release(code);
  /* The job ends a moment later. */
  subject s = subject_make(QUERN_JIT_SYNC, NULL);
  code = acquire(s.jit, 10);
  ok(computes(code, 10), "others are served");
  qn_code_release(code);
  subject_end(&s);
}

/* Asks for the very kernel that was compiled, for one that does not exist yet, and for one that is in the queue. */
static void ask_back(void *arg, const char *text) {
  caller *c = arg;
  if (!strstr(text, "compiled by") || atomic_exchange(&c->done, 1)) return;
  qn_code *same = acquire(c->s.jit, 1), *fresh = acquire(c->s.jit, 2), *queued = acquire(c->s.jit, 3);
  c->good = computes(same, 1) && computes(fresh, 2);
  qn_code_release(same);
  qn_code_release(fresh);
  qn_code_release(queued);
}

static void *asks_for_three(void *arg) {
  qn_jit *jit = arg;
  qn_code_release(acquire(jit, 3));
  return NULL;
}

static void test_log_asks(void) {
  static caller c;
  heard h = {.lock = PTHREAD_MUTEX_INITIALIZER, .also = ask_back, .arg = &c};
  pthread_t thread;
  c.s = subject_make(QUERN_JIT_SYNC, &h);
  pthread_create(&thread, NULL, asks_for_three, c.s.jit);
  qn_code *code = acquire(c.s.jit, 1);
  pthread_join(thread, NULL);
  ok(computes(code, 1), "a log may ask for kernels");
  qn_code *three = acquire(c.s.jit, 3);
  ok(computes(three, 3), "none is lost");
  qn_code_release(code);
  qn_code_release(three);
  subject_end(&c.s);
}

/* ---- The library is closed: it stays until its thread has ended ---- */

static const char *library(void) {
  static char path[400];
  const char *build = getenv("QUERN_BUILD_DIR");
  snprintf(path, sizeof path, "%s/libquern.so", build ? build : ".");
  return access(path, R_OK) ? NULL : path;
}

static int unloads(void) {
  void *quern = dlopen(library(), RTLD_NOW | RTLD_LOCAL);
  MUST(quern);
  quern_status (*ctx_create)(const quern_options *, quern_ctx **);
  quern_status (*op_compile)(quern_ctx *, const char *, quern_op **);
  quern_status (*op_call)(quern_op *, int32_t, DLTensor *const *, int32_t, DLTensor *const *, const quern_call *);
  void (*op_release)(quern_op *), (*ctx_release)(quern_ctx *);
  *(void **)&ctx_create = dlsym(quern, "quern_ctx_create");
  *(void **)&op_compile = dlsym(quern, "quern_op_compile");
  *(void **)&op_call = dlsym(quern, "quern_op_call");
  *(void **)&op_release = dlsym(quern, "quern_op_release");
  *(void **)&ctx_release = dlsym(quern, "quern_ctx_release");
  MUST(ctx_create && op_compile && op_call && op_release && ctx_release);
  const quern_options options = {.size = sizeof options, .jit = QUERN_JIT_ASYNC, .threads = 1, .cache_dir = "",
                                 .cc = cc_given};
  quern_ctx *ctx;
  quern_op *op;
  float x[9] = {1, 2, 3}, y[9];
  int64_t n = 9;
  DLTensor in = {.data = x, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {2, 32, 1}, .shape = &n}, out = in;
  DLTensor *ins[] = {&in}, *outs[] = {&out};
  out.data = y;
  MUST(ctx_create(&options, &ctx) == 0);
  MUST(op_compile(ctx, "y = x * x + 3", &op) == 0);
  MUST(op_call(op, 1, ins, 1, outs, NULL) == 0);
  usleep(20000);
  op_release(op);
  ctx_release(ctx);
  MUST(dlclose(quern) == 0);
  MUST(y[2] == 12);
  usleep(50000);
  return 0;
}

static void test_unload(void) {
  if (!library()) {
    skip(2, "no libquern.so in QUERN_BUILD_DIR");
    return;
  }
  is_int(child_with(0, 1, unloads), 0, "the library is closed while it compiles");
  is_int(child_with(cc_given ? 0 : 400, 1, unloads), 0, "and while a compile is held");
}

int main(void) {
  need_parts();
  test_exit();
  test_leave();
  test_forks();
  test_unload();
  test_cancel();
  test_contexts();
  test_log_releases();
  test_log_asks();
  leave_parts();
  return done_testing();
}
