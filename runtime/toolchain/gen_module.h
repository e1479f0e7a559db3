/* SPDX-License-Identifier: Apache-2.0
 *
 * gen_module.h: the interface between libquern and its module quern-gen. The module runs Lua and the generator, knows no
 * statuses and calls nothing of libquern; libquern finds one symbol in it, quern_gen_module. */
#ifndef QN_GEN_MODULE_H
#define QN_GEN_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "build_id.h" /* generated: QN_BUILD_ID */

#define QUERN_GEN_ABI 5
#define QUERN_GEN_VERSION QN_BUILD_ID /* a module of other sources is not used */
#define QUERN_GEN_SYMBOL "quern_gen_module"

/* The result of a request. */
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

/* The answer; on failure a sentence with the reason, or NULL. `text` comes from the state's resize and is freed by the caller;
 * a 0 byte follows, not counted. */
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
  int64_t *cost; /* not NULL: it is to be compiled. A cost above the limit is refused, else it is set */
} quern_gen_request;

/* Of a host; 0: the default. */
typedef struct quern_gen_limits {
  int64_t nodes; /* of one graph; more than the default counts as the default */
  int64_t cost;  /* of a kernel, in instructions (gen/graph/dag/costs.lua) */
  int64_t steps; /* of a request: instructions of Lua */
} quern_gen_limits;

typedef struct quern_gen_state quern_gen_state;

typedef struct quern_gen_interface {
  uint32_t abi;
  const char *version;
  /* Makes a Lua state. All memory comes from `resize`: realloc, and free for size 0. A state must not be used by two threads
   * at once. Calls require the locale "C" and the default floating-point environment. */
  quern_gen_kind (*open)(void *(*resize)(void *memory, size_t size), const quern_gen_limits *limits, quern_gen_state **state,
                         quern_gen_answer *answer);
  void (*close)(quern_gen_state *state);
  /* Loads a spec. The answer has its ops, in the format of gen/service.lua, without the derivatives of their bodies. */
  quern_gen_kind (*load_spec)(quern_gen_state *state, const char *name, const char *text, size_t size,
                              quern_gen_answer *answer);
  /* The derivative of an op, in the same format. */
  quern_gen_kind (*derivative)(quern_gen_state *state, const char *op, quern_gen_answer *answer);
  /* Removes the ops of the last spec that was loaded. */
  void (*forget)(quern_gen_state *state);
  /* As qn_generator_program and qn_generator_source of generator.h. */
  quern_gen_kind (*program)(quern_gen_state *state, const char *op, const char *kernel_dtype, quern_gen_answer *answer);
  quern_gen_kind (*source)(quern_gen_state *state, const quern_gen_request *request, quern_gen_answer *answer,
                           int32_t *items_per_thread);
} quern_gen_interface;

#endif
