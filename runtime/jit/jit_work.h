/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_work.h: the steps that make a kernel: read from disk, generate, compile, publish, store. Owns the list of works under
 * way, for which a context that ends waits. Knows no modes and no tasks.
 *
 * To be called with the lock of jit_queue.h, which is released for everything that takes time. */
#ifndef QN_JIT_WORK_H
#define QN_JIT_WORK_H

#include "jit/jit_cache.h"
#include "jit/jit_record.h"
#include "jit/jit_table.h"
#include "toolchain/generator.h"

typedef struct qn_jit {
  qn_table table;
  int32_t mode;
  int is_dying;
  int64_t references; /* the owner's, and one for each work */
  qn_generator *generator;
  qn_jit_cache *cache;
  char *cc; /* the C compiler that the host named; NULL: none */
  qn_log log;
  qn_record record;
  int32_t compile_ms; /* for one compile; 0: the compiler's own limit */
  int n_slow; /* polls of the disk cache that took long */
  const char *unsaid; /* why the background thread could not be made; logged when the lock is free */
  int said_unsaid;
  atomic_int is_mode_unknown; /* QUERN_JIT names no mode, and that has not been logged */
  atomic_int said_why;        /* logged: nothing can be compiled here */
  atomic_int said_worse;      /* logged: the C compiler that the host named failed */
} qn_jit;

/* Reads the disk cache on the caller's thread, unless that was done before, or the disk is slow. The entry is in
 * state MAKING, and stays in it if nothing is found. */
void qn_work_poll_disk(qn_entry *entry);

/* All steps, on the background thread. Takes over one of the entry's references. */
void qn_work_run(qn_entry *entry);

/* Asks the compilers of the context's works to end, where they can; of a context that ends, those of large kernels: the other ones
 * are done soon, and kept on disk. */
void qn_work_cancel(const qn_jit *jit);

/* Whether a work is on the entry; *is_mine: the work is of this thread. */
int qn_work_has(const qn_entry *entry, int *is_mine);

/* Whether a work of another thread uses the context's generator or log. (A log function may itself release the context.) */
int qn_work_uses(const qn_jit *jit);

/* Frees a context without references. To be called without the lock. */
void qn_work_free(qn_jit *jit);

#endif
