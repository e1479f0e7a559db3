/* SPDX-License-Identifier: Apache-2.0
 *
 * apart.c: see apart.h. */
#include "core/tensor/apart.h"

quern_status qn_tensor_check_apart(const char *op, const quern_arg_info *args, const qn_nest *in, const qn_nest *out,
                                   const uint8_t *sizes) {
  const int32_t n_in = in->n_operands;
  if (in->n_elements == 0 || out->n_elements == 0) return QUERN_OK;
  const quern_status status = qn_tensor_check_overlap(op, &args[n_in], out, 1, &sizes[n_in]);
  for (int32_t k = 0; k < n_in && status == QUERN_OK; k++) {
    const qn_overlap met = qn_tensor_meet(out, 0, sizes[n_in], in, k, sizes[k]);
    if (met != QN_OVERLAP_NO) return qn_tensor_refuse_overlap(op, args, n_in, n_in, k, met, "");
  }
  return status;
}
