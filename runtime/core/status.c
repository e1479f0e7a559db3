/* status.c: the thread's error sentence; see status.h. */
#include "status.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "environment.h"

#define SENTENCE_BYTES 1024

static _Thread_local char sentence[SENTENCE_BYTES];

quern_status qn_status_fail(quern_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  qn_status_vfail("", format, args);
  va_end(args);
  return status;
}

void qn_status_vfail(const char *prefix, const char *format, va_list args) {
  const int kept_errno = errno;
  char text[SENTENCE_BYTES]; /* what is formatted may be the sentence itself */
  size_t n = strlen(prefix);
  if (n > SENTENCE_BYTES - 1) n = SENTENCE_BYTES - 1;
  memcpy(text, prefix, n);
  text[n] = 0;
  vsnprintf(text + n, sizeof text - n, format, args);
  memcpy(sentence, text, strlen(text) + 1);
  errno = kept_errno;
}

const char *quern_last_error(void) {
  return sentence;
}

void quern_set_last_error(const char *text) {
  size_t n = 0;
  if (!text) text = "";
  while (n < SENTENCE_BYTES - 1 && text[n]) n++;
  memmove(sentence, text, n);
  sentence[n] = 0;
}

void qn_status_bug(const char *condition, const char *file, int line) {
  qn_status_fail(QUERN_E_ARGUMENT, "bug: %s:%d: %s", file, line, condition);
  if (qn_environment_log() >= 0) fprintf(stderr, "%s\n", sentence);
  abort();
}
