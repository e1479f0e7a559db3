/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign_names.c: see foreign_names.h. */
#include "lang/foreign_names.h"

#include <string.h>

#include "core/op/registry.h"

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
  size_t longest = 0;
  for (const char *const *module = qn_foreign_modules; *module; module++) {
    const size_t n = strlen(*module);
    if (n + 1 < size && n >= longest && memcmp(name, *module, n) == 0 && name[n] == '.') longest = n + 1;
  }
  return longest;
}

/* The name without its first `from` bytes and without the last `cut`; 0: it is too long for a name that is known. */
static int cut_name(const char *name, size_t from, size_t cut, char write[QN_ADVICE_BYTES]) {
  const size_t size = strlen(name) - from - cut;
  if (size >= QN_ADVICE_BYTES) return 0;
  memcpy(write, name + from, size);
  write[size] = 0;
  return 1;
}

const char *qn_foreign_sentence(quern_ctx *ctx, const char *name, int (*knows)(quern_ctx *ctx, const char *name), char write[QN_ADVICE_BYTES]) {
  const size_t size = strlen(name), module = qn_foreign_module(name, size);
  const qn_foreign *row = qn_foreign_function(name + module, size - module);
  const char *dot = strrchr(name, '.');
  *write = 0;
  if (row) return row->sentence;
  if (module) {
    if (cut_name(name, module, 0, write) && knows(ctx, write)) return "write ";
  } else if (dot) {
    const size_t method = (size_t)(dot + 1 - name);
    if (cut_name(name, 0, size - method + 1, write) && knows(ctx, write)) { /* of an op, not of an operand */
      if (cut_name(name, 0, 0, write)) write[method - 1] = '_';
      return knows(ctx, write) ? "write " : NULL;
    }
    row = qn_foreign_function(dot + 1, size - method);
    if (!row) row = qn_foreign_word(dot + 1, size - method);
    if (!row && cut_name(name, method, 0, write) && knows(ctx, write)) return "no registered op, and operands have no methods: write ";
  } else if (size > 1 && (name[size - 1] == 'f' || name[size - 1] == 'l') && cut_name(name, 0, 1, write)) { /* math.h's for float, long double */
    if (knows(ctx, write)) return "write ";
    row = qn_foreign_function(write, size - 1);
  }
  *write = 0;
  return row ? row->sentence : NULL;
}

static int has_op(quern_ctx *ctx, const char *name) { return qn_registry_find(ctx, name) != NULL; }

quern_status qn_foreign_refuse(quern_ctx *ctx, const char *name) {
  char write[QN_ADVICE_BYTES];
  const char *sentence = qn_foreign_sentence(ctx, name, has_op, write);
  return sentence ? qn_status_fail(QUERN_E_NOTFOUND, "there is no op %.64s: %s%s", name, sentence, write) : QUERN_OK;
}
