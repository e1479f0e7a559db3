/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_adjoint.h: the tables of ops that are derivatives of scans. They are generated (op_table.c). */
#ifndef QN_KIND_ADJOINT_H
#define QN_KIND_ADJOINT_H

#include "core/op/backend.h"
#include "core/row/scan_op.h"

#define QN_ADJOINT_MOST_IN 3 /* gen/kinds/adjoint.lua */

/* Generated: the backend of derivatives of scans on the CPU; NULL: there are no kernels for it. */
extern const qn_backend *const qn_adjoint_backend;

/* A walk for one dtype: n[1] rows of n[0] elements. Operands: the inputs, carries, the result. The parameters are a qn_state_place. */
typedef struct qn_adjoint_walk {
  const qn_variant *rows; /* NULL: there are no kernels for the CPU */
  const qn_scan_states *states; /* of an op without kernels of its own */
} qn_adjoint_walk;

/* The row of an op beside its qn_builtin. */
typedef struct qn_adjoint_op {
  qn_adjoint_walk walks[QN_DTYPE_COUNT]; /* by the dtype that its inputs promote to */
  int8_t before; /* the input that is read one place earlier in the scan, or -1 */
  uint8_t elements; /* bit k: input k has the scan's elements, not its results */
  double initial; /* of an op without kernels of its own: what `before` is at the first place */
} qn_adjoint_op;

#endif
