/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_record.h: files that run-time compilation writes for people: the list of wanted kernels (QUERN_RECORD), sources and
 * compiler messages (QUERN_DUMP). Knows kernels by name and key text only. Errors are logged once and make no call
 * fail. */
#ifndef QN_JIT_RECORD_H
#define QN_JIT_RECORD_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/base/status.h"
#include "base/digest.h"

/* A context's record and dump; all zero: nothing is written. */
typedef struct qn_record {
  char *path; /* of the record, absolute; NULL: none */
  char *dump; /* the folder for sources and messages, absolute; NULL: none */
  qn_digest *seen; /* digests of recorded keys: a hash table of `room` entries, a power of two; {0, 0}: free */
  size_t n_seen, room;
  atomic_int record_failed, dump_failed; /* logged already */
} qn_record;

/* The absolute form of a path; malloc'ed, NULL for lack of memory. */
char *qn_record_absolute(const char *path);

void qn_record_free(qn_record *record);

/* Switches to another file (NULL: none) and forgets which kernels were recorded; takes ownership of the path. */
void qn_record_set(qn_record *record, char *path);

/* Blocks to be written to a file. */
typedef struct qn_record_text {
  char *path, *text; /* malloc'ed; text NULL: nothing to write */
  size_t size, room;
} qn_record_text;

/* Adds the block of a kernel that was not recorded yet. One caller at a time; touches no file. */
void qn_record_add(qn_record *record, qn_record_text *text, qn_digest digest, const char *name, const char *key);

/* Appends the text to its file in one write; an empty file gets the header first, a file that is no record is left
 * unchanged. Returns 0, or an errno, and `why` is a sentence. */
int qn_record_append(const char *path, const char *text, size_t size, char *why, size_t why_size);

/* The same for the blocks that were added; frees them. */
void qn_record_write(qn_record *record, qn_record_text *text, const qn_log *log);

/* Writes a file named NAME SUFFIX into the dump folder, if there is one. */
void qn_record_dump(qn_record *record, const char *name, const char *suffix, const char *text, size_t size,
                    const qn_log *log);

#endif
