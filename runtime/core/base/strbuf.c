/* SPDX-License-Identifier: Apache-2.0
 *
 * strbuf.c: see strbuf.h. */
#include "core/base/strbuf.h"

#include <stdarg.h>
#include <stdio.h>

void qn_strbuf_add(qn_strbuf *buf, const char *format, ...) {
  va_list arguments;
  size_t at = buf->length < buf->size ? buf->length : buf->size - 1;
  va_start(arguments, format);
  int n = vsnprintf(buf->text + at, buf->size - at, format, arguments);
  va_end(arguments);
  if (n > 0) buf->length += (size_t)n;
}
