/* SPDX-License-Identifier: Apache-2.0
 *
 * workers.c: the threads of the library's own; see workers.h.
 *
 * A call that is worth it takes a job slot, opens its gate, and works on it itself; workers enter through the gate (a
 * word: open or not, how many are inside, how many may be), claim slices and leave. The caller closes the gate when no
 * slice is left and waits until nobody is inside. Slices lie in shares, as many as may be inside: a thread begins with the
 * same share in every call, since its data lie in that core's cache, and takes others' slices when it is done. A worker's
 * share is its number modulo theirs, so two may have one where the pool has more workers than this call may use.
 * Who waits spins for SPIN_NS, then lets others have the core between looks, then, AWAKE_NS after it began, sleeps: idle
 * workers on `epoch`, the caller on the gate. A worker that is woken wakes others, so that the caller does not pay for all
 * of them. */
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
#include <sys/syscall.h>
#endif

#include "core/base/spelled.h"
#include "core/base/thread.h"

#define MAX_WORKERS (QN_WORKERS_MOST - 1)
#define N_JOBS 16
#define MOST_SHARES 64 /* with more threads than that, some have the same */
/* Waking a thread costs tens of microseconds, and it often comes back to the core of the thread that woke it, where the two
 * share time until the scheduler, milliseconds later, moves one. So who waits stays awake for AWAKE_NS; after SPIN_NS, more
 * than lies between two calls in a row, it yields between looks to whoever shares its core. */
#define SPIN_NS 5000
#define AWAKE_NS 200000
#define SLICES_CACHE_LINE 64

/* job.gate: who may enter, who is inside. */
#define GATE_OPEN 0x80000000u
#define GATE_WAITED 0x40000000u     /* the caller sleeps until nobody is inside */
#define GATE_MOST(gate) ((gate) >> 16 & 0xffu) /* workers that may be inside */
#define GATE_INSIDE(gate) ((gate) & 0xffffu)
_Static_assert(MAX_WORKERS <= 0xff, "a byte of the gate");

typedef struct portion {
  _Alignas(SLICES_CACHE_LINE) _Atomic int32_t left; /* slices not claimed; below 0 when more have asked */
} portion;

typedef struct shared_work {
  _Alignas(SLICES_CACHE_LINE) _Atomic uint32_t gate;
  atomic_int to_wake; /* sleeping workers that this job may still wake */
  _Alignas(SLICES_CACHE_LINE) _Atomic int32_t left; /* slices not claimed, of all shares; late: never too few */
  /* Written by the caller before the gate opens, read by those inside. */
  _Alignas(SLICES_CACHE_LINE) int32_t n, n_shares;
  void (*body)(void *arg, int64_t i);
  void *arg;
  portion shares[MOST_SHARES];
} shared_work;

static struct pool {
  _Alignas(SLICES_CACHE_LINE) _Atomic uint32_t epoch; /* changes when there is news for idle workers */
  _Alignas(SLICES_CACHE_LINE) _Atomic uint32_t taken; /* bit j: a call has jobs[j] */
  _Alignas(SLICES_CACHE_LINE) atomic_int sleeping, spinning;
  _Alignas(SLICES_CACHE_LINE) atomic_int n_workers;
  atomic_int most_workers; /* fewer once a thread could not be made */
  atomic_int stopping;     /* no help from now on: workers end, none are made */
  atomic_int forked;       /* this is a child, and who was inside a job is not in it */
  int forks_watched;
  pthread_mutex_t growing; /* held while threads are made or ended, and across a fork */
  pthread_t threads[MAX_WORKERS];
  shared_work jobs[N_JOBS];
} pool = {.most_workers = MAX_WORKERS, .growing = PTHREAD_MUTEX_INITIALIZER};

_Static_assert(N_JOBS <= 32, "a bit of pool.taken each");

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
/* Sleeps while *word is `seen`; may return early. */
static void sleep_on(_Atomic uint32_t *word, uint32_t seen) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
}

static void wake(_Atomic uint32_t *word, int n) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
#else
static pthread_mutex_t sleep_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t sleep_news = PTHREAD_COND_INITIALIZER;

static void sleep_on(_Atomic uint32_t *word, uint32_t seen) {
  pthread_mutex_lock(&sleep_lock);
  if (atomic_load(word) == seen) pthread_cond_wait(&sleep_news, &sleep_lock);
  pthread_mutex_unlock(&sleep_lock);
}

static void wake(_Atomic uint32_t *word, int n) {
  (void)word, (void)n;
  pthread_mutex_lock(&sleep_lock);
  pthread_cond_broadcast(&sleep_news);
  pthread_mutex_unlock(&sleep_lock);
}
#endif

