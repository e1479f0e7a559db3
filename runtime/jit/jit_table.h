/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_table.h: a context's kernels as entries of a table: their states, and which of them may be freed. Everything under
 * the lock of jit_queue.h. Knows neither disk nor compilers. */
#ifndef QN_JIT_TABLE_H
#define QN_JIT_TABLE_H

#include "jit/jit_code.h"
#include "jit/jit_queue.h"

typedef enum qn_entry_state {
  QN_ENTRY_WANTED, /* no work has begun */
  QN_ENTRY_MAKING, /* a work is on it, or it is in the queue */
  QN_ENTRY_READY,
  QN_ENTRY_FAILED
} qn_entry_state;

typedef struct qn_entry {
  qn_code code;            /* first: a qn_code * is a qn_entry * */
  struct qn_table *table;  /* NULL: the context is gone */
  struct qn_entry *chain;  /* the next in its bucket, or among the dead */
  struct qn_entry *older, *newer; /* among entries without references */
  int64_t references;      /* of callers, one of a work on it, one of its task in the queue */
  qn_jit_task task;
  qn_digest digest;        /* of the key */
  qn_entry_state state;
  int is_polled;           /* 1: it is not on disk */
  int n_transient;         /* transient failures (base/transient.h) */
  int64_t retry_at;        /* while it is wanted: not to be tried before, in ns of the monotonic clock; 0: at once */
  unsigned frozen_seen;    /* the number of registered tables that do not have it */
  const qn_target *target;
  qn_target_code loaded;   /* the entry's own */
  size_t size;             /* of the entry */
  qn_code_info info;
  char name[sizeof "qj_" + 16];
  int32_t n_in, n_out, rank, capability, is_wide;
  uint8_t dtypes[QN_MAX_OPERANDS];
  char classes[QN_MAX_OPERANDS + 1];
  char *key, *canonical;   /* behind the entry */
  char *op;                /* likewise; NULL: canonical is an expression */
} qn_entry;

typedef struct qn_table {
  struct qn_jit *jit;
  qn_entry **buckets;
  size_t n_buckets, n_entries;
  qn_entry *oldest, *newest; /* of entries without references, by time of release */
  size_t bytes, limit;       /* of entries and machine code */
  size_t n_loaded;           /* entries with code of their own */
  size_t most;               /* entries; 0: any number */
} qn_table;

/* 0: out of memory. */
int qn_table_init(qn_table *table, struct qn_jit *jit, size_t limit);

/* Empties the table: entries without references are added to `dead`, the others are no longer in a table. */
void qn_table_clear(qn_table *table, qn_entry **dead);

/* NULL: it is not there. */
qn_entry *qn_table_find(qn_table *table, qn_digest digest, const char *key);

/* A new entry with one reference, the caller's; NULL for lack of memory. */
qn_entry *qn_table_add(qn_table *table, const qn_code_request *request, qn_digest digest, const char *key);

void qn_entry_ref(qn_entry *entry);

/* Drops a reference. Entries to be freed now, above the limit or without a table, are added to `dead`. */
void qn_entry_unref(qn_entry *entry, qn_entry **dead);

/* The same where nothing can be freed: entries beyond the limit stay until the next qn_entry_unref. The entry has a table. */
void qn_entry_unref_later(qn_entry *entry);

/* Frees the dead. To be called without the lock, since it unmaps memory. */
void qn_entries_free(qn_entry *dead);

/* The states. Reasons are cut at the end of their first line. */
void qn_entry_set_reason(qn_entry *entry, const char *format, ...) __attribute__((format(printf, 2, 3)));
void qn_entry_set_wanted(qn_entry *entry, const char *why);
void qn_entry_set_making(qn_entry *entry, const char *how);
void qn_entry_set_failed(qn_entry *entry, const char *why);
/* Of a failure that may pass: wanted again in 0.1 s; after each further one in twice the time, at most 6.4 s. */
void qn_entry_set_transient(qn_entry *entry, const char *why);
/* Whether a wanted entry may be tried now. */
int qn_entry_is_due(const qn_entry *entry);
/* Sets a kernel that the entry does not own; it does not count for the limit. */
void qn_entry_set_ready(qn_entry *entry, const char *tier, qn_isa isa, qn_kernel *kernel);
/* Gives the loaded code to the entry, and counts its bytes. */
void qn_entry_set_loaded(qn_entry *entry, const char *tier, qn_target_code loaded, qn_entry **dead);

/* Takes the kernel built ahead, if a table registered since the last poll has it. */
void qn_entry_poll_frozen(qn_entry *entry);

#endif
