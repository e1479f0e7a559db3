/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_compact.h: what the generated table has for compact ops. */
#ifndef QN_KIND_COMPACT_H
#define QN_KIND_COMPACT_H

#include "core/base/kernel_abi.h"

typedef struct qn_compact_table {
  const qn_variant *count; /* conditions, bool "c", to how many hold, one i64 "b"; NULL: there are no kernels for the CPU */
  /* Places in a block, i32, to coordinates along one dimension, i64 (contiguous; strided), and to places along the next outer
   * one. Parameters: what coordinate.c.in names, in its order. */
  const qn_variant *coordinate[2];
} qn_compact_table;

extern const qn_compact_table qn_compact_packs;

#endif
