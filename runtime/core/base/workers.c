/* SPDX-License-Identifier: Apache-2.0
 *
 * workers.c: the process-wide pool of worker threads; see workers.h.
 *
 * A call takes one of the pool's batches, opens its gate, and works on it too. The gate is a word: an open bit, the number of
 * workers inside, and their limit. Workers enter through it, claim slices and leave. When no slice is left, the caller closes
 * the gate and waits until it is empty. Slices are divided into shares, one for each thread allowed. A thread begins with the
 * same share in every call, since its data is in that core's cache, then takes slices of other shares. A worker's share is its
 * number modulo the shares, so two workers may have the same where the pool has more workers than this call may use.
 * A waiting thread spins for SPIN_NS, then yields between polls, and sleeps QUERN_SPIN after it began, or once another thread had
 * its core: idle workers on `epoch`, the caller on the gate. No more workers spin than there are cores beside the caller's, and one
 * that is on the caller's core leaves it. A woken worker wakes others, so that the caller does not pay for all of them. A worker that
 * has slept for IDLE_S ends, because a process goes on after pthread_exit of its main thread until its last thread ends. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* sched_getaffinity, syscall */
#endif
#include "core/base/workers.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#include "core/base/environment.h"
#include "core/base/thread.h"

#define MAX_WORKERS (QN_WORKERS_MOST - 1)
#define N_BATCHES 16
#define MOST_SHARES 64 /* with more threads than that, some have the same share */
/* Waking a thread costs tens of microseconds. The thread often wakes on the core of its waker, and the two share that core until
 * the scheduler moves one, milliseconds later. So a waiting thread stays awake for a while; after SPIN_NS, longer than the
 * gap between successive calls, it yields between polls to other threads of its core. Where a poll comes PREEMPTED_NS late, others
 * need the core. */
#define SPIN_NS 5000
#define PREEMPTED_NS 50000
#define ROW_NS 50000 /* small calls follow one another if one begins that soon after the last */
#define IDLE_S 1
#define LEAVE_NS 5000000 /* the least time between two moves of a worker: a scheduler that moves it back is not fought */
#define SLICES_CACHE_LINE 64

/* Bits of shared_work.gate. */
#define GATE_OPEN 0x80000000u
#define GATE_WAITED 0x40000000u     /* the caller sleeps until no worker is inside */
#define GATE_MOST(gate) ((gate) >> 16 & 0xffu) /* workers that may be inside */
#define GATE_INSIDE(gate) ((gate) & 0xffffu)
_Static_assert(MAX_WORKERS <= 0xff, "a byte of the gate");

typedef struct portion {
  _Alignas(SLICES_CACHE_LINE) _Atomic int32_t left; /* unclaimed slices; below 0 after claims in vain */
} portion;

typedef struct shared_work {
  _Alignas(SLICES_CACHE_LINE) _Atomic uint32_t gate;
  atomic_int to_wake; /* sleeping workers that this batch may still wake */
  _Alignas(SLICES_CACHE_LINE) _Atomic int32_t left; /* unclaimed slices of all shares; updated late: never too few */
  /* Written by the caller before the gate opens; read by the threads inside. */
  _Alignas(SLICES_CACHE_LINE) int32_t n, n_shares;
  void (*body)(void *arg, int64_t i);
  void *arg;
  portion shares[MOST_SHARES];
} shared_work;

