/* SPDX-License-Identifier: Apache-2.0
 *
 * jit_frozen.h: kernels of expressions built ahead into a program: tables of rows, found by a kernel's key. Knows no
 * contexts: a registered table serves the whole process. */
#ifndef QN_JIT_FROZEN_H
#define QN_JIT_FROZEN_H

#include "build_id.h" /* generated: QN_NUMERICS: kernels of another numerics version give other bits */
#include "core/base/kernel_abi.h"
#include "base/digest.h"

/* Adds a table, which is borrowed for good. Errors: ARGUMENT, VERSION, MEMORY. */
quern_status qn_jit_frozen_register(const quern_kernel_table *table);

/* The number of tables. While it is unchanged, a key that was not found is still missing. */
unsigned qn_jit_frozen_count(void);

/* The kernel of that key for this machine, and the level it was built for; NULL: none. Takes no lock. */
qn_kernel *qn_jit_frozen_find(const char *key, qn_digest digest, qn_isa *isa);

#endif
