/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_queue.c: two threads, a queue each, one lock; see jit_queue.h.
 *
 * A single lock for all contexts: it is taken once per lookup of a kernel and a few times per compile, never in a call
 * with a known kernel. And a fork has only one lock to hold. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* dladdr */
#endif
#include "jit/jit_queue.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include "core/base/float_env.h"
#include "core/base/thread.h"
#include "base/threads/clock.h"
#include "base/threads/idle.h"
#include "base/threads/thread_shield.h"

/* The generator and the host's log run on it; compilers have stacks of their own. */
#define STACK_BYTES (512 << 10)

#if defined(__SANITIZE_THREAD__)
#define MOST_WAIT_MS 30000 /* it reports a thread that is left */
#else
#define MOST_WAIT_MS 500 /* for the tasks under way, when the process ends */
#endif

typedef struct lane {
  pthread_cond_t work; /* signalled to the thread */
  qn_jit_task *first;
  int has_thread, is_busy;
  int is_retired; /* the thread has ended, and is to be joined */
  pthread_t thread;
} lane;

static struct queue {
  pthread_mutex_t lock;
  pthread_cond_t news; /* signalled to threads that wait for tasks */
  lane lanes[2];       /* [1]: for large tasks */
  int stopping;
  unsigned generation; /* counts forks: a thread of another generation is not this process's */
  void (*in_child)(void);
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .news = PTHREAD_COND_INITIALIZER,
           .lanes = {{.work = PTHREAD_COND_INITIALIZER}, {.work = PTHREAD_COND_INITIALIZER}}};

static _Thread_local int is_here; /* this is the background thread */

static void drop_all(const char *why) {
  for (int i = 0; i < 2; i++) {
    qn_jit_task *task = queue.lanes[i].first, *next;
    queue.lanes[i].first = NULL;
    for (; task; task = next) {
      next = task->next;
      task->drop(task, why);
    }
  }
}

/* ---- Forks ---- */

static void before_jit_fork(void) { pthread_mutex_lock(&queue.lock); }
static void after_jit_fork(void) { pthread_mutex_unlock(&queue.lock); }

static void after_jit_fork_in_child(void) {
  queue.generation++;
  /* Condition variables may count waiters that do not exist in the child. */
  for (int i = 0; i < 2; i++) {
    queue.lanes[i].has_thread = queue.lanes[i].is_busy = queue.lanes[i].is_retired = 0;
    queue.lanes[i].work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  }
  queue.news = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
  drop_all("forked");
  if (queue.in_child) queue.in_child();
  pthread_mutex_unlock(&queue.lock);
}

/* Registered at load: a fork that has begun does not call handlers that are added later. */
__attribute__((constructor)) static void watch_jit_forks(void) {
  pthread_atfork(before_jit_fork, after_jit_fork, after_jit_fork_in_child);
}

void qn_jit_queue_on_fork(void (*in_child)(void)) { queue.in_child = in_child; }

/* ---- The library ---- */

void qn_jit_queue_keep_library(void) {
  static atomic_int is_kept;
  Dl_info info;
  if (atomic_load_explicit(&is_kept, memory_order_relaxed)) return;
  if (dladdr((void *)&queue, &info) && info.dli_fname) {
    void *self = dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
    if (self) dlclose(self);
    dlerror(); /* a program cannot be opened, and is never unloaded */
  }
  atomic_store_explicit(&is_kept, 1, memory_order_relaxed);
}

/* ---- The lock ---- */

void qn_jit_queue_lock(void) { pthread_mutex_lock(&queue.lock); }
void qn_jit_queue_unlock(void) { pthread_mutex_unlock(&queue.lock); }
void qn_jit_queue_wait(void) { pthread_cond_wait(&queue.news, &queue.lock); }
void qn_jit_queue_notify(void) { pthread_cond_broadcast(&queue.news); }

/* ---- The thread ---- */

/* Lowers the thread's priority: it takes no processor from a running thread, above all from the caller that made it. */
static void give_way(void) {
#if defined(SCHED_BATCH)
  const struct sched_param none = {0};
  if (pthread_setschedparam(pthread_self(), SCHED_BATCH, &none) == 0) sched_yield();
#endif
}

