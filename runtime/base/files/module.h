/* SPDX-License-Identifier: Apache-2.0
 *
 * module.h: the library's modules: where they lie, and opening them. Never from the working directory. */
#ifndef QN_MODULE_H
#define QN_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "core/base/status.h"

/* The path of a module ("quern-gen.so"), searched for in this order: in QUERN_MODULE_DIR, in quern/ beside this library, beside
 * this library, in the installed place. 0: not found; `path` then holds a sentence that lists the places. */
int qn_module_path(const char *name, char *path, size_t size);

/* Whether folder/inner/name is a regular file; writes that path into `path`. inner: "", or it begins with a slash. */
int qn_module_is_there(const char *folder, const char *inner, const char *name, char *path, size_t size);

/* Opens a module with local symbols (RTLD_LOCAL) and, unless a sanitizer is in the process, with its own libraries preferred to
 * the host's (RTLD_DEEPBIND). Its interface begins with { uint32_t abi; const char *version; }, which must equal the
 * arguments. It is never closed. NULL: `why` gives the reason; one that may pass is noted (transient.h). */
const void *qn_module_open(const char *name, const char *symbol, uint32_t abi, const char *version, char *why, size_t why_size);

/* Adds a line to a description: a module's state, and where its file is or was searched for. */
void qn_module_describe(qn_strbuf *buf, const char *key, const char *file, const char *state);

#endif
