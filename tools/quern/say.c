/* SPDX-License-Identifier: Apache-2.0
 *
 * say.c: see say.h. */
#include "say.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <quern/quern.h>

/* ---- Complaints ---- */

static void vcomplain(const char *format, va_list arguments) {
  progress_end();
  fflush(stdout); /* results before complaints, where both go to one place */
  fputs("quern: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
}

int complain(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vcomplain(format, arguments);
  va_end(arguments);
  return STATUS_FAILED;
}

int complain_library(void) { return complain("%s", quern_last_error()); }

int misuse(const char *usage, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vcomplain(format, arguments);
  va_end(arguments);
  fprintf(stderr, "usage: %s", usage);
  return STATUS_MISUSE;
}

int finish_output(void) {
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return STATUS_GOOD;
  return complain("standard output: %s", errno ? strerror(errno) : "not all could be written");
}

/* ---- Progress ---- */

#define SILENT_MS 2000
#define PERIOD_MS 250

static enum { AUTO, ALWAYS, NEVER } when_shown;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t thread;
  int is_on, shown; /* shown: there is a line to wipe */
  int is_terminal;
  struct timespec start;
  const char *verb, *name;
  int64_t done, total, before, all;
} progress = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int64_t ms_since(const struct timespec *start, const struct timespec *now) {
  return (int64_t)(now->tv_sec - start->tv_sec) * 1000 + (now->tv_nsec - start->tv_nsec) / 1000000;
}

static void show_line(int64_t ms) {
  enum { BAR = 20 };
  const int64_t done = progress.done, total = progress.total;
  const double part = total > 0 ? (double)done / (double)total : 0;
  char bar[BAR + 1];
  for (int k = 0; k < BAR; k++) bar[k] = k < (int)(part * BAR) ? '#' : '.';
  bar[BAR] = 0;
  fprintf(stderr, "%squern: %s %.60s, %lld s", progress.is_terminal ? "\r\x1b[K" : "", progress.verb, progress.name, (long long)(ms / 1000));
  if (total > 0) fprintf(stderr, ", [%s] %d%%", bar, (int)(100 * part));
  if (!progress.is_terminal) fputc('\n', stderr);
  fflush(stderr);
  progress.shown = progress.is_terminal;
}

static void *show(void *unused) {
  (void)unused;
  struct timespec now;
  pthread_mutex_lock(&progress.lock);
  while (progress.is_on) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    const int64_t ms = ms_since(&progress.start, &now);
    if ((ms >= SILENT_MS || when_shown == ALWAYS) && progress.verb) show_line(ms);
    if (!progress.is_terminal) now.tv_sec += 1;
    if (progress.is_terminal) now.tv_nsec += PERIOD_MS * 1000000L;
    now.tv_sec += now.tv_nsec / 1000000000L;
    now.tv_nsec %= 1000000000L;
    pthread_cond_timedwait(&progress.changed, &progress.lock, &now);
  }
  pthread_mutex_unlock(&progress.lock);
  return NULL;
}

int progress_choose(const char *when) {
  static const char *const words[] = {[AUTO] = "auto", [ALWAYS] = "always", [NEVER] = "never"};
  for (int k = AUTO; k <= NEVER; k++) {
    if (strcmp(when, words[k]) != 0) continue;
    when_shown = k;
    return 1;
  }
  return 0;
}

void progress_begin(void) {
  progress.is_terminal = isatty(STDERR_FILENO);
  if ((!progress.is_terminal && when_shown != ALWAYS) || when_shown == NEVER || progress.is_on) return;
  pthread_condattr_t attributes;
  sigset_t all, before;
  pthread_condattr_init(&attributes);
  pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  pthread_cond_init(&progress.changed, &attributes);
  pthread_condattr_destroy(&attributes);
  clock_gettime(CLOCK_MONOTONIC, &progress.start);
  progress.is_on = 1;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before); /* signals are the main thread's */
  if (pthread_create(&progress.thread, NULL, show, NULL) != 0) progress.is_on = 0;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void progress_set(const char *verb, const char *name, int64_t done, int64_t total) {
  pthread_mutex_lock(&progress.lock);
  const int is_new = progress.is_on && !progress.is_terminal && (verb != progress.verb || name != progress.name);
  progress.verb = verb;
  progress.name = name;
  progress.done = progress.before + done;
  progress.total = progress.all ? progress.all : total;
  if (is_new) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    show_line(ms_since(&progress.start, &now));
  }
  pthread_mutex_unlock(&progress.lock);
}

void progress_part(int64_t before, int64_t all) {
  pthread_mutex_lock(&progress.lock);
  progress.before = before;
  progress.all = all;
  pthread_mutex_unlock(&progress.lock);
}

void progress_end(void) {
  pthread_mutex_lock(&progress.lock);
  const int was_on = progress.is_on;
  progress.is_on = 0;
  if (was_on) pthread_cond_signal(&progress.changed);
  pthread_mutex_unlock(&progress.lock);
  if (!was_on) return;
  pthread_join(progress.thread, NULL);
  pthread_cond_destroy(&progress.changed);
  if (progress.shown) fputs("\r\x1b[K", stderr);
  progress.shown = 0;
}
