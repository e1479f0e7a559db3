/* SPDX-License-Identifier: Apache-2.0
 *
 * clang_module.h: the interface between libquern and its module quern-clang. The module runs Clang and LLVM, knows no kernels
 * and calls libquern only by the pointers below; libquern finds one symbol in it, quern_clang_module. */
#ifndef QN_CLANG_MODULE_H
#define QN_CLANG_MODULE_H

#include <stddef.h>
#include <stdint.h>

#include "build_id.h" /* generated: QN_BUILD_ID */
#include "toolchain/kernel_headers.h"

#ifdef __cplusplus
extern "C" {
#endif

#define QUERN_CLANG_ABI 2
#define QUERN_CLANG_VERSION QN_BUILD_ID /* a module of other sources is not used */
#define QUERN_CLANG_SYMBOL "quern_clang_module"

/* One copy of the library. A process may have several, by code linked with the static library. */
typedef struct quern_clang_host {
  /* LLVM met a fatal error. Called on the thread that compiles for this host; that thread is blocked for good afterwards. */
  void (*failed)(const char *message);
  /* The process exits; LLVM's destructors have not run yet. After it nothing is compiled. */
  void (*ending)(void);
  /* LLVM was in the process before this host opened it. The module sets LLVM's error handlers only for a host where this is 0. */
  int is_shared;
} quern_clang_host;

typedef struct quern_clang_request {
  const quern_clang_host *host;
  const char *source;
  size_t size;
  const char *level; /* "generic", "v2", "v3", "v4" */
  const qn_kernel_header *headers; /* files that the source may include */
  int32_t n_headers;
  int lane;       /* 0 or 1: requests of different lanes are compiled at the same time */
  /* Not 0: the compile is to end soon: why, a static text. Asked between passes. */
  const char *(*is_over)(const struct quern_clang_request *request);
  int64_t until_ms; /* for is_over */
  int is_to_fail; /* for tests: makes LLVM report a fatal error */
  /* Allocates the object: the host may have a malloc of its own that the module does not see. */
  void *(*allocate)(size_t size);
  void *object; /* there when the request is done */
  size_t object_size;
  char *why; /* a sentence when it is not */
  size_t why_size;
} quern_clang_request;

typedef enum quern_clang_result {
  QUERN_CLANG_DONE,
  QUERN_CLANG_REFUSED, /* this request failed; others may succeed */
  QUERN_CLANG_BROKEN   /* the compiler cannot be used any more */
} quern_clang_result;

typedef struct quern_clang_interface {
  uint32_t abi;
  const char *version;
  /* enter: before a host's first request. leave: when the host is unloaded. The struct stays the host's. 0: too many hosts.
   */
  int (*enter)(const quern_clang_host *host);
  void (*leave)(const quern_clang_host *host);
  /* To be called on a thread with a large stack, in the locale "C" and the default floating-point environment. Waits for
   * requests of other hosts. */
  quern_clang_result (*compile)(quern_clang_request *request);
  /* Whether LLVM's destructors do not run when the process ends. 0: they do, and must not meet a compile. */
  int (*drops_destructors)(void);
} quern_clang_interface;

#ifdef __cplusplus
}
#endif

#endif
