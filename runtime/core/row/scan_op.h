/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_op.h: the tables of ops that scan. They are generated (op_table.c). */
#ifndef QN_SCAN_OP_H
#define QN_SCAN_OP_H

#include "core/base/kernel_abi.h"

struct qn_reducer;

/* A scan for one dtype. The kernels have three operands: elements, carries, results. */
typedef struct qn_scan {
  const qn_variant *rows;    /* rows of n[0] elements, n[1] of them; 3 carries for each */
  const qn_variant *columns; /* n[1] rows of n[0] scans; 4 rows of carries. NULL: there is none */
  /* n[1] rows of n[0] elements; for each the value found so far and its place; the places, i64. The parameters, two i64: the place of the
   * first element, and the place of which a place is subtracted, or -1. NULL: there is no second output. */
  const qn_variant *places;
  uint8_t dtype;             /* of carries, which elements are converted to */
  const struct qn_reducer *by; /* of a scan without kernels of its own: what `rows` combines by. Else NULL */
} qn_scan;

/* The parameters of the kernels. Built ones read no more than the first. */
typedef struct qn_scan_place {
  int64_t from; /* the place of the first element */
  const struct qn_reducer *by;
} qn_scan_place;

/* The row of an op beside its qn_builtin. By the dtype of its input. */
typedef struct qn_scan_op {
  double initial; /* the result of no elements */
  qn_scan scans[QN_DTYPE_COUNT];
  uint8_t results[QN_DTYPE_COUNT];
} qn_scan_op;

#endif
