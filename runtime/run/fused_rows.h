/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_rows.h: expressions that reduce, as a kind of op. */
#ifndef QN_FUSED_ROWS_H
#define QN_FUSED_ROWS_H

#include "core/op/kind.h"

extern const qn_kind qn_kind_fused_rows;

#endif
