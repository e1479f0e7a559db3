/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_rows.h: expressions that reduce, as a kind of op. */
#ifndef QN_FUSED_ROWS_H
#define QN_FUSED_ROWS_H

#include "core/op/kind.h"
#include "lang/parse/expression.h"

/* The kind of an expression's op. */
const qn_kind *qn_fused_rows_kind(const qn_expression *expression);

#endif