static struct pool {
  _Alignas(SLICES_CACHE_LINE) _Atomic uint32_t epoch; /* changes at each new batch and at the end, to wake idle workers */
  _Alignas(SLICES_CACHE_LINE) _Atomic uint32_t taken; /* bit j: a call has batches[j] */
  _Alignas(SLICES_CACHE_LINE) atomic_int sleeping, spinning;
  _Alignas(SLICES_CACHE_LINE) atomic_int n_workers;
  atomic_int awake_us, most_spinning; /* QUERN_SPIN; one less than there are cores */
  _Atomic int64_t small_call;         /* when the last one came that asked whether workers are awake */
  atomic_int caller_core;  /* of the last call, + 1 */
  atomic_int may_move;     /* workers may change their cores */
  atomic_int stopping;     /* 1: workers end, and none are made */
  atomic_int forked;       /* 1: a forked child, without the parent's workers */
  int forks_watched;
  pthread_t threads[MAX_WORKERS];
  enum { NEVER, WORKS, RETIRED } states[MAX_WORKERS]; /* of the threads; one that has retired is to be joined */
  shared_work batches[N_BATCHES];
} pool; /* all zero, so that it takes no room in a file */
static atomic_int most_workers = MAX_WORKERS; /* lowered when a thread cannot be made */
static pthread_mutex_t growing = PTHREAD_MUTEX_INITIALIZER; /* held while threads are made or ended, and across a fork */

_Static_assert(N_BATCHES <= 32, "a bit of pool.taken each");

/* ---- Waiting ---- */

static void relax(void) {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb");
#endif
}

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

#if defined(__linux__)
/* Sleeps while *word is `seen`; may return early. most NULL: no limit. Returns 0 if the time is over. */
static int sleep_on(_Atomic uint32_t *word, uint32_t seen, const struct timespec *most) {
  return syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, most, NULL, 0) == 0 || errno != ETIMEDOUT;
}

static void wake(_Atomic uint32_t *word, int n) { syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0); }
#else
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleep_news = PTHREAD_COND_INITIALIZER;

static int sleep_on(_Atomic uint32_t *word, uint32_t seen, const struct timespec *most) {
  pthread_mutex_lock(&sleep_lock);
  if (atomic_load(word) == seen) pthread_cond_wait(&sleep_news, &sleep_lock);
  pthread_mutex_unlock(&sleep_lock);
  return (void)most, 1;
}

static void wake(_Atomic uint32_t *word, int n) {
  (void)word, (void)n;
  pthread_mutex_lock(&sleep_lock);
  pthread_cond_broadcast(&sleep_news);
  pthread_mutex_unlock(&sleep_lock);
}
#endif

/* ---- Jobs ---- */

/* The first slice of a share; n for the share after the last. */
static int32_t share_begin(const shared_work *j, int32_t share) { return (int32_t)((int64_t)j->n * share / j->n_shares); }

static int32_t claim_of(shared_work *j, int32_t share) {
  _Atomic int32_t *const left = &j->shares[share].left;
  if (atomic_load_explicit(left, memory_order_relaxed) <= 0) return -1;
  const int32_t mine = atomic_fetch_sub_explicit(left, 1, memory_order_relaxed);
  if (mine <= 0) return -1;
  atomic_fetch_sub_explicit(&j->left, 1, memory_order_relaxed);
  return share_begin(j, share + 1) - mine;
}

/* Claims and runs slices until none is left, first those of share `who` modulo n_shares. */
static void run_claimed(shared_work *j, int32_t who) {
  const int32_t n_shares = j->n_shares;
  int32_t share = who % n_shares, empty = 0, i;
  while (empty < n_shares && atomic_load_explicit(&j->left, memory_order_relaxed) > 0) {
    if ((i = claim_of(j, share)) >= 0) {
      j->body(j->arg, i);
    } else {
      share = share + 1 < n_shares ? share + 1 : 0;
      empty++;
    }
  }
}

/* Wakes up to two of the workers that the batch may still wake. */
static void wake_some(shared_work *j) {
  if (atomic_load(&pool.sleeping) <= 0 || atomic_load_explicit(&j->to_wake, memory_order_relaxed) <= 0) return;
  const int most = atomic_fetch_sub_explicit(&j->to_wake, 2, memory_order_relaxed);
  if (most > 0) wake(&pool.epoch, most < 2 ? most : 2);
}

