/* SPDX-License-Identifier: Apache-2.0
 *
 * thread_memory.h: the thread-local memory of libraries. */
#ifndef QN_THREAD_MEMORY_H
#define QN_THREAD_MEMORY_H

#include <stddef.h>

/* Whether so many bytes can be had now. If so, the loader allocates the calling thread's copies of the thread-local variables of all
 * libraries: it would do so at a variable's first use, and end the process where there is no memory then. */
int qn_thread_memory_touch(size_t reserve);

#endif
