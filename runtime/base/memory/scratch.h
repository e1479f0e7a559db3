/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h: memory for what is too large for the caller's stack: a call's decision, a slice's operands. Calls within calls, and
 * calls on many threads, have pieces of their own. Knows nothing of what they hold. As qn_above_table has the functions. */
#ifndef QN_SCRATCH_MEMORY_H
#define QN_SCRATCH_MEMORY_H

#include <stddef.h>

/* Uninitialised, aligned to 64. NULL: it is too much, there is no memory, or very many pieces are taken. What is allocated is kept for
 * the next calls: most often those of the same thread. */
void *qn_scratch_take(size_t bytes);
void qn_scratch_give(void *const *taken);

#endif
