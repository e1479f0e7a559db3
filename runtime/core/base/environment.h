/* SPDX-License-Identifier: Apache-2.0
 *
 * environment.h: the environment variables; no other file reads them. Those of generated trees have functions of their own; the
 * library's others (jit_environment.h) use qn_environment_get. All are ignored in a setuid program. Nothing is cached: each
 * call reads the environment. Knows neither ISA levels nor logs beyond their numbers. */
#ifndef QN_ENVIRONMENT_H
#define QN_ENVIRONMENT_H

#include <stdint.h>

/* A public name (of a function, an environment variable, a kernel) as a string; in a generated tree with the tree's prefix. */
#define QN_SPELLED(name) #name

/* A variable's text, or NULL where it is unset or empty. It points into the environment. */
const char *qn_environment_get(const char *name);

/* The number of 0 to 9999 that a variable is; `otherwise` if it is none, or unset. */
int32_t qn_environment_number(const char *name, int32_t otherwise);

/* QUERN_LOG: the level up to which messages go to standard error: 0 or "error", 1 or "warning", 2 or "info", 3 or
 * "debug"; anything else that is not empty: 2. -1 if unset or empty. */
int qn_environment_log(void);

#endif
