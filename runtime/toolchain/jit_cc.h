/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_cc.h: a C compiler of the host's choice as a compiler of kernels: C text in, an object file's bytes out, by
 * posix_spawn. Knows no kernels. */
#ifndef QN_JIT_CC_H
#define QN_JIT_CC_H

#include "toolchain/jit_clang.h"

/* As qn_clang_compile; cc: a program's name or path, without arguments. */
int qn_cc_compile(const char *cc, const qn_compile_request *request, qn_bytes *object, char *why, size_t why_size);

/* The compiler's identity: path, size and time of that program. 0: it is not there. */
int qn_cc_identity(const char *cc, char *text, size_t size);

#endif
