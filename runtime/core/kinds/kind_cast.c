/* SPDX-License-Identifier: Apache-2.0
 *
 * kind_cast.c: ops with an output dtype T chosen by the caller. astype has one input and uses the shared convert kernels, or,
 * from a dtype to itself, its own kernels on T's bits. saturate_cast does likewise, but first looks for kernels of its own for
 * the two dtypes. full has no input, and kernels on T's bits. */
#include <string.h>

#include "core/base/status.h"
#include "core/kinds/elementwise.h"

extern const qn_kind qn_kind_cast;

static quern_status resolve_cast(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  const quern_op_info *info = &builtin->info;
  const uint8_t to = dtypes[info->n_in];
  qn_signature_begin(signature, builtin->heavy, 0);
  signature->param = to;
  signature->n_variants = 1;
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) signature->compute_dtypes[k] = dtypes[k];
  for (int32_t i = builtin->first[to]; i < builtin->first[to + 1]; i++) { /* the op's own for these two dtypes */
    signature->variants = &builtin->variants[i];
    if (signature->variants->dtypes[0] == dtypes[0]) return QUERN_OK;
  }
  if (info->n_in == 1 && qn_packs.stream && (dtypes[0] != to || qn_packs.convert[to][to])) {
    signature->variants = qn_packs.convert[dtypes[0]][to];
    if (!signature->variants)
      return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[0], 0, "there is no cast from %s to %s",
                            qn_dtype_infos[dtypes[0]].name, qn_dtype_infos[to].name);
    return QUERN_OK;
  }
  qn_resolve_variants(builtin, qn_dtype_infos[to].bits_dtype, signature);
  return QUERN_OK;
}

static quern_status chosen_dtype(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, DLDataType chosen,
                                 uint8_t *dtype) {
  const quern_op_info *info = &builtin->info;
  (void)in_dtypes;
  return qn_tensor_read_dtype(chosen, info->name, &info->args[info->n_in + k], k, dtype);
}

const qn_kind qn_kind_cast = {.name = "cast", .has_own_entry = 1, .chooses_dtype = 1, .resolve = resolve_cast, .result = chosen_dtype,
                              .infer = qn_elementwise_infer, .decide = qn_elementwise_decide};
