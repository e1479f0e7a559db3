/* SPDX-License-Identifier: Apache-2.0
 *
 * jit.h: finds or makes the code of a wanted kernel: built ahead, in memory, on disk, or compiled, now or in the
 * background. Knows no tensors and no target by name; a kernel is identified by its key. */
#ifndef QN_JIT_H
#define QN_JIT_H

#include "jit/jit_cache.h"
#include "jit/jit_code.h"
#include "toolchain/generator.h"

/* A context's compiled kernels and the means to make them. */
typedef struct qn_jit qn_jit;

/* Uses of the options (NULL: the defaults): jit, cache_dir, kernel_memory_limit, cc, log, host. `generator` is borrowed.
 * NULL: out of memory. Opens nothing, starts no thread, calls no log, takes no lock. Reads QUERN_JIT, QUERN_CC,
 * QUERN_RECORD and QUERN_DUMP. */
qn_jit *qn_jit_create(const quern_options *options, qn_generator *generator);

/* Drops tasks that have not begun. A compile under way goes on by itself, and its result goes to the disk cache only; a large one by NVRTC is ended. Waits
 * (ms) for works that use the context's generator or log; afterwards neither is called any more. Code that is still held
 * stays valid until its release. May be called from the log function. */
void qn_jit_destroy(qn_jit *jit);

/* Drops tasks that have not begun, and ends the compiles under way that can be ended: they are wanted again by the next call. */
void qn_jit_cancel(qn_jit *jit);

/* QUERN_JIT_OFF, SYNC or ASYNC. */
int32_t qn_jit_mode(const qn_jit *jit);

/* The disk cache; valid as long as the jit. In mode off it exists, but is not read. NULL: out of memory. */
qn_jit_cache *qn_jit_disk(const qn_jit *jit);

/* The code of that kernel, retained. Mode off: only code built ahead ("frozen"). sync: compiled on return, if possible.
 * async: being compiled. NULL: out of memory. One compile per kernel, for any number of threads. A kernel that failed is not
 * tried again as long as its entry is in memory, unless the failure may pass (base/transient.h): then a later qn_code_ask does. quern_last_error and errno are kept. */
qn_code *qn_jit_acquire(qn_jit *jit, const qn_code_request *request);

/* Released code stays in memory up to the limit; the least recently released is freed first, held code never. NULL is
 * allowed. */
void qn_code_release(qn_code *code);

/* Waits until the code is made or has failed, in any mode; raises its task's priority. Does nothing on the background thread,
 * which would wait for itself. quern_last_error and errno are kept. */
void qn_code_wait(qn_code *code);

/* For explain. */
void qn_code_describe(const qn_code *code, qn_code_info *info);

/* Appends the kernels in memory, and those wanted from now on, to the file at `path`, each once (NULL: ends recording); see
 * jit_record.c. Errors: IO, MEMORY. */
quern_status qn_jit_record(qn_jit *jit, const char *path);

/* Requests again code that a failure which may pass has prevented, and in a forked child what the parent's background thread would
 * have made. For holders of such code. */
void qn_code_want(qn_code *code);
static inline void qn_code_ask(qn_code *code) {
  if (atomic_load_explicit(&code->dropped, memory_order_relaxed)) qn_code_want(code);
}

#endif
