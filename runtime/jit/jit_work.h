/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_work.h: a kernel's way from wanted to made: read from disk, generated, compiled, handed over, kept. Owns the list of works
 * under way, for which a context that ends waits. Knows no modes and no jobs.
 *
 * All of it with the lock of jit_queue.h, which is given up for whatever takes time. */
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
  char *cc; /* NULL: not opted in */
  qn_log log;
  qn_record record;
  int n_slow; /* polls of the disk cache that took long */
  const char *unsaid; /* what keeps the background thread from its jobs; said when the lock is free */
  int said_unsaid;
  atomic_int is_mode_unknown; /* QUERN_JIT says no mode, and that has not been said */
  atomic_int said_why;        /* that nothing can be compiled here */
  atomic_int said_worse;      /* that the compiler which the host named failed */
} qn_jit;

/* Reads from the disk cache, on the caller's thread, unless that was done or takes long here. The entry is in
 * state MAKING, and stays in it where nothing was found. */
void qn_work_poll_disk(qn_entry *entry);

/* All of the way, on the background thread. Takes one of the entry's references. */
void qn_work_run(qn_entry *entry);

/* Whether a work is on the entry; *is_mine: of this very thread. */
int qn_work_has(const qn_entry *entry, int *is_mine);

/* Whether another thread uses what a context lends. This one may be at it as well: a log may release the context. */
int qn_work_uses(const qn_jit *jit);

/* What is left of a context without references; without the lock. */
void qn_work_free(qn_jit *jit);

#endif
