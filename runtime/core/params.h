/* params.h: a call's parameters, weak numbers, converted to the dtype its kernel computes in. Knows no tensors. */
#ifndef QN_PARAMS_H
#define QN_PARAMS_H

#include "kernel_abi.h"

/* As kernels take them: a parameter's value in the first bytes of its slot. */
typedef struct qn_params {
  uint64_t slot[QN_MAX_PARAMS];
} qn_params;

/* Converts the first n_given parameters from `given` and the rest from their defaults. To an integer: saturating; NaN and
 * fractions are refused (DTYPE). To a float: rounded once, one NaN. To bool: != 0. */
quern_status qn_params_convert(const quern_op_info *info, uint8_t dtype, int32_t n_given, const quern_scalar *given,
                               qn_params *params);

#endif