static void *work(void *arg) {
  lane *own = arg;
  is_here = 1;
  qn_idle_name_thread();
  give_way();
  qn_float_env_enter();
  pthread_mutex_lock(&queue.lock);
  const unsigned generation = queue.generation;
  while (!queue.stopping && queue.generation == generation) {
    qn_jit_task *task = own->first;
    if (!task) {
      if (qn_idle_wait(&own->work, &queue.lock) || own->first || queue.stopping || queue.generation != generation) continue;
      own->has_thread = 0; /* the next task makes another */
      own->is_retired = 1;
      break;
    }
    own->first = task->next;
    own->is_busy = 1;
    task->run(task);
    own->is_busy = 0;
  }
  pthread_cond_broadcast(&queue.news);
  pthread_mutex_unlock(&queue.lock);
  return NULL;
}

static int make_thread(lane *own) {
  if (own->is_retired) pthread_join(own->thread, NULL);
  own->is_retired = 0;
  return qn_thread_start(&own->thread, STACK_BYTES, work, own) ||
         qn_thread_start(&own->thread, 0, work, own); /* default size: large thread-local memory needs more */
}

static void put(qn_jit_task *task) {
  qn_jit_task **at = &queue.lanes[task->is_large].first;
  while (*at && (!task->is_urgent || (*at)->is_urgent)) at = &(*at)->next;
  task->next = *at;
  *at = task;
}

const char *qn_jit_queue_add(qn_jit_task *task) {
  if (queue.stopping) return "the process ends";
  lane *own = &queue.lanes[task->is_large];
  if (!own->has_thread) own->has_thread = make_thread(own);
  if (!own->has_thread) return "no thread could be made";
  put(task);
  pthread_cond_signal(&own->work);
  return NULL;
}

void qn_jit_queue_raise_priority(qn_jit_task *task) {
  qn_jit_task **at = &queue.lanes[task->is_large].first;
  while (*at && *at != task) at = &(*at)->next;
  if (!*at || task->is_urgent) return;
  *at = task->next;
  task->is_urgent = 1;
  put(task);
}

int qn_jit_queue_is_ending(void) { return queue.stopping; }

int qn_jit_queue_is_here(void) { return is_here; }

void qn_jit_queue_drop(int (*is_meant)(const qn_jit_task *task, const void *arg), const void *arg, const char *why) {
  for (int i = 0; i < 2; i++) {
    for (qn_jit_task **at = &queue.lanes[i].first; *at;) {
      qn_jit_task *task = *at;
      if (is_meant(task, arg)) {
        *at = task->next;
        task->drop(task, why);
      } else {
        at = &task->next;
      }
    }
  }
}

/* Waits until a lane's thread has left, at most until then. 0: it works on, until the process is gone. */
static int is_left(const lane *own, const struct timespec *until) {
  while (own->is_busy)
    if (pthread_cond_timedwait(&queue.news, &queue.lock, until)) return !own->is_busy;
  return 1;
}

/* At the end of the process: waits a moment for the tasks under way; what is not done then goes on until the process is gone, and
 * finds nothing freed. Its priority puts it after the library's other destructors, so that those of the compilers end the task
 * early. */
__attribute__((destructor(101))) static void stop(void) {
  const int kept_cancel = qn_thread_shield();
  const struct timespec until = qn_clock_deadline(MOST_WAIT_MS);
  pthread_mutex_lock(&queue.lock);
  queue.stopping = 1;
  drop_all("the process ends");
  for (int i = 0; i < 2; i++) pthread_cond_broadcast(&queue.lanes[i].work);
  for (int i = 0; i < 2; i++) {
    lane *own = &queue.lanes[i];
    const int joins = (own->has_thread || own->is_retired) && !pthread_equal(own->thread, pthread_self()) && is_left(own, &until);
    own->has_thread = own->is_retired = 0;
    pthread_mutex_unlock(&queue.lock);
    if (joins) pthread_join(own->thread, NULL);
    pthread_mutex_lock(&queue.lock);
  }
  pthread_mutex_unlock(&queue.lock);
  qn_thread_unshield(kept_cancel);
}
