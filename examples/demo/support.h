/* SPDX-License-Identifier: Apache-2.0
 *
 * support.h: what both halves of the demo need: failing, the clock, medians. Knows nothing of Quern. */
#ifndef DEMO_SUPPORT_H
#define DEMO_SUPPORT_H

/* Says so on standard error and ends the program with 1. */
_Noreturn void fail(const char *what, const char *why);

/* Seconds of a clock that only goes forward. */
double now(void);

/* How often each way is timed, and the middle one of so many times; puts them in order. */
enum { N_RUNS = 9 };
double median(double times[N_RUNS]);

#endif
