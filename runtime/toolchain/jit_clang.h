/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_clang.h: Clang in process: C text in, an object file's bytes out. Opens the quern-clang module at first need; one
 * compile at a time on each of two threads of its own, one of them for large ones. Knows no kernels.
 *
 * A forked child makes a thread of its own, but has no compiler if the fork met the opening of the module, or a compile
 * that reached no safe point in time. At its exit, or when the library is closed, a process waits a moment for the compiles under
 * way, and starts no other. A fatal error of LLVM ends the compiler, not the process. If the host has used the same LLVM
 * before, the host's error handlers are LLVM's, and decide. */
#ifndef QN_JIT_CLANG_H
#define QN_JIT_CLANG_H

#include <stdint.h>

#include "base/bytes.h"
#include "core/base/isa.h"

typedef struct qn_compile_request {
  const char *source; /* C11, freestanding; may include kernel.h */
  size_t size;
  qn_isa isa;
  int32_t most_ms;  /* 0: a minute. Clang ends after its next pass, a C compiler at once */
  int32_t is_large; /* Clang compiles it beside others, on a second thread */
} qn_compile_request;

/* 1: *object is set. 0: `why` holds a sentence. Thread-safe. */
int qn_clang_compile(const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size);

/* "ready", "not loaded yet", or why it cannot be used; static. */
const char *qn_clang_state(void);

/* 0: it cannot be used, which is final. 1: it can, or that is not known yet. */
int qn_clang_may_compile(void);

/* The compiler's identity: versions, and path, size and time of its files, found without opening them. 0: there is
 * none. */
int qn_clang_identity(char *text, size_t size);

#endif
