/* SPDX-License-Identifier: Apache-2.0
 *
 * resolve.c: dtype rules. See resolve.h. */
#include "core/op/resolve.h"

#include "core/tensor/tensor.h"

static const char *dtype_name(uint8_t dtype) { return qn_dtype_infos[dtype].name; }
static uint8_t dtype_kind(uint8_t dtype) { return qn_dtype_infos[dtype].kind; }

/* The promoted dtype of the inputs outside `others` (bit k: input k); QN_DTYPE_NONE if there are none. */
static quern_status promote(const quern_op_info *info, const uint8_t *in_dtypes, uint32_t others, uint8_t *promoted) {
  int32_t first = -1;
  *promoted = QN_DTYPE_NONE;
  for (int32_t k = 0; k < info->n_in; k++) {
    if (others >> k & 1) continue;
    if (first < 0) {
      first = k;
      *promoted = in_dtypes[k];
      continue;
    }
    uint8_t both = qn_dtype_promotion[*promoted][in_dtypes[k]];
    if (both == QN_DTYPE_NONE)
      return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[k], k,
                            "dtype %s has no common dtype with %s before it; cast one of them with astype first",
                            dtype_name(in_dtypes[k]), dtype_name(*promoted));
    *promoted = both;
  }
  return QUERN_OK;
}

quern_status qn_resolve_promotion(const quern_op_info *info, const uint8_t *in_dtypes, uint8_t *dtype) { return promote(info, in_dtypes, 0, dtype); }

static quern_status check_others(const qn_builtin *builtin, const uint8_t *in_dtypes) {
  for (int32_t k = 0; k < builtin->info.n_in; k++)
    if (builtin->bool_in >> k & 1 && in_dtypes[k] != QN_BOOL)
      return qn_tensor_fail(QUERN_E_DTYPE, builtin->info.name, &builtin->info.args[k], k,
                            "dtype %s, expected bool; cast it with astype, or compare it with 0", dtype_name(in_dtypes[k]));
  for (int32_t k = 0; k < builtin->info.n_in; k++)
    if (builtin->whole_in >> k & 1 && dtype_kind(in_dtypes[k]) != QN_KIND_INTEGER)
      return qn_tensor_fail(QUERN_E_DTYPE, builtin->info.name, &builtin->info.args[k], k,
                            "dtype %s, expected an integer; cast it with astype first", dtype_name(in_dtypes[k]));
  return QUERN_OK;
}

/* Refuses a promoted dtype that the op does not take. Names the last input of that dtype, since conditions come first. */
static quern_status refuse_promoted(const qn_builtin *builtin, const uint8_t *in_dtypes, uint8_t promoted) {
  const quern_op_info *info = &builtin->info;
  int32_t k = info->n_in - 1;
  while (k > 0 && in_dtypes[k] != promoted) k--;
  const char *instead = "cast to one of them with astype first";
  if (promoted == QN_BOOL)
    instead = "cast to a number with astype first";
  else if (dtype_kind(promoted) == QN_KIND_FLOAT)
    instead = "round and cast to an integer with astype first";
  return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[k], k, "dtype %s is not taken (it takes %s); %s",
                        dtype_name(promoted), info->args[k].dtypes, instead);
}

quern_status qn_resolve_promoted(const qn_builtin *builtin, const uint8_t *in_dtypes, uint8_t *promoted) {
  quern_status status = QUERN_OK;
  *promoted = QN_F64;
  if (builtin->promotion != QN_PROMOTION_DOUBLE) status = promote(&builtin->info, in_dtypes, builtin->bool_in | builtin->whole_in, promoted);
  if (status == QUERN_OK && (builtin->bool_in | builtin->whole_in)) status = check_others(builtin, in_dtypes);
  if (status) return status;
  if (*promoted == QN_DTYPE_NONE) *promoted = QN_BOOL; /* conditions only */
  const uint8_t common = *promoted;
  if (builtin->promotion == QN_PROMOTION_FLOATING) *promoted = qn_dtype_infos[common].floating;
  if (!(builtin->dtypes >> *promoted & 1)) return refuse_promoted(builtin, in_dtypes, common);
  return QUERN_OK;
}

quern_status qn_resolve_stored(const quern_op_info *info, int32_t k, uint8_t result, uint8_t given) {
  if (dtype_kind(given) >= dtype_kind(result)) return QUERN_OK;
  return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[info->n_in + k], k,
                        "dtype %s cannot take a result of dtype %s; give it dtype %s, and cast that with astype",
                        dtype_name(given), dtype_name(result), dtype_name(result));
}

void qn_resolve_variants(const qn_builtin *builtin, uint8_t kernel_dtype, qn_signature *signature) {
  signature->variants = builtin->variants + builtin->first[kernel_dtype];
  signature->n_variants = builtin->first[kernel_dtype + 1] - builtin->first[kernel_dtype];
  qn_assert(signature->n_variants > 0 || !qn_packs.stream);
}

quern_status qn_resolve_elements(const qn_builtin *builtin, const uint8_t *dtypes, uint8_t promoted, uint8_t compute,
                                 uint8_t kernel_dtype, qn_signature *signature) {
  const quern_op_info *info = &builtin->info;
  for (int32_t k = 0; k < info->n_in; k++) signature->compute_dtypes[k] = builtin->bool_in >> k & 1 ? QN_BOOL : compute;
  for (int32_t k = 0; k < info->n_out; k++) {
    quern_status status = qn_resolve_stored(info, k, qn_resolve_result(builtin, promoted, k), dtypes[info->n_in + k]);
    if (status) return status;
    signature->compute_dtypes[info->n_in + k] = qn_resolve_result(builtin, compute, k);
  }
  qn_resolve_variants(builtin, kernel_dtype, signature);
  return QUERN_OK;
}
