/* SPDX-License-Identifier: Apache-2.0
 *
 * idle.c: see idle.h. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* pthread_setname_np */
#endif
#include "base/threads/idle.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/threads/clock.h"

#define IDLE_MS 1000
#define WATCH_MS 500
#define NAME "quern:jit" /* no program's name: threads inherit that */

static const int ending[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};
#define N_ENDING (sizeof ending / sizeof ending[0])

static atomic_uint open_to_host; /* bit i: a thread of the host did not block ending[i] */

void qn_idle_note_signals(void) {
  sigset_t blocked;
  unsigned open = 0;
  if (pthread_sigmask(SIG_SETMASK, NULL, &blocked)) return;
  for (size_t i = 0; i < N_ENDING; i++) open |= (unsigned)!sigismember(&blocked, ending[i]) << i;
  atomic_store(&open_to_host, open);
}

void qn_idle_name_thread(void) {
#if defined(__linux__)
  pthread_setname_np(pthread_self(), NAME);
#endif
}

static int wait_ms(pthread_cond_t *condition, pthread_mutex_t *lock, int ms) {
  const struct timespec until = qn_clock_deadline(ms);
  return pthread_cond_timedwait(condition, lock, &until) != ETIMEDOUT;
}

int qn_idle_wait(pthread_cond_t *condition, pthread_mutex_t *lock) { return wait_ms(condition, lock, IDLE_MS); }

#if defined(__linux__)
/* The state of a thread of this process, 'Z' of one that has ended, and whether it has our name. 0: it is gone. */
static char state_of(const char *id, int *is_own) {
  char path[64], text[128];
  snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", id);
  FILE *file = fopen(path, "re");
  const size_t n = file ? fread(text, 1, sizeof text - 1, file) : 0;
  if (file) fclose(file);
  text[n] = 0;
  const char *name = strchr(text, '('), *end = strrchr(text, ')');
  *is_own = name && strncmp(name + 1, NAME ")", sizeof NAME) == 0;
  return end && end[1] == ' ' ? end[2] : 0;
}

/* Whether the main thread has ended, and there are none but the library's. */
static int are_alone(void) {
  char main_id[24];
  int is_own, are = 1;
  snprintf(main_id, sizeof main_id, "%ld", (long)getpid());
  if (state_of(main_id, &is_own) != 'Z') return 0;
  DIR *tasks = opendir("/proc/self/task");
  if (!tasks) return 0;
  for (const struct dirent *task; are && (task = readdir(tasks));) {
    if (task->d_name[0] == '.' || strcmp(task->d_name, main_id) == 0) continue;
    const char state = state_of(task->d_name, &is_own);
    are = is_own || !state || state == 'Z' || state == 'X';
  }
  closedir(tasks);
  return are;
}
#else
static int are_alone(void) { return 0; }
#endif

void qn_idle_poll(void) {
  const int kept_errno = errno;
  sigset_t opened;
  sigemptyset(&opened);
  if (are_alone()) {
    for (size_t i = 0; i < N_ENDING; i++)
      if (atomic_load(&open_to_host) >> i & 1) sigaddset(&opened, ending[i]);
    pthread_sigmask(SIG_UNBLOCK, &opened, NULL);
  }
  errno = kept_errno;
}

void qn_idle_watch(pthread_cond_t *condition, pthread_mutex_t *lock) {
  if (wait_ms(condition, lock, WATCH_MS)) return;
  pthread_mutex_unlock(lock);
  qn_idle_poll();
  pthread_mutex_lock(lock);
}
