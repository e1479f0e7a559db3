/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c: the thread's error sentence, log messages; see status.h. */
#include "core/base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/environment.h"

static _Thread_local char sentence[QN_STATUS_BYTES];

quern_status qn_status_fail(quern_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  qn_status_vfail("", format, args);
  va_end(args);
  return status;
}

void qn_status_vfail(const char *prefix, const char *format, va_list args) {
  const int kept_errno = errno;
  char text[QN_STATUS_BYTES]; /* an argument may point to the sentence itself */
  size_t n = strlen(prefix);
  if (n > QN_STATUS_BYTES - 1) n = QN_STATUS_BYTES - 1;
  memcpy(text, prefix, n);
  text[n] = 0;
  vsnprintf(text + n, sizeof text - n, format, args);
  memcpy(sentence, text, strlen(text) + 1);
  errno = kept_errno;
}

const char *quern_last_error(void) { return sentence; }

void quern_set_last_error(const char *text) {
  size_t n = 0;
  if (!text) text = "";
  while (n < QN_STATUS_BYTES - 1 && text[n]) n++;
  memmove(sentence, text, n);
  sentence[n] = 0;
}

void qn_status_keep(qn_sentence *kept) { memcpy(kept->text, sentence, strlen(sentence) + 1); }

void qn_status_restore(const qn_sentence *kept) { quern_set_last_error(kept->text); }

void qn_status_bug(const char *condition, const char *file, int line) {
  qn_status_fail(QUERN_E_ARGUMENT, "bug: %s:%d: %s", file, line, condition);
  qn_log_say(NULL, QN_LOG_ERROR, "%s", sentence);
  abort();
}

void qn_log_say(const qn_log *log, qn_log_level level, const char *format, ...) {
  const int kept_errno = errno, is_host = log && log->write;
  char text[256];
  if (!is_host && (int)level > qn_environment_log()) return;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  if (is_host)
    log->write(log->host, (int)level, text);
  else
    fprintf(stderr, "%s\n", text);
  errno = kept_errno;
}

void qn_strbuf_add(qn_strbuf *buf, const char *format, ...) {
  va_list arguments;
  size_t at = buf->length < buf->size ? buf->length : buf->size - 1;
  va_start(arguments, format);
  int n = vsnprintf(buf->text + at, buf->size - at, format, arguments);
  va_end(arguments);
  if (n > 0) buf->length += (size_t)n;
}

/* ---- Guesses, as of gen/base/source.lua ---- */

#define LONGEST_GUESS 63

static char lower_letter(char c) { return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c; }
static int is_letter_of(const char *a, int i, const char *b, int j) { return lower_letter(a[i - 1]) == lower_letter(b[j - 1]); } /* from 1 */

/* How many letters to insert, remove, change or exchange with the next one make `a` of `b`. Both are at most LONGEST_GUESS long. */
static int edit_distance(const char *a, const char *b) {
  int rows[3][LONGEST_GUESS + 1], n = (int)strlen(b), i = 0;
  for (int j = 0; j <= n; j++) rows[0][j] = j;
  while (a[i++]) {
    const int *last = rows[(i + 2) % 3], *before = rows[(i + 1) % 3];
    int *row = rows[i % 3];
    row[0] = i;
    for (int j = 1; j <= n; j++) {
      row[j] = last[j - 1] + !is_letter_of(a, i, b, j);
      if (last[j] + 1 < row[j]) row[j] = last[j] + 1;
      if (row[j - 1] + 1 < row[j]) row[j] = row[j - 1] + 1;
      const int is_exchanged = i > 1 && j > 1 && is_letter_of(a, i, b, j - 1) && is_letter_of(a, i - 1, b, j);
      if (is_exchanged && before[j - 2] + 1 < row[j]) row[j] = before[j - 2] + 1;
    }
  }
  return rows[(i - 1) % 3][n];
}

qn_guess qn_guess_begin(const char *wanted) {
  const size_t length = strlen(wanted);
  /* A name is near if at most a third of the letters, rounded up, differ. */
  return (qn_guess){.wanted = wanted, .distance = length <= LONGEST_GUESS ? (int)(length + 2) / 3 + 1 : 0};
}

void qn_guess_offer(qn_guess *guess, const char *name) {
  if (guess->distance == 0 || strlen(name) > LONGEST_GUESS) return;
  const int distance = edit_distance(guess->wanted, name);
  if (distance >= guess->distance) return;
  guess->distance = distance;
  guess->nearest = name;
}
