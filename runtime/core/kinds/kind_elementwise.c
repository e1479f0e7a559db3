/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_elementwise.c: ops that compute: inputs promote to T, the computation is in T's compute dtype, or in T itself where there
 * are kernels for that, and results are rounded at the store. */
#include "core/kinds/elementwise.h"

static quern_status resolve_computed(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  uint8_t promoted;
  qn_signature_begin(signature, builtin->heavy, 1);
  quern_status status = qn_resolve_promoted(builtin, dtypes, &promoted);
  if (status) return status;
  /* Results pass to the store in the compute dtype, unrounded. */
  const uint8_t compute = qn_dtype_infos[promoted].compute, kernel = builtin->own >> promoted & 1 ? promoted : compute;
  signature->param = compute;
  return qn_resolve_elements(builtin, dtypes, promoted, kernel, kernel, signature);
}

const qn_kind qn_kind_elementwise = {.name = "elementwise", .resolve = resolve_computed, .result = qn_elementwise_result,
                                     .infer = qn_elementwise_infer, .decide = qn_elementwise_decide};
