/* SPDX-License-Identifier: Apache-2.0
 *
 * scratch.h: blocks of memory for data that is too large for the caller's stack: a call's decision, a slice's operands. Each
 * taken block has one owner, also in nested calls and on several threads. The functions have the types of qn_above_table's. */
#ifndef QN_SCRATCH_MEMORY_H
#define QN_SCRATCH_MEMORY_H

#include <stddef.h>

/* Uninitialised, aligned to 64. NULL: it is too much, there is no memory, or very many pieces are taken. What is allocated is kept for
 * the next calls: most often those of the same thread. */
void *qn_scratch_take(size_t bytes);
void qn_scratch_give(void *const *taken);

#endif
