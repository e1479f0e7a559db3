/* SPDX-License-Identifier: Apache-2.0
 *
 * progress.h: the progress of a program that measures for minutes, on standard error: one line that is written over if that is a
 * terminal, else several lines. Knows nothing of what is measured. */
#ifndef QUERN_MEASURE_PROGRESS_H
#define QUERN_MEASURE_PROGRESS_H

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static enum { PROGRESS_NONE, PROGRESS_BAR, PROGRESS_LINES } progress_form;

/* when: "always", "never", else only on a terminal. */
static inline void progress_begin(const char *when) {
  const int is_terminal = isatty(STDERR_FILENO);
  progress_form = strcmp(when, "never") == 0   ? PROGRESS_NONE
                  : is_terminal                ? PROGRESS_BAR
                  : strcmp(when, "always") == 0 ? PROGRESS_LINES
                                               : PROGRESS_NONE;
}

/* What is measured from now on, as the done-th of `total`. */
static inline void progress_show(const char *what, const char *dtype, int done, int total) {
  enum { BAR = 20 };
  char bar[BAR + 1];
  if (progress_form == PROGRESS_NONE) return;
  for (int k = 0; k < BAR; k++) bar[k] = total > 0 && k < done * BAR / total ? '#' : '.';
  bar[BAR] = 0;
  fprintf(stderr, "%smeasuring %.60s %s, [%s] %d of %d%s", progress_form == PROGRESS_BAR ? "\r\x1b[K" : "", what, dtype, bar, done, total,
          progress_form == PROGRESS_BAR ? "" : "\n");
  fflush(stderr);
}

/* Before anything else is printed, and at the end. */
static inline void progress_wipe(void) {
  if (progress_form != PROGRESS_BAR) return;
  fputs("\r\x1b[K", stderr);
  fflush(stderr);
}

#endif
