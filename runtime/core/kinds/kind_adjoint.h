/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_adjoint.h: the tables of ops that are derivatives of scans. They are generated (op_table.c). */
#ifndef QN_KIND_ADJOINT_H
#define QN_KIND_ADJOINT_H

#include "core/base/kernel_abi.h"

/* The row of an op beside its qn_builtin. */
typedef struct qn_adjoint_op {
  /* By the dtype that its inputs promote to: n[1] rows of n[0] elements. Operands: the inputs, carries, the result. The parameters are a
   * qn_adjoint_place. */
  const qn_variant *rows[QN_DTYPE_COUNT];
  int8_t before; /* the input that is read one place earlier in the scan, or -1 */
} qn_adjoint_op;

typedef struct qn_adjoint_place {
  int64_t from; /* the place of the first element in the walk, a multiple of 16 */
  int64_t last; /* the place in the walk that has none before it in the scan, or -1: each has one */
  int64_t first, step; /* place w of the walk is place first + w * step of the tensor */
} qn_adjoint_place;

#endif
