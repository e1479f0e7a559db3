/* SPDX-License-Identifier: Apache-2.0
 *
 * status.c: the thread's error sentence; see status.h. */
#include "core/base/status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/log.h"

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