/* A worker's part in a batch. Returns 0 if it could not enter. */
static int help(shared_work *j, int32_t who) {
  uint32_t gate = atomic_load_explicit(&j->gate, memory_order_acquire); /* acquire: `left` is then of this call */
  do {
    if (!(gate & GATE_OPEN) || GATE_INSIDE(gate) >= GATE_MOST(gate)) return 0;
    if (atomic_load_explicit(&j->left, memory_order_relaxed) <= 0) return 0;
  } while (!atomic_compare_exchange_weak_explicit(&j->gate, &gate, gate + 1, memory_order_acquire, memory_order_acquire));
  wake_some(j);
  run_claimed(j, who);
  gate = atomic_fetch_sub_explicit(&j->gate, 1, memory_order_acq_rel);
  if ((gate & GATE_WAITED) && GATE_INSIDE(gate) == 1) wake(&j->gate, 1);
  return 1;
}

/* Waits a while until *word differs from `seen`. Returns 1 if it does. */
static int spin(_Atomic uint32_t *word, uint32_t seen) {
  const int64_t start = now_ns(), most = 1000 * (int64_t)atomic_load_explicit(&pool.awake_us, memory_order_relaxed);
  for (int64_t waited = 0, before = 0; waited < most && waited - before < PREEMPTED_NS; waited = now_ns() - start) {
    if (waited > SPIN_NS) sched_yield();
    before = waited;
    for (int i = 0; i < 32; i++) {
      if (atomic_load_explicit(word, memory_order_acquire) != seen) return 1;
      relax();
    }
  }
  return atomic_load_explicit(word, memory_order_acquire) != seen;
}

/* Leaves the core of the last caller, if both are on the same one while others are free: a scheduler may not see it for tens of
 * milliseconds, since the two run in turn. `next`: when the worker may do so again. Not where system calls are filtered: a filter may end the
 * process for this one. */
static void leave_caller(int64_t *next) {
#if defined(__linux__)
  const int core = atomic_load_explicit(&pool.caller_core, memory_order_relaxed) - 1;
  cpu_set_t own, others;
  if (core < 0 || core >= CPU_SETSIZE || core != sched_getcpu() || !atomic_load(&pool.may_move)) return;
  if (atomic_load(&pool.spinning) >= atomic_load(&pool.most_spinning)) return;
  const int64_t now = now_ns();
  if (now < *next || sched_getaffinity(0, sizeof own, &own) != 0 || CPU_COUNT(&own) < 2) return;
  *next = now + LEAVE_NS;
  others = own;
  CPU_CLR((size_t)core, &others);
  if (sched_setaffinity(0, sizeof others, &others) == 0) sched_setaffinity(0, sizeof own, &own);
#else
  (void)next;
#endif
}

/* Takes an idle worker off the pool. Returns 0 if there is news, or the pool is changing. */
static int retire(int32_t who, uint32_t seen) {
  if (pthread_mutex_trylock(&growing)) return 0;
  const int is_idle = !atomic_load(&pool.stopping) && atomic_load(&pool.epoch) == seen;
  if (is_idle) atomic_fetch_sub(&pool.n_workers, 1), pool.states[who - 1] = RETIRED;
  pthread_mutex_unlock(&growing);
  return is_idle;
}

/* A worker's main function. thread: its element of pool.threads. */
static void *work(void *thread) {
  const int32_t who = (int32_t)((pthread_t *)thread - pool.threads) + 1;
  const struct timespec idle = {IDLE_S, 0};
  int64_t may_leave = 0;
  for (;;) {
    leave_caller(&may_leave);
    const uint32_t seen = atomic_load(&pool.epoch);
    if (atomic_load(&pool.stopping)) return NULL;
    uint32_t taken = atomic_load(&pool.taken);
    int helped = 0;
    for (; taken; taken &= taken - 1) helped |= help(&pool.batches[__builtin_ctz(taken)], who);
    if (helped) continue;
    const int news = atomic_fetch_add(&pool.spinning, 1) < atomic_load(&pool.most_spinning) && spin(&pool.epoch, seen);
    atomic_fetch_sub(&pool.spinning, 1);
    if (news) continue;
    atomic_fetch_add(&pool.sleeping, 1);
    const int is_over = !sleep_on(&pool.epoch, seen, &idle);
    atomic_fetch_sub(&pool.sleeping, 1);
    if (is_over && retire(who, seen)) return NULL;
  }
}

