/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_clang.h: Clang in process: C text in, an object file's bytes out. Opens the quern-clang module at first need; one
 * compile at a time, on a thread of its own. Knows no kernels.
 *
 * A forked child has no such thread and makes one, but has no compiler if its parent was compiling or opening the
 * module just then. A process that exits, or closes the library, waits for the compile that is under way, and starts no
 * other. A fatal error of LLVM is the end of the compiler, not of the process; but where the host has used the same
 * LLVM before, it is the host's to handle, as all of that LLVM's are. */
#ifndef QN_JIT_CLANG_H
#define QN_JIT_CLANG_H

#include "base/bytes.h"
#include "core/base/isa.h"

typedef struct qn_compile_request {
  const char *source; /* C11, freestanding; may include kernel.h */
  size_t size;
  qn_isa isa;
} qn_compile_request;

/* 1: *object is there. 0: `why` holds a sentence. May be called from any thread. */
int qn_clang_compile(const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size);

/* "ready", "not loaded yet", or why it cannot be used; static. */
const char *qn_clang_state(void);

/* 0: it cannot be used, for good. 1: it can, or that is not known yet. */
int qn_clang_may_compile(void);

/* Who would compile: versions, and path, size and time of the files that would do it, found without opening them. 0:
 * there is none. */
int qn_clang_identity(char *text, size_t size);

#endif