/* ---- Jobs ---- */

/* The first slice of a share; of the share behind the last: n. */
static int32_t share_begin(const shared_work *j, int32_t share) {
  return (int32_t)((int64_t)j->n * share / j->n_shares);
}

static int32_t claim_of(shared_work *j, int32_t share) {
  _Atomic int32_t *const left = &j->shares[share].left;
  if (atomic_load_explicit(left, memory_order_relaxed) <= 0) return -1;
  const int32_t mine = atomic_fetch_sub_explicit(left, 1, memory_order_relaxed);
  if (mine <= 0) return -1;
  atomic_fetch_sub_explicit(&j->left, 1, memory_order_relaxed);
  return share_begin(j, share + 1) - mine;
}

/* Claims and runs slices until there are none, those of the `who`-th share first. */
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

/* Wakes up to two of the workers that the job may still wake. */
static void wake_some(shared_work *j) {
  if (atomic_load(&pool.sleeping) <= 0 || atomic_load_explicit(&j->to_wake, memory_order_relaxed) <= 0) return;
  const int most = atomic_fetch_sub_explicit(&j->to_wake, 2, memory_order_relaxed);
  if (most > 0) wake(&pool.epoch, most < 2 ? most : 2);
}

/* A worker's part in a job; 0 if there was none to take. */
static int help(shared_work *j, int32_t who) {
  uint32_t gate = atomic_load_explicit(&j->gate, memory_order_acquire); /* `left` is of the call that opened it */
  do {
    if (!(gate & GATE_OPEN) || GATE_INSIDE(gate) >= GATE_MOST(gate)) return 0;
    if (atomic_load_explicit(&j->left, memory_order_relaxed) <= 0) return 0;
  } while (!atomic_compare_exchange_weak_explicit(&j->gate, &gate, gate + 1, memory_order_acquire,
                                                  memory_order_acquire));
  wake_some(j);
  run_claimed(j, who);
  gate = atomic_fetch_sub_explicit(&j->gate, 1, memory_order_acq_rel);
  if ((gate & GATE_WAITED) && GATE_INSIDE(gate) == 1) wake(&j->gate, 1);
  return 1;
}

/* Waits, not for ever, for *word to be another than `seen`. */
static int spin(_Atomic uint32_t *word, uint32_t seen) {
  const int64_t start = now_ns();
  for (int64_t waited = 0; waited < AWAKE_NS; waited = now_ns() - start) {
    if (waited > SPIN_NS) sched_yield();
    for (int i = 0; i < 32; i++) {
      if (atomic_load_explicit(word, memory_order_acquire) != seen) return 1;
      relax();
    }
  }
  return 0;
}

/* A worker is given the address of its place in pool.threads. */
static void *work(void *place) {
  const int32_t who = (int32_t)((pthread_t *)place - pool.threads) + 1;
  for (;;) {
    const uint32_t seen = atomic_load(&pool.epoch);
    if (atomic_load(&pool.stopping)) return NULL;
    uint32_t taken = atomic_load(&pool.taken);
    int helped = 0;
    for (; taken; taken &= taken - 1) helped |= help(&pool.jobs[__builtin_ctz(taken)], who);
    if (helped) continue;
    atomic_fetch_add(&pool.spinning, 1);
    const int news = spin(&pool.epoch, seen);
    atomic_fetch_sub(&pool.spinning, 1);
    if (news) continue;
    atomic_fetch_add(&pool.sleeping, 1);
    sleep_on(&pool.epoch, seen);
    atomic_fetch_sub(&pool.sleeping, 1);
  }
}

/* ---- The pool's life ---- */

static void before_fork(void) {
  pthread_mutex_lock(&pool.growing);
}

static void after_fork(void) {
  pthread_mutex_unlock(&pool.growing);
}

/* The child has this thread only. Should it be inside a job, then nobody will come for the slices that others had; should
 * it be a worker, it ends. */
static void after_fork_in_child(void) {
  atomic_store(&pool.forked, 1);
  atomic_store(&pool.stopping, 1);
  atomic_store(&pool.n_workers, 0);
  pthread_mutex_unlock(&pool.growing);
}

