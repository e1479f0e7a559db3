/* SPDX-License-Identifier: Apache-2.0
 *
 * log.c: see log.h. */
#include "core/base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/base/environment.h"

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
