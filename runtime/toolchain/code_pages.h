/* SPDX-License-Identifier: Apache-2.0
 *
 * code_pages.h: executable memory for kernels. Many kernels share a few mappings of the process, of which a system grants some
 * 65,000. Knows neither objects nor kernels. */
#ifndef QN_CODE_PAGES_H
#define QN_CODE_PAGES_H

#include <stddef.h>

#define QN_CODE_PAGE 4096u
#define QN_CODE_TRAP 0xcc /* int3: what is executable and no kernel's */

/* Pages for one kernel: its text, and behind it at less than 2 GiB its data. */
typedef struct qn_code_pages {
  unsigned char *text, *data;
  size_t text_size, data_size; /* multiples of QN_CODE_PAGE */
  struct qn_code_arena *arena; /* NULL: a mapping of their own */
} qn_code_pages;

/* Pages to write, with anything in them; text_size > 0. 0: refused, with errno. */
int qn_code_pages_take(size_t text_size, size_t data_size, qn_code_pages *pages);

/* Makes the text executable and the data read-only; neither can be written any more. 0: refused, with errno. */
int qn_code_pages_seal(const qn_code_pages *pages);

/* Gives pages back, sealed or not. */
void qn_code_pages_give(const qn_code_pages *pages);

#endif
