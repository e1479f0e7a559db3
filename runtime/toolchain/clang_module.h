/* SPDX-License-Identifier: Apache-2.0
 *
 * clang_module.h: what libquern and its module quern-clang agree on. The module runs Clang and LLVM, knows no kernels
 * and calls of libquern only what it is given; libquern finds one symbol in it, quern_clang_module. */
#ifndef QN_CLANG_MODULE_H
#define QN_CLANG_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "build_id.h" /* generated: QN_BUILD_ID */
#include "toolchain/kernel_headers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_CLANG_ABI 1
#define QUERN_CLANG_VERSION QN_BUILD_ID /* the module is of the same sources, or it is not used */
#define QUERN_CLANG_SYMBOL "quern_clang_module"

/* A copy of the library, of which a process may have several: code that is linked with the static one. */
typedef struct quern_clang_host {
  /* LLVM cannot go on. Called on the thread that compiles for this host, which stays in the module for ever. */
  void (*failed)(const char *message);
  /* The process exits, and LLVM's own destructors have not run so far: from here on nothing is compiled. */
  void (*ending)(void);
  /* Somebody used this LLVM before, another copy perhaps. Its handlers are set once a host knows that there was no such user. */
  int is_shared;
} quern_clang_host;

typedef struct quern_clang_job {
  const quern_clang_host *host;
  const char *source;
  size_t size;
  const char *level; /* "generic", "v2", "v3", "v4" */
  const qn_kernel_header *headers; /* that the source may include */
  int32_t n_headers;
  int is_to_fail; /* for tests: LLVM is made to report a fatal error */
  /* Memory for the object: a host may have a malloc of its own that the module does not see. */
  void *(*allocate)(size_t size);
  void *object; /* there when the job is done */
  size_t object_size;
  char *why; /* a sentence when it is not */
  size_t why_size;
} quern_clang_job;

typedef enum quern_clang_result {
  QUERN_CLANG_DONE,
  QUERN_CLANG_REFUSED, /* this job; the next may do */
  QUERN_CLANG_BROKEN   /* the compiler cannot be used any more */
} quern_clang_result;

typedef struct quern_clang_interface {
  uint32_t abi;
  const char *version;
  /* Before a host's first job, and when it goes before the process ends; the struct is its own. 0: there are too many.
   */
  int (*enter)(const quern_clang_host *host);
  void (*leave)(const quern_clang_host *host);
  /* On a thread with a large stack, in the locale "C" and the default floating point environment. Jobs of other hosts
   * are waited for. */
  quern_clang_result (*compile)(quern_clang_job *job);
} quern_clang_interface;

#ifdef __cplusplus
}
#endif

#endif
