/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_index.h: the generated table of kernels that index ops share. */
#ifndef QN_KIND_INDEX_H
#define QN_KIND_INDEX_H

#include "core/base/kernel_abi.h"

/* "sc", rank 2: positions as numbers; [0]: i64, [1]: f64. NULL: there are no kernels for the CPU. */
extern const qn_variant *const qn_index_packs[2];

#endif
