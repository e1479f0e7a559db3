/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_queue.c: one thread, one queue, one lock; see jit_queue.h.
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

#include "core/base/float_env.h"
#include "core/base/thread.h"
#include "base/thread_shield.h"

/* The generator and the host's log run on it; compilers have stacks of their own. */
#define STACK_BYTES (512 << 10)

static struct queue {
  pthread_mutex_t lock;
  pthread_cond_t work, news; /* signalled to the thread; to threads that wait for it */
  qn_jit_task *first;
  int has_thread, stopping;
  unsigned generation; /* counts forks: a thread of another generation is not this process's */
  pthread_t thread;
  void (*in_child)(void);
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .news = PTHREAD_COND_INITIALIZER};

static _Thread_local int is_here; /* this is the background thread */

static void drop_all(const char *why) {
  qn_jit_task *task = queue.first, *next;
  queue.first = NULL;
  for (; task; task = next) {
    next = task->next;
    task->drop(task, why);
  }
}

/* ---- Forks ---- */

static void before_jit_fork(void) { pthread_mutex_lock(&queue.lock); }
static void after_jit_fork(void) { pthread_mutex_unlock(&queue.lock); }

static void after_jit_fork_in_child(void) {
  queue.generation++;
  queue.has_thread = 0;
  /* Condition variables may count waiters that do not exist in the child. */
  queue.work = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
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

/* The thread takes no processor from a thread that is running, above all from the one whose call has just made it. */
static void give_way(void) {
#if defined(SCHED_BATCH)
  const struct sched_param none = {0};
  if (pthread_setschedparam(pthread_self(), SCHED_BATCH, &none) == 0) sched_yield();
#endif
}

static void *work(void *unused) {
  (void)unused;
  is_here = 1;
  give_way();
  qn_float_env_enter();
  pthread_mutex_lock(&queue.lock);
  const unsigned generation = queue.generation;
  while (!queue.stopping && queue.generation == generation) {
    qn_jit_task *task = queue.first;
    if (!task) {
      pthread_cond_wait(&queue.work, &queue.lock);
      continue;
    }
    queue.first = task->next;
    task->run(task);
  }
  pthread_mutex_unlock(&queue.lock);
  return NULL;
}

static int make_thread(void) {
  return qn_thread_start(&queue.thread, STACK_BYTES, work, NULL) ||
         qn_thread_start(&queue.thread, 0, work, NULL); /* default size: large thread-local memory needs more */
}

static void put(qn_jit_task *task) {
  qn_jit_task **at = &queue.first;
  while (*at && (!task->is_urgent || (*at)->is_urgent)) at = &(*at)->next;
  task->next = *at;
  *at = task;
}

const char *qn_jit_queue_add(qn_jit_task *task) {
  if (queue.stopping) return "the process ends";
  if (!queue.has_thread) queue.has_thread = make_thread();
  if (!queue.has_thread) return "no thread could be made";
  put(task);
  pthread_cond_signal(&queue.work);
  return NULL;
}

void qn_jit_queue_raise_priority(qn_jit_task *task) {
  qn_jit_task **at = &queue.first;
  while (*at && *at != task) at = &(*at)->next;
  if (!*at || task->is_urgent) return;
  *at = task->next;
  task->is_urgent = 1;
  put(task);
}

int qn_jit_queue_is_ending(void) { return queue.stopping; }

int qn_jit_queue_is_here(void) { return is_here; }

void qn_jit_queue_drop(int (*is_meant)(const qn_jit_task *task, const void *arg), const void *arg, const char *why) {
  qn_jit_task **at = &queue.first;
  while (*at) {
    qn_jit_task *task = *at;
    if (is_meant(task, arg)) {
      *at = task->next;
      task->drop(task, why);
    } else {
      at = &task->next;
    }
  }
}

/* At the end of the process: waits for the task under way. Its priority puts it after the library's other destructors,
 * so that those of the compilers end the task early. */
__attribute__((destructor(101))) static void stop(void) {
  const int kept_cancel = qn_thread_shield();
  pthread_mutex_lock(&queue.lock);
  const int joins = queue.has_thread && !pthread_equal(queue.thread, pthread_self());
  queue.stopping = 1;
  queue.has_thread = 0;
  drop_all("the process ends");
  pthread_cond_broadcast(&queue.work);
  pthread_mutex_unlock(&queue.lock);
  if (joins) pthread_join(queue.thread, NULL);
  qn_thread_unshield(kept_cancel);
}
