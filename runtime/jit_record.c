/* jit_record.c: see jit_record.h. Files are opened for each write and closed again: it happens once per kernel, and a
 * descriptor kept for the life of a context is one that a daemon which closes all of them would have written to. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* O_CLOEXEC, O_NOFOLLOW */
#endif
#include "jit_record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static qn_digest *place_of(qn_digest *seen, size_t room, qn_digest digest) {
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
    if (digest.high || digest.low) *place_of(seen, room, digest) = digest;
  }
  free(record->seen);
  record->seen = seen;
  record->room = room;
  return 1;
}

/* 1 if it was noted already. Without memory nothing is: then a block may be written twice, which readers bear. */
static int is_noted(qn_record *record, qn_digest digest) {
  if (2 * record->n_seen >= record->room && !grow(record)) return 0;
  qn_digest *place = place_of(record->seen, record->room, digest);
  if (qn_digest_is_equal(*place, digest)) return 1;
  *place = digest;
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

/* 0, or an errno. A file of no bytes gets the header in the same write; should two processes do so at once, readers
 * skip the second one. */
int qn_record_append(const char *path, const char *text, size_t size) {
  struct stat status;
  int failed = 0;
  const int file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
  if (file < 0) return errno;
  if (fstat(file, &status)) {
    failed = errno;
  } else if (!S_ISREG(status.st_mode)) {
    failed = EINVAL;
  } else {
    const size_t head = status.st_size == 0 ? sizeof HEADER - 1 : 0;
    char *all = malloc(head + size + 1);
    if (all) {
      memcpy(all, HEADER, head);
      if (size) memcpy(all + head, text, size);
      const ssize_t written = head + size ? write(file, all, head + size) : 0;
      if (written < 0)
        failed = errno;
      else if ((size_t)written != head + size)
        failed = ENOSPC;
      free(all);
    } else {
      failed = ENOMEM;
    }
  }
  if (close(file) && !failed) failed = errno;
  return failed;
}

void qn_record_write(qn_record *record, qn_record_text *text, const qn_log *log) {
  if (text->path && text->size) {
    const int failed = qn_record_append(text->path, text->text, text->size);
    if (failed && !atomic_exchange(&record->record_failed, 1))
      qn_log_say(log, QN_LOG_WARNING, "the record '%.160s' cannot be written (errno %d)", text->path, failed);
  }
  free(text->path);
  free(text->text);
  *text = (qn_record_text){0};
}

/* ---- The dump ---- */

static int write_file(const char *path, const char *text, size_t size) {
  int failed = 0;
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0666);
  if (file < 0) return errno;
  while (size && !failed) {
    const ssize_t written = write(file, text, size);
    if (written > 0) {
      text += written;
      size -= (size_t)written;
    } else if (written == 0 || errno != EINTR) {
      failed = written ? errno : EIO;
    }
  }
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
