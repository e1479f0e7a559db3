/* SPDX-License-Identifier: Apache-2.0
 *
 * params_none.c: the parameters of a call (params.h), for trees of ops without parameters: a call that gives one is refused. */
#include "core/base/status.h"
#include "core/op/params.h"

quern_status qn_params_convert(const quern_op_info *info, uint8_t dtype, int32_t n, const qn_slot *slots, int32_t n_given,
                               const quern_scalar *given, qn_params *params) {
  (void)dtype, (void)n, (void)slots, (void)given, (void)params;
  if (n_given == 0) return QUERN_OK;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d parameters given, it has 0", info->name, n_given);
}
