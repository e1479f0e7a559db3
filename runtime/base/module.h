/* SPDX-License-Identifier: Apache-2.0
 *
 * module.h: the library's modules: where they lie, and opening them. Never from the working directory. */
#ifndef QN_MODULE_H
#define QN_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/strbuf.h"

/* The path of a module ("quern-gen.so") that exists: in QUERN_MODULE_DIR, in quern/ beside this library, beside it, or where
 * it is installed; the first of these. 0: there is none; `path` then holds a sentence that says where it was looked for. */
int qn_module_path(const char *name, char *path, size_t size);

/* Whether folder/inner/name is a file: then its path is in `path`. inner: "", or it begins with a slash. */
int qn_module_is_there(const char *folder, const char *inner, const char *name, char *path, size_t size);

/* Opens a module: local to itself and, where no sanitizer is in the process, preferring its own libraries to whatever the
 * host has. Its interface begins with { uint32_t abi; const char *version; }, which must be these. It stays open for
 * good. NULL: `why` says what is wrong. */
const void *qn_module_open(const char *name, const char *symbol, uint32_t abi, const char *version, char *why, size_t why_size);

/* Adds a line to a description: what state a module is in, and where its file is or was looked for. */
void qn_module_describe(qn_strbuf *buf, const char *key, const char *file, const char *state);

#endif
