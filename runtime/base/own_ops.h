/* SPDX-License-Identifier: Apache-2.0
 *
 * own_ops.h: the generated list of built-in ops that the library itself calls. */
#ifndef QN_OWN_OPS_H
#define QN_OWN_OPS_H

#include "core/base/kernel_abi.h"

typedef struct qn_own_ops_table {
  const qn_builtin *copy;    /* one input, elements of one dtype; NULL: it is not built */
  const qn_builtin *convert; /* one input, from one dtype to another; NULL: it is not built */
} qn_own_ops_table;

extern const qn_own_ops_table qn_own_ops;

#endif