/* ---- The pool's life ---- */

static void before_fork(void) { pthread_mutex_lock(&growing); }
static void after_fork(void) { pthread_mutex_unlock(&growing); }

/* The child has this thread only. If it is inside a batch, the slices of other threads remain undone, and it does not wait for
 * them; if it is a worker, it ends. */
static void after_fork_in_child(void) {
  atomic_store(&pool.forked, 1);
  atomic_store(&pool.stopping, 1);
  atomic_store(&pool.n_workers, 0);
  for (int i = 0; i < MAX_WORKERS; i++) pool.states[i] = NEVER;
  pthread_mutex_unlock(&growing);
}

/* Makes threads until there are `n`. Gives up for good at the first failure, and returns 0 that one time. */
__attribute__((noinline)) static int grow(int n) {
  if (pthread_mutex_trylock(&growing)) return 1; /* another thread is growing the pool; go on with the workers there are */
  int n_workers = atomic_load(&pool.n_workers), made_all = 1;
  if (!pool.forks_watched) {
    pool.forks_watched = 1;
#if defined(__linux__)
    atomic_store(&pool.may_move, prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 0);
#endif
    atomic_store(&pool.awake_us, qn_environment_number(QN_SPELLED(QUERN_SPIN), 1000));
    if (pthread_atfork(before_fork, after_fork, after_fork_in_child)) atomic_store(&most_workers, 0);
  }
  for (int i = 0; i < MAX_WORKERS && n_workers < n && n_workers < atomic_load(&most_workers) && !atomic_load(&pool.stopping); i++) {
    if (pool.states[i] == WORKS) continue;
    atomic_store(&pool.most_spinning, qn_workers_most() - 1);
    if (pool.states[i] == RETIRED) pthread_join(pool.threads[i], NULL);
    pool.states[i] = NEVER;
    if (qn_thread_start(&pool.threads[i], 0, work, &pool.threads[i])) {
      pool.states[i] = WORKS;
      atomic_store(&pool.n_workers, ++n_workers);
    } else {
      atomic_store(&most_workers, n_workers);
      made_all = 0;
    }
  }
  pthread_mutex_unlock(&growing);
  return made_all;
}

/* Runs when the process ends or the library is unloaded. Calls still running keep their workers and get no more. */
__attribute__((destructor)) static void stop(void) {
  pthread_mutex_lock(&growing);
  atomic_store(&pool.n_workers, 0);
  atomic_store(&pool.stopping, 1);
  atomic_fetch_add(&pool.epoch, 1);
  wake(&pool.epoch, MAX_WORKERS);
  for (int i = 0; i < MAX_WORKERS; i++)
    if (pool.states[i] && !pthread_equal(pool.threads[i], pthread_self())) pthread_join(pool.threads[i], NULL);
  pthread_mutex_unlock(&growing);
}

/* ---- Running ---- */

/* A free batch of the pool; NULL if all are taken. */
static shared_work *take_batch(void) {
  uint32_t taken = atomic_load(&pool.taken), bit;
  do {
    if (taken == (uint32_t)((UINT64_C(1) << N_BATCHES) - 1)) return NULL;
    bit = ~taken & (taken + 1);
  } while (!atomic_compare_exchange_weak(&pool.taken, &taken, taken | bit));
  return &pool.batches[__builtin_ctz(bit)];
}

static void give_batch(shared_work *j) { atomic_fetch_and(&pool.taken, ~((uint32_t)1 << (j - pool.batches))); }

