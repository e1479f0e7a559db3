/* SPDX-License-Identifier: Apache-2.0
 *
 * environment.h: the environment variables, read nowhere else: those of generated trees by name, the library's own
 * (jit_environment.h) by qn_environment_get. All of them are ignored in a program that runs with more rights than its user.
 * Nothing is kept: a call reads anew. Knows neither ISA levels nor logs beyond their numbers. */
#ifndef QN_ENVIRONMENT_H
#define QN_ENVIRONMENT_H

#include <stdint.h>

/* A variable's text, or NULL where it is unset or empty. It points into the environment. */
const char *qn_environment_get(const char *name);

/* The text of QUERN_ISA ("generic", "v2", "v3", "v4"), or NULL. */
const char *qn_environment_isa(void);

/* QUERN_NUM_THREADS: how many threads a call uses where the host does not say, 0 if unset or not a number of 1 to 9999. */
int32_t qn_environment_threads(void);

/* QUERN_LOG: the level up to which messages go to standard error: 0 or "error", 1 or "warning", 2 or "info", 3 or
 * "debug"; anything else that is not empty: 2. -1 if unset or empty. */
int qn_environment_log(void);

#endif
