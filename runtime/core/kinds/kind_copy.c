/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_copy.c: ops that copy values: inputs promote to T, and inputs of dtype T keep every bit. Kernels are for T's bits. */
#include "core/kinds/elementwise.h"

extern const qn_kind qn_kind_copy;

static quern_status resolve_copied(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  uint8_t promoted;
  qn_signature_begin(signature, builtin->heavy, 0);
  quern_status status = qn_resolve_promoted(builtin, dtypes, &promoted);
  if (status) return status;
  signature->param = promoted;
  return qn_resolve_elements(builtin, dtypes, promoted, promoted, qn_dtype_infos[promoted].bits_dtype, signature);
}

const qn_kind qn_kind_copy = {.name = "copy", .has_own_entry = 1, .keeps_bits = 1, .resolve = resolve_copied, .result = qn_elementwise_result,
                              .infer = qn_elementwise_infer, .decide = qn_elementwise_decide};
