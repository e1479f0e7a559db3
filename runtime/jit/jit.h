/* SPDX-License-Identifier: Apache-2.0
 *
 * jit.h: from a kernel that is wanted to code that computes it: built ahead, in memory, on disk, or compiled, now or in the
 * background. Knows no tensors and no target by name; a kernel's key says what it computes. */
#ifndef QN_JIT_H
#define QN_JIT_H

#include "jit/jit_cache.h"
#include "jit/jit_code.h"
#include "toolchain/generator.h"

/* A context's compiled kernels, and how it comes by them. */
typedef struct qn_jit qn_jit;

/* Of the options (NULL: the defaults): jit, cache_dir, kernel_memory_limit, cc, log, host. `generator` is borrowed.
 * NULL for lack of memory. Opens nothing, starts no thread, calls no log, takes no lock. Reads QUERN_JIT, QUERN_CC,
 * QUERN_RECORD and QUERN_DUMP. */
qn_jit *qn_jit_create(const quern_options *options, qn_generator *generator);

/* Jobs that have not begun are dropped. A compile that is under way finishes by itself, and its result goes to the disk
 * cache and nowhere else; waited for is only what uses the context: the generator, its log (ms). After it neither the
 * generator nor the log is called any more. Code that is still held stays, and is released as ever. A log that is called
 * may release the context. */
void qn_jit_destroy(qn_jit *jit);

/* QUERN_JIT_OFF, SYNC or ASYNC. */
int32_t qn_jit_mode(const qn_jit *jit);

/* The disk cache, in mode off too (it is not read then); NULL for lack of memory. As long as the jit
 * lives. */
qn_jit_cache *qn_jit_disk(const qn_jit *jit);

/* The code of that kernel, retained. Mode off: only built ahead ("frozen"). sync: compiled when this returns, if it can
 * be. async: being compiled. NULL: for lack of memory. One compile per kernel, however many threads ask. A kernel that
 * could not be made is not tried again as long as its code is in memory. quern_last_error and errno are kept. */
qn_code *qn_jit_acquire(qn_jit *jit, const qn_code_request *request);

/* The code stays in memory as long as the limit allows: what was released first goes first, what is held never. NULL is
 * allowed. */
void qn_code_release(qn_code *code);

/* Until the code is made or cannot be, whatever the mode; what others do not wait for is done after it. The background thread,
 * which would wait for itself, does not. quern_last_error and errno are kept. */
void qn_code_wait(qn_code *code);

/* For explain. */
void qn_code_describe(const qn_code *code, qn_code_info *info);

/* Appends to the file at `path` (NULL: to none from now on) the kernels in memory and those wanted from now on, each
 * once: see jit_record.c. Errors: IO, MEMORY. */
quern_status qn_jit_record(qn_jit *jit, const char *path);

/* For holders of code without a kernel: in a forked child, asks again for what the parent's thread would have compiled. */
void qn_code_want(qn_code *code);
static inline void qn_code_ask(qn_code *code) {
  if (atomic_load_explicit(&code->dropped, memory_order_relaxed)) qn_code_want(code);
}

#endif
