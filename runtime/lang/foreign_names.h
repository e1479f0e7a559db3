/* SPDX-License-Identifier: Apache-2.0
 *
 * foreign_names.h: names from other languages and libraries, and the hint for each. The tables are generated
 * (primitive_table.c) from gen/front/foreign.lua. */
#ifndef QN_FOREIGN_NAMES_H
#define QN_FOREIGN_NAMES_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/kernel_abi.h"

typedef struct qn_foreign {
  const char *name, *sentence;
  uint8_t is_refused; /* it cannot be an input's name */
} qn_foreign;

/* Each sorted by name. Words are also looked up as functions. */
extern const qn_foreign qn_foreign_functions[], qn_foreign_words[];
extern const int32_t qn_n_foreign_functions, qn_n_foreign_words;

/* Of modules: NAME in NAME.FUNCTION. Sorted, ends with NULL. */
extern const char *const qn_foreign_modules[];

/* NULL: there is none of that name. */
const qn_foreign *qn_foreign_function(const char *name, size_t size);
const qn_foreign *qn_foreign_word(const char *name, size_t size);

/* The bytes of "np." in "np.sin"; 0: the name does not begin with a module's. */
size_t qn_foreign_module(const char *name, size_t size);

#define QN_ADVICE_BYTES 80

/* What is said of an unknown function: a sentence, to be followed by the text in `write`, which is "" or the name here; NULL: nothing.
 * knows: whether there is a function of a name. */
const char *qn_foreign_sentence(quern_ctx *ctx, const char *name, int (*knows)(quern_ctx *ctx, const char *name), char write[QN_ADVICE_BYTES]);

/* NOTFOUND for a name that other libraries have; else OK. */
quern_status qn_foreign_refuse(quern_ctx *ctx, const char *name);

#endif