/* Closes the gate and waits until no worker is inside, since workers write to the caller's outputs and read its stack. */
static void close_batch(shared_work *j) {
  uint32_t gate = atomic_fetch_and_explicit(&j->gate, ~GATE_OPEN, memory_order_acq_rel) & ~GATE_OPEN;
  while (GATE_INSIDE(gate) && !atomic_load_explicit(&pool.forked, memory_order_relaxed)) {
    if (!spin(&j->gate, gate) && atomic_compare_exchange_strong(&j->gate, &gate, gate | GATE_WAITED))
      sleep_on(&j->gate, gate | GATE_WAITED, NULL);
    gate = atomic_load_explicit(&j->gate, memory_order_acquire);
  }
}

/* Returns 0 if all batches are taken. */
static int run_on_workers(int32_t most, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  shared_work *const j = take_batch();
  if (!j) return 0;
#if defined(__linux__)
  atomic_store_explicit(&pool.caller_core, sched_getcpu() + 1, memory_order_relaxed);
#endif
  j->n = n;
  j->n_shares = most + 1 < n ? most + 1 : n;
  if (j->n_shares > MOST_SHARES) j->n_shares = MOST_SHARES;
  j->body = body;
  j->arg = arg;
  for (int32_t s = 0; s < j->n_shares; s++)
    atomic_store_explicit(&j->shares[s].left, share_begin(j, s + 1) - share_begin(j, s), memory_order_relaxed);
  atomic_store_explicit(&j->left, n, memory_order_relaxed);
  atomic_store_explicit(&j->to_wake, 0, memory_order_relaxed);
  atomic_store_explicit(&j->gate, GATE_OPEN | (uint32_t)most << 16, memory_order_release);
  atomic_fetch_add(&pool.epoch, 1);
  /* `spinning` is read after `epoch` changes: a worker that spins now sees the change and does not sleep. Read before, it would
   * include workers about to sleep. The workers inside are read first: one that enters in between is in neither count, so too
   * many may be woken, but never too few while slices are left. */
  const int32_t n_inside = (int32_t)GATE_INSIDE(atomic_load(&j->gate));
  atomic_store_explicit(&j->to_wake, most - n_inside - atomic_load(&pool.spinning), memory_order_relaxed);
  wake_some(j);

  run_claimed(j, 0);

  close_batch(j);
  give_batch(j);
  return 1;
}

int32_t qn_workers_most(void) {
  const int kept_errno = errno;
  long n = 0;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) n = CPU_COUNT(&set);
#endif
  if (n < 1) n = sysconf(_SC_NPROCESSORS_ONLN);
  errno = kept_errno;
  return n < 1 ? 1 : n > QN_WORKERS_MOST ? QN_WORKERS_MOST : (int32_t)n;
}

int qn_workers_are_awake(void) {
  if (atomic_load_explicit(&pool.spinning, memory_order_relaxed) > 0) return 1;
  const int64_t now = now_ns();
  return now - atomic_exchange_explicit(&pool.small_call, now, memory_order_relaxed) < ROW_NS;
}

int32_t qn_workers_limit(int32_t wanted) { return atomic_load_explicit(&pool.stopping, memory_order_relaxed) ? 1 : wanted; }

int qn_workers_run(const qn_log *log, int32_t n_threads, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  const int kept_errno = errno;
  int32_t most = (n < n_threads ? n : n_threads) - 1;
  if (most > MAX_WORKERS) most = MAX_WORKERS;
  if (atomic_load_explicit(&pool.n_workers, memory_order_acquire) < most && !grow(most))
    qn_log_say(log, QN_LOG_WARNING, QN_SPELLED(quern_op_call) ": no more threads than %d could be made, and no more will be tried",
               atomic_load(&pool.n_workers) + 1);
  const int has_run = atomic_load_explicit(&pool.n_workers, memory_order_relaxed) && run_on_workers(most, n, body, arg);
  errno = kept_errno;
  return has_run;
}
