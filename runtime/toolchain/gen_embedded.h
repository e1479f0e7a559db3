/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_embedded.h: the files that tools/embed.lua puts into the quern-gen module (gen_embedded.c): the generator's Lua modules
 * as bytecode under their names, "model", "boot", "canary", and texts. */
#ifndef QN_GEN_EMBEDDED_H
#define QN_GEN_EMBEDDED_H

#include <stddef.h>

typedef struct qn_embedded_file {
  const char *name;
  const unsigned char *bytes;
  size_t size;
} qn_embedded_file;

/* Sorted by name. */
extern const qn_embedded_file qn_embedded_files[];
extern const int qn_n_embedded_files;

#endif
