/* SPDX-License-Identifier: Apache-2.0
 *
 * params_integer.h: the first step of conversions of parameters to integers. */
#ifndef QN_PARAMS_INTEGER_H
#define QN_PARAMS_INTEGER_H

#include "core/op/params.h"

/* Saturates to [low, high] of a signed type, [0, high] of an unsigned one. Returns an error phrase, or NULL. */
const char *qn_params_to_range(const quern_scalar *scalar, int64_t low, uint64_t high, uint64_t *slot);

#endif