/* Makes threads until there are `n`; gives up for good on the first that cannot be made, and returns 0 that once. */
static int grow(int n) {
  if (pthread_mutex_trylock(&pool.growing)) return 1; /* somebody else is at it; what is there will do */
  int n_workers = atomic_load(&pool.n_workers), made_all = 1;
  if (!pool.forks_watched) {
    pool.forks_watched = 1;
    if (pthread_atfork(before_fork, after_fork, after_fork_in_child)) atomic_store(&pool.most_workers, 0);
  }
  while (n_workers < n && n_workers < atomic_load(&pool.most_workers) && !atomic_load(&pool.stopping)) {
    if (qn_thread_start(&pool.threads[n_workers], 0, work, &pool.threads[n_workers])) {
      atomic_store(&pool.n_workers, ++n_workers);
    } else {
      atomic_store(&pool.most_workers, n_workers);
      made_all = 0;
    }
  }
  pthread_mutex_unlock(&pool.growing);
  return made_all;
}

/* When the process ends or the library is unloaded: calls that still run keep the help they have, and get no more. */
__attribute__((destructor)) static void stop(void) {
  pthread_mutex_lock(&pool.growing);
  const int n_workers = atomic_exchange(&pool.n_workers, 0);
  atomic_store(&pool.stopping, 1);
  atomic_fetch_add(&pool.epoch, 1);
  wake(&pool.epoch, MAX_WORKERS);
  for (int i = 0; i < n_workers; i++) {
    if (!pthread_equal(pool.threads[i], pthread_self())) pthread_join(pool.threads[i], NULL);
  }
  pthread_mutex_unlock(&pool.growing);
}

/* ---- Running ---- */

/* A slot of the pool's, or NULL when too many calls are in. */
static shared_work *take_job(void) {
  uint32_t taken = atomic_load(&pool.taken), bit;
  do {
    if (taken == (uint32_t)((UINT64_C(1) << N_JOBS) - 1)) return NULL;
    bit = ~taken & (taken + 1);
  } while (!atomic_compare_exchange_weak(&pool.taken, &taken, taken | bit));
  return &pool.jobs[__builtin_ctz(bit)];
}

static void give_job(shared_work *j) {
  atomic_fetch_and(&pool.taken, ~((uint32_t)1 << (j - pool.jobs)));
}

/* Closes the gate and waits until no worker is inside: they write to the caller's outputs and read its stack. */
static void close_job(shared_work *j) {
  uint32_t gate = atomic_fetch_and_explicit(&j->gate, ~GATE_OPEN, memory_order_acq_rel) & ~GATE_OPEN;
  while (GATE_INSIDE(gate) && !atomic_load_explicit(&pool.forked, memory_order_relaxed)) {
    if (!spin(&j->gate, gate) && atomic_compare_exchange_strong(&j->gate, &gate, gate | GATE_WAITED))
      sleep_on(&j->gate, gate | GATE_WAITED);
    gate = atomic_load_explicit(&j->gate, memory_order_acquire);
  }
}

/* 0: too many calls are in. */
static int run_on_workers(int32_t most, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  shared_work *const j = take_job();
  if (!j) return 0;
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
  /* Counted after the news: who spins now sees it, or does not fall asleep over it; before it, who is about to sleep would
   * count as awake. Those inside first: who goes in meanwhile counts nowhere, so too many may be woken, but never too few
   * while slices are left. */
  const int32_t n_inside = (int32_t)GATE_INSIDE(atomic_load(&j->gate));
  atomic_store_explicit(&j->to_wake, most - n_inside - atomic_load(&pool.spinning), memory_order_relaxed);
  wake_some(j);

  run_claimed(j, 0);

  close_job(j);
  give_job(j);
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

int32_t qn_workers_limit(int32_t wanted) {
  return atomic_load_explicit(&pool.stopping, memory_order_relaxed) ? 1 : wanted;
}

int qn_workers_run(const qn_log *log, int32_t n_threads, int32_t n, void (*body)(void *arg, int64_t i), void *arg) {
  const int kept_errno = errno;
  int32_t most = (n < n_threads ? n : n_threads) - 1;
  if (most > MAX_WORKERS) most = MAX_WORKERS;
  if (atomic_load_explicit(&pool.n_workers, memory_order_acquire) < most &&
      atomic_load_explicit(&pool.n_workers, memory_order_relaxed) <
          atomic_load_explicit(&pool.most_workers, memory_order_relaxed) &&
      !atomic_load_explicit(&pool.stopping, memory_order_relaxed) && !grow(most)) {
    qn_log_say(log, QN_LOG_WARNING, QN_SPELLED(quern_op_call) ": no more threads than %d could be made, and no more will be tried",
               atomic_load(&pool.n_workers) + 1);
  }
  const int has_run = atomic_load_explicit(&pool.n_workers, memory_order_relaxed) && run_on_workers(most, n, body, arg);
  errno = kept_errno;
  return has_run;
}
