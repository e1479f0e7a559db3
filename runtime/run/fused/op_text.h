/* SPDX-License-Identifier: Apache-2.0
 *
 * op_text.h: named ops as text of expressions and keys. Knows no dtypes. */
#ifndef QN_OP_TEXT_H
#define QN_OP_TEXT_H

#include <stddef.h>

#include "quern/quern.h"

/* The expression that calls the op: `param a; NAME(x, y, a)`; of several outputs `param a; u = NAME.u(x, y, a);
 * v = NAME.v(x, y, a);`; where an input is called out `u = NAME(x, out);`. malloc'ed; NULL: out of memory. */
char *qn_op_text_call(const quern_op_info *info, int32_t n_shape);

/* The name of a single op (generator.h) in a kernel's key: `where(condition,x,y)`. */
void qn_op_text_key(const quern_op_info *info, char *text, size_t size);

#endif
