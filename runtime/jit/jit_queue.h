/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_queue.h: the one lock of run-time compilation, the process's background threads and their queues of tasks: one for large
 * compiles, so that other tasks do not wait for them, and one for the rest. Handles forks and the process's end. Knows no kernels and no contexts. */
#ifndef QN_JIT_QUEUE_H
#define QN_JIT_QUEUE_H

/* A task, embedded in the object that it works on; the queue links it and owns nothing. */
typedef struct qn_jit_task {
  struct qn_jit_task *next;
  int is_urgent; /* a thread waits for it */
  int is_large;  /* it takes long: for the second thread */
  /* Runs the task on the background thread, in the default floating-point environment. The lock is held when it is called and
   * when it returns; in between it is released for everything that takes time. */
  void (*run)(struct qn_jit_task *task);
  /* Called instead of `run` when the task is dropped, with the lock held throughout. why: a few words, static. */
  void (*drop)(struct qn_jit_task *task, const char *why);
} qn_jit_task;

/* Makes the library stay in the process after a dlclose. Otherwise dlclose would run its destructors under the loader's
 * lock, and wait for a task that waits for that lock to open a module. To be called without the queue's lock, before the
 * first task is added. */
void qn_jit_queue_keep_library(void);

/* Held briefly: never during file access, generating, compiling, mapping, or calls of the host's log. A fork waits for
 * it. Host threads that wait with it are shielded from cancellation (thread.h). */
void qn_jit_queue_lock(void);
void qn_jit_queue_unlock(void);

/* Waits for the next qn_jit_queue_notify; may return early. To be called with the lock held, like all that follows. */
void qn_jit_queue_wait(void);
void qn_jit_queue_notify(void);

/* Adds a task behind all others, an urgent one behind the urgent ones, and makes the thread if there is none. Returns NULL,
 * or, if the task was not added, the reason; static. */
const char *qn_jit_queue_add(qn_jit_task *task);

/* Makes a waiting task urgent. */
void qn_jit_queue_raise_priority(qn_jit_task *task);

/* Whether the process ends: then a host's log must not be called any more. */
int qn_jit_queue_is_ending(void);

/* Whether this is a background thread. */
int qn_jit_queue_is_here(void);

/* Drops the waiting tasks for which is_meant(task, arg) is true. */
void qn_jit_queue_drop(int (*is_meant)(const qn_jit_task *task, const void *arg), const void *arg, const char *why);

/* Sets the one function that is called in a forked child, with the lock held, after its queue was dropped. Only the forking
 * thread exists there: unless it forked itself, the background thread is gone, and with it the task it was running. */
void qn_jit_queue_on_fork(void (*in_child)(void));

#endif
