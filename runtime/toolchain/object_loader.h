/* SPDX-License-Identifier: Apache-2.0
 *
 * object_loader.h: a relocatable ELF object with one kernel -> executable memory. The same for objects from Clang in
 * process, a C compiler and the disk cache; refuses everything unknown. Knows no kernels. */
#ifndef QN_OBJECT_LOADER_H
#define QN_OBJECT_LOADER_H

#include <stddef.h>

typedef struct qn_loaded qn_loaded;

/* Maps the code of `bytes` (not kept, any alignment) and finds the function `symbol`. NULL: refused, and `why` holds a
 * sentence. Accepted: x86-64 code and read-only data, aligned up to 4096, that refer to each other by PC32 and PLT32
 * relocations. Refused: writable data, references to other objects, and every object if the system grants no
 * executable memory. The bytes may be hostile; the code of a well-formed object is trusted. errno is kept. */
qn_loaded *qn_object_load(const void *bytes, size_t size, const char *symbol, char *why, size_t why_size);

/* The function's address, good until qn_object_unload. */
void *qn_object_entry(const qn_loaded *loaded);

/* Bytes mapped for it: whole pages. */
size_t qn_object_size(const qn_loaded *loaded);

/* NULL is allowed. errno is kept. */
void qn_object_unload(qn_loaded *loaded);

#endif
