/* SPDX-License-Identifier: Apache-2.0
 *
 * apart.h: the aliasing law for outputs that have loops of their own. */
#ifndef QN_APART_H
#define QN_APART_H

#include "core/tensor/tensor.h"

/* The law for an output with a nest of its own: it may overlap neither an input nor itself. in: the inputs' nest;
 * out: the output's nest, of one operand; sizes: of the inputs, then of the output. */
quern_status qn_tensor_check_apart(const char *op, const quern_arg_info *args, const qn_nest *in, const qn_nest *out,
                                   const uint8_t *sizes);

#endif
