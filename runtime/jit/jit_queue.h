/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_queue.h: the one lock of run-time compilation, the process's background thread and its queue of jobs; all of it
 * forks and ends with the process. Knows neither kernels nor contexts. */
#ifndef QN_JIT_QUEUE_H
#define QN_JIT_QUEUE_H

/* A job is a part of what it is about; the queue links it and owns nothing of it. */
typedef struct qn_jit_task {
  struct qn_jit_task *next;
  int is_urgent; /* somebody waits for it */
  /* On the background thread, in the default floating point environment. The lock is held when it is called and when it
   * returns; in between it is given up for whatever takes time. */
  void (*run)(struct qn_jit_task *job);
  /* The job will not run. Called with the lock held, which it keeps. why: a few words, static. */
  void (*drop)(struct qn_jit_task *job, const char *why);
} qn_jit_task;

/* From now on the library stays in the process even if it is closed: dlclose calls destructors under the loader's lock,
 * and would wait for a job that waits for that lock to open a module. To be called without the lock, before the first
 * job is added. */
void qn_jit_queue_keep_library(void);

/* Held for moments: never while a file is touched, something is generated, compiled or mapped, or the host's log is
 * called. A fork waits for it. A host's thread that waits with it is shielded (thread.h). */
void qn_jit_queue_lock(void);
void qn_jit_queue_unlock(void);

/* Until the next qn_jit_queue_notify; may return early. To be called with the lock held, like all that follows. */
void qn_jit_queue_wait(void);
void qn_jit_queue_notify(void);

/* Adds a job behind all others, an urgent one behind the urgent ones, and makes the thread if there is none. NULL, or
 * why it will not be run (then it is not in the queue); static. */
const char *qn_jit_queue_add(qn_jit_task *job);

/* A job that waits in the queue is urgent from now on. */
void qn_jit_queue_raise_priority(qn_jit_task *job);

/* Whether the process ends: a host's log is not to be called any more. */
int qn_jit_queue_is_ending(void);

/* Whether this is the background thread. */
int qn_jit_queue_is_here(void);

/* Drops the jobs that is_meant(job, arg) is true of and that have not begun. */
void qn_jit_queue_drop(int (*is_meant)(const qn_jit_task *job, const void *arg), const void *arg, const char *why);

/* What is called in a forked child, with the lock held, after its queue was dropped: the thread that forked is the only
 * one there; the background thread, if it is not that one, is gone with the job it was at. One function. */
void qn_jit_queue_on_fork(void (*in_child)(void));

#endif
