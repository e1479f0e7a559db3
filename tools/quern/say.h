/* SPDX-License-Identifier: Apache-2.0
 *
 * say.h: what the program says besides its results: complaints, and progress while long work goes on. Owns standard
 * error. Must not know commands or files. */
#ifndef QUERN_PROGRAM_SAY_H
#define QUERN_PROGRAM_SAY_H

#include <stdint.h>

/* The program's exit statuses. */
#define STATUS_GOOD 0
#define STATUS_FAILED 1 /* what was asked for could not be done */
#define STATUS_MISUSE 2 /* the command line is not one of ours */

#define SAY_PRINTF(text, rest) __attribute__((format(printf, text, rest)))

/* Prints "quern: ..." and a line's end; returns STATUS_FAILED. */
int complain(const char *format, ...) SAY_PRINTF(1, 2);

/* The same with what the library said last. */
int complain_library(void);

/* The same with `usage` behind it; returns STATUS_MISUSE. */
int misuse(const char *usage, const char *format, ...) SAY_PRINTF(2, 3);

/* STATUS_GOOD if all that was printed on standard output has got there. */
int finish_output(void);

/* ---- Progress: one line that is written over, from two seconds on, and only if standard error is a terminal ---- */

/* Begins. A thread prints, so that work which says nothing for long is shown too. */
void progress_begin(void);

/* Before it begins: "auto" as above; "always": at once, and where there is no terminal a line each second; "never". 0: none of these. */
int progress_choose(const char *when);

/* What is being done from now on: two static texts, "reading" "x.npy"; `done` of `total` when total is not 0. */
void progress_set(const char *verb, const char *name, int64_t done, int64_t total);

/* What is done from now on is a part of more: `before` of `all` is done already. all 0: it is not. */
void progress_part(int64_t before, int64_t all);

/* Ends; the line is wiped. Complaints end it by themselves. */
void progress_end(void);

#endif
