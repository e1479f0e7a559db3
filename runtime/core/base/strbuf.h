/* SPDX-License-Identifier: Apache-2.0
 *
 * strbuf.h: text appended to a buffer of the caller's; text that does not fit is cut, but counted. */
#ifndef QN_STRBUF_H
#define QN_STRBUF_H

#include <stddef.h>

/* Initialised to {text, size, 0}, with text[0] = 0. */
typedef struct qn_strbuf {
  char *text;
  size_t size, length; /* length: of all text appended, also of that cut */
} qn_strbuf;

/* Appends formatted text. Not for numbers that depend on the locale (%f, %'d). */
void qn_strbuf_add(qn_strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
