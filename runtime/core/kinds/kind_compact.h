/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_compact.h: the generated table of kernels that compact ops share. */
#ifndef QN_KIND_COMPACT_H
#define QN_KIND_COMPACT_H

#include "core/base/kernel_abi.h"

typedef struct qn_compact_table {
  const qn_variant *count; /* counts true conditions: bool "c" to one i64 "b"; NULL: there are no kernels for the CPU */
  /* From indices in a block, i32, to coordinates along one dimension, i64 ([0]: contiguous, [1]: strided), and to indices along
   * the next outer dimension. Parameters: those of coordinate.c.in, in its order. */
  const qn_variant *coordinate[2];
} qn_compact_table;

extern const qn_compact_table qn_compact_packs;

#endif
