/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_record.h: what run-time compilation writes for people: the list of kernels that were wanted (QUERN_RECORD),
 * sources and compiler messages (QUERN_DUMP). Knows kernels by name and key text only. Trouble is said once and fails
 * nothing. */
#ifndef QN_JIT_RECORD_H
#define QN_JIT_RECORD_H

#include <stdatomic.h>
#include <stddef.h>

#include "core/base/log.h"
#include "base/digest.h"

/* A context's; all zero: nothing is written. */
typedef struct qn_record {
  char *path; /* of the record, absolute; NULL: none */
  char *dump; /* the folder for sources and messages, absolute; NULL: none */
  qn_digest *seen; /* what was recorded: a hash table of `room` places, a power of two; {0, 0}: empty */
  size_t n_seen, room;
  atomic_int record_failed, dump_failed; /* said already */
} qn_record;

/* A path that means the same after a change of the working directory; malloc'ed, NULL for lack of memory. */
char *qn_record_absolute(const char *path);

void qn_record_free(qn_record *record);

/* Records into another file from now on, as if that were empty; takes the path, NULL: none. */
void qn_record_set(qn_record *record, char *path);

/* Blocks on their way to a file. */
typedef struct qn_record_text {
  char *path, *text; /* malloc'ed; text NULL: nothing to write */
  size_t size, room;
} qn_record_text;

/* Adds the block of a kernel that was not recorded yet. One caller at a time; touches no file. */
void qn_record_add(qn_record *record, qn_record_text *text, qn_digest digest, const char *name, const char *key);

/* Appends the text to its file, in one write, below the header that an empty file gets; what is no record is left as it
 * is. Else not 0, and `why` is a sentence. */
int qn_record_append(const char *path, const char *text, size_t size, char *why, size_t why_size);

/* The same for what was added; frees it. */
void qn_record_write(qn_record *record, qn_record_text *text, const qn_log *log);

/* Writes a file NAME SUFFIX into the dump folder, if there is one. */
void qn_record_dump(qn_record *record, const char *name, const char *suffix, const char *text, size_t size,
                    const qn_log *log);

#endif
