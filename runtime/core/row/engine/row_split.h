/* SPDX-License-Identifier: Apache-2.0
 *
 * row_split.h: cuts each row into parts for several slices, where there are few rows. */
#ifndef QN_ROW_SPLIT_H
#define QN_ROW_SPLIT_H

#include "core/base/slices.h"
#include "core/row/row_job.h"

/* Runs all tiles, each in parts. Returns 0 if that is not possible, or not worth it; else *status (QUERN_OK before) may be set. */
int qn_row_split(const qn_row_job *job, const qn_ref *ref, const void *params, int64_t n_tiles, int32_t n_slices, qn_slices *slices,
                 quern_status *status);

#endif
