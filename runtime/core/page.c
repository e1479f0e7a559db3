/* page.c: see page.h. */
#include "page.h"

#include <stdarg.h>
#include <stdio.h>

void qn_page_add(qn_page *page, const char *format, ...) {
  va_list arguments;
  size_t at = page->length < page->size ? page->length : page->size - 1;
  va_start(arguments, format);
  int n = vsnprintf(page->text + at, page->size - at, format, arguments);
  va_end(arguments);
  if (n > 0) page->length += (size_t)n;
}
