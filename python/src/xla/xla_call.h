/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_call.h: the functions that XLA calls for an op of Quern. Operands and results are those of the op. Attributes: `op`, its key
 * (xla_ops.h), and `params`, for each parameter three 64-bit integers: the kind, and the words of the number. Knows no Python: XLA calls
 * from threads of its own. */
#ifndef QUERN_PYTHON_XLA_CALL_H
#define QUERN_PYTHON_XLA_CALL_H

#include "xla/xla_ffi.h"

/* The kind of a parameter `axes` of which bit k is axis -1-k: so it holds for operands with more dimensions in front. */
#define XLA_AXES_FROM_END 16

xla_error *xla_call_cpu(xla_frame *frame);
xla_error *xla_call_cuda(xla_frame *frame);

#endif
