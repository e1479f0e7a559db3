/* page.h: a text of lines under way, in memory of the caller's: what does not fit is counted. Knows nothing else. */
#ifndef QN_PAGE_H
#define QN_PAGE_H

#include <stddef.h>

/* {text, size, 0} to begin with; text[0] must be 0. */
typedef struct qn_page {
  char *text;
  size_t size, length; /* length goes on counting where the text ends */
} qn_page;

/* No numbers that a locale would write in its own way. */
void qn_page_add(qn_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
