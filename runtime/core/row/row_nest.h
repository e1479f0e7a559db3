/* SPDX-License-Identifier: Apache-2.0
 *
 * row_nest.h: operands and axes -> a loop nest with the reduced dimensions first. */
#ifndef QN_ROW_NEST_H
#define QN_ROW_NEST_H

#include "core/tensor/tensor.h"

/* An address that may lie outside of any object: strides can be negative. */
static inline char *qn_row_moved(char *at, int64_t bytes) { return (char *)((uintptr_t)at + (uintptr_t)bytes); }

/* The axes as bits over `ndim` dimensions: the parameter `axes`, where -1 is all of them. ARGUMENT for a bit beyond. */
quern_status qn_row_axes(const char *op, int64_t given, int32_t ndim, uint32_t *axes);

/* The shape of a reduced output. Returns its rank. */
int32_t qn_row_shape(int32_t ndim, const int64_t *shape, uint32_t axes, int keepdims, int64_t *reduced);

/* The strides of a tensor, in items; 0 where any number may stand: along an extent of 1, and in a tensor without elements. */
void qn_row_strides(const qn_tensor *tensor, int64_t *strides);

/* Builds a nest. Its first nest->n_joined dimensions are the joined axes, innermost first. The dimensions up to nest->n_reduced are the
 * further axes, and the rest are kept. Dimensions of extent 1 are dropped, adjacent ones merged where order and every
 * operand allow it. *count: the elements of a row. If that is 0, the nest has only the dimensions that are kept. nest->n_elements: 0 if
 * there is nothing to write. An output has stride 0 along reduced dimensions if its bit in `reduced` is set. */
void qn_row_normalise(int32_t ndim, const int64_t *shape, uint32_t axes, uint32_t reduced, int32_t n_in, const qn_tensor *in,
                      int32_t n_out, const qn_tensor *out, qn_nest *nest, int64_t *count);

/* Refuses stride 0 along an axis for an output that is not reduced (no bit in `reduced`): the aliasing law would take it for a reduced one. */
quern_status qn_row_check_still(const quern_op_info *info, uint32_t reduced, const qn_nest *nest);

#endif
