/* SPDX-License-Identifier: Apache-2.0
 *
 * strbuf.h: text under way in memory of the caller's; what does not fit is counted. Knows nothing else. */
#ifndef QN_STRBUF_H
#define QN_STRBUF_H

#include <stddef.h>

/* {text, size, 0} to begin with; text[0] must be 0. */
typedef struct qn_strbuf {
  char *text;
  size_t size, length; /* length goes on counting where the text ends */
} qn_strbuf;

/* No numbers that a locale would write in its own way. */
void qn_strbuf_add(qn_strbuf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
