/* SPDX-License-Identifier: Apache-2.0
 *
 * row_reducers.h: the reductions of specs: kernels that reduce by a combine of the interpreter's, or by a compiled one. */
#ifndef QN_ROW_REDUCERS_H
#define QN_ROW_REDUCERS_H

#include "run/stage/stage_code.h"
#include "toolchain/spec/spec_ops.h"

/* The reducers of a context; each is made once. */
typedef struct qn_row_reducers {
  struct spec_reducer *first;
} qn_row_reducers;

/* The reducer of a spec's program: a built one, or one of these, which is made if it is not there. op: the reduction. One call at a time.
 * Errors: those of qn_stage_code_make. */
quern_status qn_row_reducers_find(qn_row_reducers *all, const qn_spec_reducer *wanted, const quern_op *op, const qn_stage_maker *by,
                                  const qn_reducer **found);
/* The kernel of a scan by one of these, not a built one: as qn_scan.rows. */
const qn_variant *qn_row_reducers_scan(const qn_reducer *reducer);

#define QN_ROW_REDUCERS_SCANNED 384 /* elements that are scanned at a time: whole segments of 16 */

/* Scans at most so many states by one of these, from place `at` of the scan on, a multiple of 16, in place. x: the states of each part;
 * carries: three states, 8 bytes a part, as the call before left them; of a first one they are not read. */
void qn_row_reducers_scan_block(const qn_reducer *reducer, char *const *x, int64_t count, int64_t at, char *carries);

/* Copies results; of floats a NaN, as an element may be one, becomes the one NaN. */
void qn_row_reducers_store(uint8_t dtype, char *from, char *to, int64_t count);

/* Frees those that were made since. */
void qn_row_reducers_cut(qn_row_reducers *all, qn_row_reducers before);

#endif
