/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign_names.c: see foreign_names.h. */
#include "lang/foreign_names.h"

#include <string.h>

static const qn_foreign *find(const qn_foreign *rows, int32_t n, const char *name, size_t size) {
  for (int32_t low = 0, high = n; low < high;) {
    const int32_t middle = low + (high - low) / 2;
    int order = strncmp(name, rows[middle].name, size);
    if (order == 0 && rows[middle].name[size]) order = -1;
    if (order == 0) return &rows[middle];
    if (order < 0)
      high = middle;
    else
      low = middle + 1;
  }
  return NULL;
}

const qn_foreign *qn_foreign_function(const char *name, size_t size) {
  return find(qn_foreign_functions, qn_n_foreign_functions, name, size);
}

const qn_foreign *qn_foreign_word(const char *name, size_t size) {
  return find(qn_foreign_words, qn_n_foreign_words, name, size);
}

size_t qn_foreign_module(const char *name, size_t size) {
  for (const char *const *module = qn_foreign_modules; *module; module++) {
    const size_t n = strlen(*module);
    if (n + 1 < size && memcmp(name, *module, n) == 0 && name[n] == '.') return n + 1;
  }
  return 0;
}
