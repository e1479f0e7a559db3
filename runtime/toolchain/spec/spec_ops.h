/* SPDX-License-Identifier: Apache-2.0
 *
 * spec_ops.h: the ops of a spec: the bytes that the generator packs (gen/service.lua) -> structs for the registry and typing.
 * Knows no Lua and no context. */
#ifndef QN_SPEC_OPS_H
#define QN_SPEC_OPS_H

#include "base/bytes.h"
#include "toolchain/spec/spec_op.h"

/* All ops of a spec: a malloc'ed array of *n_ops; NULL: out of memory. `packed` must be complete. */
qn_spec_op **qn_spec_ops_unpack(const qn_bytes *packed, int32_t *n_ops);

#endif
