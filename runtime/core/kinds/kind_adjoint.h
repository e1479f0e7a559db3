/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_adjoint.h: the tables of ops that are derivatives of scans. They are generated (op_table.c). */
#ifndef QN_KIND_ADJOINT_H
#define QN_KIND_ADJOINT_H

#include "core/row/scan_op.h"

/* The row of an op beside its qn_builtin. */
typedef struct qn_adjoint_op {
  /* By the dtype that its inputs promote to: n[1] rows of n[0] elements. Operands: the inputs, carries, the result. The parameters are a
   * qn_state_place. */
  const qn_variant *rows[QN_DTYPE_COUNT];
  int8_t before; /* the input that is read one place earlier in the scan, or -1 */
  uint8_t elements; /* bit k: input k has the scan's elements, not its results */
  const qn_scan_states *states[QN_DTYPE_COUNT]; /* of an op without kernels of its own */
  double initial; /* of these: what `before` is at the first place */
} qn_adjoint_op;

#endif
