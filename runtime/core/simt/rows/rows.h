/* SPDX-License-Identifier: Apache-2.0
 *
 * rows.h: the launch of the CUDA kernel that reduces a nest of rows (core/row/row_nest.h). The counterpart of launch.h for
 * reductions. Knows no driver, no ops and no pointers. Results do not depend on how rows are shared out. */
#ifndef QN_ROWS_H
#define QN_ROWS_H

#include "core/row/row_program.h"
#include "core/simt/launch.h"

/* The form of the kernel for a nest: of any rank, all classes strided. program: NULL, or that of an op that reduces; then it may be that of
 * short_rows.h. */
void qn_rows_choose(const qn_nest *nest, const uint8_t *sizes, int64_t count, const qn_row_program *program, qn_launch_form *form);

/* The kernel built ahead of these that runs the nest; NULL: there is none. */
const qn_cuda_variant *qn_rows_pick(const qn_cuda_variant *variants, int32_t n_variants, const qn_nest *nest, const uint8_t *sizes,
                                    int64_t count, const qn_row_program *program, qn_launch_form *form);

/* Packs all but addresses and parameters. count: elements of a row. sizes, n_out, values: as qn_launch_pack has them. */
void qn_rows_pack(const qn_nest *nest, const uint8_t *sizes, int32_t n_out, uint32_t values, int64_t count,
                  const qn_launch_form *form, int32_t n_params, qn_launch *launch);

#endif
