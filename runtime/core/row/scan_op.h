/* SPDX-License-Identifier: Apache-2.0
 *
 * scan_op.h: the tables of ops that scan. They are generated (op_table.c). */
#ifndef QN_SCAN_OP_H
#define QN_SCAN_OP_H

#include "core/base/kernel_abi.h"
#include "core/base/status.h"
#include "core/row/row_program.h"

#define QN_SCAN_MAX_OUTPUTS 4 /* gen/kinds/scan.lua */
#define QN_SCAN_MAX_OPERANDS (1 + QN_SCAN_MAX_OUTPUTS)
#define QN_SCAN_STATE (QN_ROW_MAX_PARTS * QN_DTYPE_MAX_BYTES) /* bytes of a state, at most */
#define QN_SCAN_CARRIES (3 * QN_DTYPE_MAX_BYTES) /* of a row without states: a segment, a chunk, a span */

/* A scan for one dtype. The kernels have an operand of elements, one of carries, and the results: of an op that finds, the values and their
 * i64 places. */
typedef struct qn_scan {
  const qn_variant *rows;    /* scans n[1] rows of n[0] elements. Each row has 3 carries; of an op that finds, a key and at byte 8 a place */
  /* Makes n[0] scans at once, of n[1] elements each. There are 4 rows of carries; of an op that finds, a row of places and one of keys. NULL: no
   * such kernel. */
  const qn_variant *columns;
  uint8_t dtype;             /* of carries, which elements are converted to */
  const struct qn_reducer *by; /* of a scan without kernels of its own: what `rows` combines by. Else NULL */
  const struct qn_scan_states *states; /* of a scan with states that has no kernels of its own. Else NULL */
} qn_scan;

/* The interpreted or compiled programs of a scan with states, in place of a built kernel. Made above the core; a generated tree has none. */
typedef struct qn_scan_states {
  const struct qn_row_steps *steps[3]; /* lift, combine, finish; NULL: the state itself */
} qn_scan_states;

/* The parameters of kernels with states: rows of n[0] elements, n[1] of them. Operands: the inputs; carries, three states a row; the
 * results. Built ones do not read `states`. */
typedef struct qn_state_place {
  int64_t from; /* the place of the first element in the walk, a multiple of 16 */
  int64_t last; /* the place in the walk that has none before it in the scan, or -1: each has one */
  int64_t first, step; /* place w of the walk is place first + w * step of the tensor */
  const qn_scan_states *states;
} qn_state_place;

/* For programs: requests their compiled kernels; the lines of explain: of the tier, and of each program. */
void qn_scan_states_ask(const qn_scan_states *states);
void qn_scan_states_explain(const qn_scan_states *states, qn_strbuf *buf);

/* The parameters of the kernels. Built ones read the first, those that find the second, too. */
typedef struct qn_scan_place {
  int64_t from; /* the place of the first element */
  int64_t turn; /* turn - place is stored for a place; -1: the place itself */
  const struct qn_reducer *by;
} qn_scan_place;

/* The row of an op beside its qn_builtin. By the dtype of its input. */
typedef struct qn_scan_op {
  double initial; /* the result of no elements */
  double others[QN_SCAN_MAX_OUTPUTS - 1]; /* those of further outputs */
  uint8_t has_states; /* `rows` is a kernel with states */
  qn_scan scans[QN_DTYPE_COUNT];
  uint8_t results[QN_DTYPE_COUNT];
} qn_scan_op;

/* The row of an op; NULL: it does not scan. */
const qn_scan_op *qn_scan_op_of(const qn_builtin *builtin);

#endif
