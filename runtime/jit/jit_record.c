/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_record.c: see jit_record.h. Files are opened for each write, once per kernel, and closed again: no descriptor is kept,
 * since a daemon may close all descriptors and reuse their numbers. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_CLOEXEC, O_NOFOLLOW */
#endif
#include "jit/jit_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/write_all.h"

#define HEADER "quern-record 1\n"

char *qn_record_absolute(const char *path) {
  if (path[0] == '/') return strdup(path);
  char *folder = getcwd(NULL, 0);
  if (!folder) return strdup(path);
  const size_t n = strlen(folder), m = strlen(path);
  char *joined = malloc(n + m + 2);
  if (joined) {
    memcpy(joined, folder, n);
    joined[n] = '/';
    memcpy(joined + n + 1, path, m + 1);
  }
  free(folder);
  return joined;
}

void qn_record_free(qn_record *record) {
  free(record->path);
  free(record->dump);
  free(record->seen);
}

void qn_record_set(qn_record *record, char *path) {
  free(record->path);
  free(record->seen);
  record->path = path;
  record->seen = NULL;
  record->n_seen = record->room = 0;
  atomic_store(&record->record_failed, 0);
}

/* ---- The record ---- */

static qn_digest *entry_of(qn_digest *seen, size_t room, qn_digest digest) {
  size_t i = (size_t)digest.low & (room - 1);
  while ((seen[i].high || seen[i].low) && !qn_digest_is_equal(seen[i], digest)) i = (i + 1) & (room - 1);
  return &seen[i];
}

/* Twice the room; 0 for lack of memory. */
static int grow(qn_record *record) {
  const size_t room = record->room ? 2 * record->room : 64;
  qn_digest *seen = calloc(room, sizeof *seen);
  if (!seen) return 0;
  for (size_t i = 0; i < record->room; i++) {
    const qn_digest digest = record->seen[i];
    if (digest.high || digest.low) *entry_of(seen, room, digest) = digest;
  }
  free(record->seen);
  record->seen = seen;
  record->room = room;
  return 1;
}

/* 1: it was noted before. Out of memory it is not noted: then a block may be written twice, which readers accept. */
static int is_noted(qn_record *record, qn_digest digest) {
  if (2 * record->n_seen >= record->room && !grow(record)) return 0;
  qn_digest *entry = entry_of(record->seen, record->room, digest);
  if (qn_digest_is_equal(*entry, digest)) return 1;
  *entry = digest;
  record->n_seen++;
  return 0;
}

/* Room for `more` bytes; 0 for lack of memory. */
static int make_room(qn_record_text *text, size_t more) {
  if (text->room - text->size >= more) return 1;
  const size_t room = 2 * text->room + more;
  char *grown = realloc(text->text, room);
  if (!grown) return 0;
  text->text = grown;
  text->room = room;
  return 1;
}

void qn_record_add(qn_record *record, qn_record_text *text, qn_digest digest, const char *name, const char *key) {
  if (!record->path || is_noted(record, digest)) return;
  if (!text->path) text->path = strdup(record->path);
  const size_t most = sizeof "kernel \nend\n" + strlen(name) + strlen(key);
  if (!text->path || !make_room(text, most)) return;
  text->size += (size_t)snprintf(text->text + text->size, most, "kernel %s\n%send\n", name, key);
}

/* 0: the file is not empty and does not begin with a record's header. */
static int is_record(int file, off_t size) {
  char begin[sizeof HEADER - 1];
  return size == 0 || (pread(file, begin, sizeof begin, 0) == (ssize_t)sizeof begin && !memcmp(begin, HEADER, sizeof begin));
}

/* Returns 0 or an errno. An empty file gets the header in the same write; if two processes write it at once, readers
 * skip the second header. */
static int append(int file, const char *text, size_t size) {
  struct stat status;
  if (fstat(file, &status)) return errno;
  if (!S_ISREG(status.st_mode) || !is_record(file, status.st_size)) return EINVAL;
  const size_t head = status.st_size == 0 ? sizeof HEADER - 1 : 0;
  char *all = malloc(head + size + 1);
  if (!all) return ENOMEM;
  memcpy(all, HEADER, head);
  if (size) memcpy(all + head, text, size);
  const int failed = qn_write_all(file, all, head + size);
  free(all);
  return failed;
}

int qn_record_append(const char *path, const char *text, size_t size, char *why, size_t why_size) {
  const int file = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  int failed = file < 0 ? errno : append(file, text, size);
  if (file >= 0 && close(file) && !failed) failed = errno;
  const int most = (int)why_size - 64; /* bytes shown of a long path */
  if (failed == EINVAL)
    snprintf(why, why_size, "'%.*s' is something else than a record, and is left as it is", most, path);
  else if (failed)
    snprintf(why, why_size, "the record '%.*s' cannot be written (errno %d)", most, path, failed);
  return failed;
}

void qn_record_write(qn_record *record, qn_record_text *text, const qn_log *log) {
  char why[256];
  if (text->path && text->size && qn_record_append(text->path, text->text, text->size, why, sizeof why) &&
      !atomic_exchange(&record->record_failed, 1))
    qn_log_say(log, QN_LOG_WARNING, "%s", why);
  free(text->path);
  free(text->text);
  *text = (qn_record_text){0};
}

/* ---- The dump ---- */

static int write_file(const char *path, const char *text, size_t size) {
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0666);
  if (file < 0) return errno;
  int failed = qn_write_all(file, text, size);
  if (close(file) && !failed) failed = errno;
  return failed;
}

void qn_record_dump(qn_record *record, const char *name, const char *suffix, const char *text, size_t size,
                    const qn_log *log) {
  if (!record->dump) return;
  const size_t most = strlen(record->dump) + strlen(name) + strlen(suffix) + 2;
  char *path = malloc(most);
  int failed = ENOMEM;
  if (path) {
    snprintf(path, most, "%s/%s%s", record->dump, name, suffix);
    failed = write_file(path, text, size);
  }
  if (failed && !atomic_exchange(&record->dump_failed, 1))
    qn_log_say(log, QN_LOG_WARNING, "QUERN_DUMP: nothing can be written to '%.160s' (errno %d)", record->dump, failed);
  free(path);
}
