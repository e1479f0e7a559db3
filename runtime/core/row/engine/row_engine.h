/* SPDX-License-Identifier: Apache-2.0
 *
 * row_engine.h: runs a job of rows in slices. Uses no memory beyond the operands but the scratch of slices. */
#ifndef QN_ROW_ENGINE_H
#define QN_ROW_ENGINE_H

#include "core/row/engine/row_tiles.h"

/* ref: the operands' first items. slices: NULL is allowed where job->most_slices is 1. Needs the default floating point
 * environment. */
quern_status qn_row_run(const qn_row_job *job, const qn_ref *ref, const void *params, qn_slices *slices);

#endif
