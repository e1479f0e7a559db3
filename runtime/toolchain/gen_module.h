/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_module.h: what libquern and its module quern-gen agree on. The module runs Lua and the generator, knows no statuses and
 * calls nothing of libquern; libquern finds one symbol in it, quern_gen_module. */
#ifndef QN_GEN_MODULE_H
#define QN_GEN_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "build_id.h" /* generated: QN_BUILD_ID */

#define QUERN_GEN_ABI 3
#define QUERN_GEN_VERSION QN_BUILD_ID /* the module is of the same sources, or it is not used */
#define QUERN_GEN_SYMBOL "quern_gen_module"

/* What became of a request. */
typedef enum quern_gen_kind {
  QUERN_GEN_OK,
  QUERN_GEN_SYNTAX,
  QUERN_GEN_DTYPE,
  QUERN_GEN_LIMIT,
  QUERN_GEN_EXISTS,
  QUERN_GEN_NOTFOUND,
  QUERN_GEN_UNSUPPORTED,
  QUERN_GEN_MEMORY,
  QUERN_GEN_BUG,
  QUERN_GEN_UNUSABLE /* open only: the module cannot work on this machine */
} quern_gen_kind;

/* The answer, or a sentence about why there is none, which may be missing (NULL). `text` comes from the state's resize and is
 * the asker's to free; a 0 byte, not counted, follows. */
typedef struct quern_gen_answer {
  char *text;
  size_t size;
} quern_gen_answer;

typedef struct quern_gen_request {
  const char *symbol, *op, *canonical; /* op, canonical: one of them may be NULL */
  const char *const *dtypes;
  int32_t n_in, n_out;
  const char *classes;
  int32_t rank, is_wide;
  const char *target;
} quern_gen_request;

typedef struct quern_gen_state quern_gen_state;

typedef struct quern_gen_interface {
  uint32_t abi;
  const char *version;
  /* One Lua state; `resize` is realloc and, to size 0, free: all memory comes from it. Not to be used by two threads at
   * once. Calls want the locale "C" and the default floating point environment. */
  quern_gen_kind (*open)(void *(*resize)(void *memory, size_t size), quern_gen_state **state, quern_gen_answer *answer);
  void (*close)(quern_gen_state *state);
  /* The ops that a spec adds, packed as gen/service.lua does. */
  quern_gen_kind (*load_spec)(quern_gen_state *state, const char *name, const char *text, size_t size,
                              quern_gen_answer *answer);
  /* Takes the ops of the last spec out again. */
  void (*forget)(quern_gen_state *state);
  /* As qn_generator_program and qn_generator_source of generator.h. */
  quern_gen_kind (*program)(quern_gen_state *state, const char *op, const char *kernel_dtype, quern_gen_answer *answer);
  quern_gen_kind (*source)(quern_gen_state *state, const quern_gen_request *request, quern_gen_answer *answer,
                           int32_t *items_per_thread);
} quern_gen_interface;

#endif
