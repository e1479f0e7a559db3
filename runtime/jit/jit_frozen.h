/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_frozen.h: kernels of expressions that a program brings, built ahead of time: tables of rows, found by a kernel's
 * key. Knows no contexts: what is registered serves the whole process. */
#ifndef QN_JIT_FROZEN_H
#define QN_JIT_FROZEN_H

#include "build_id.h" /* generated: QN_NUMERICS: a table of kernels of another numerics version gives other bits */
#include "core/base/kernel_abi.h"
#include "base/digest.h"

/* Errors: ARGUMENT, VERSION, MEMORY. The table is kept as it is, for good. */
quern_status qn_jit_frozen_register(const quern_kernel_table *table);

/* How many tables there are: when it has not changed, a key that was not found is still not there. */
unsigned qn_jit_frozen_count(void);

/* The kernel of that key for this machine, and the level it was built for; NULL: there is none. Takes no locks. */
qn_kernel *qn_jit_frozen_find(const char *key, qn_digest digest, qn_isa *isa);

#endif
