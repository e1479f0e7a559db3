/* resolve.c: dtype rules. See resolve.h. */
#include "core/op/resolve.h"

#include "core/base/status.h"
#include "core/tensor/tensor.h"

static const char *dtype_name(uint8_t dtype) { return qn_dtype_infos[dtype].name; }
static uint8_t dtype_kind(uint8_t dtype) { return qn_dtype_infos[dtype].kind; }

/* What the inputs outside `conditions` (bit k: input k) promote to; QN_DTYPE_NONE if there are none. */
static quern_status promote(const quern_op_info *info, const uint8_t *in_dtypes, uint32_t conditions, uint8_t *promoted) {
  int32_t first = -1;
  *promoted = QN_DTYPE_NONE;
  for (int32_t k = 0; k < info->n_in; k++) {
    if (conditions >> k & 1) continue;
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

quern_status qn_resolve_promotion(const quern_op_info *info, const uint8_t *in_dtypes, uint8_t *dtype) {
  return promote(info, in_dtypes, 0, dtype);
}

static quern_status check_conditions(const qn_builtin *builtin, const uint8_t *in_dtypes) {
  for (int32_t k = 0; k < builtin->info.n_in; k++)
    if (builtin->bool_in >> k & 1 && in_dtypes[k] != QN_BOOL)
      return qn_tensor_fail(QUERN_E_DTYPE, builtin->info.name, &builtin->info.args[k], k,
                            "dtype %s, expected bool; cast it with astype, or compare it with 0", dtype_name(in_dtypes[k]));
  return QUERN_OK;
}

/* The sentence for a T that the op does not take. The last operand of that dtype is named: conditions come first. */
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

/* T by the rules that promote. */
static quern_status promoted_of(const qn_builtin *builtin, const uint8_t *in_dtypes, uint8_t *promoted) {
  quern_status status = QUERN_OK;
  *promoted = QN_F64;
  if (builtin->rule != QN_RULE_DOUBLE) status = promote(&builtin->info, in_dtypes, builtin->bool_in, promoted);
  if (status == QUERN_OK && builtin->bool_in) status = check_conditions(builtin, in_dtypes);
  if (status) return status;
  if (*promoted == QN_DTYPE_NONE) *promoted = QN_BOOL; /* conditions only */
  if (builtin->rule == QN_RULE_FLOATING && dtype_kind(*promoted) < QN_KIND_FLOAT) *promoted = QN_F32;
  if (!(builtin->dtypes >> *promoted & 1)) return refuse_promoted(builtin, in_dtypes, *promoted);
  return QUERN_OK;
}

/* The dtype output k has before it is stored. */
static uint8_t result_of(const qn_builtin *builtin, uint8_t promoted, int32_t k) {
  return builtin->results[k] != QN_DTYPE_NONE ? builtin->results[k] : promoted;
}

quern_status qn_resolve_result(const qn_builtin *builtin, const uint8_t *in_dtypes, int32_t k, uint8_t *dtype) {
  quern_status status = promoted_of(builtin, in_dtypes, dtype);
  if (status == QUERN_OK) *dtype = result_of(builtin, *dtype, k);
  return status;
}

/* A result may be stored in any dtype of its own kind or a higher one; what is found is stored as it is. */
static quern_status check_output(const qn_builtin *builtin, int32_t k, uint8_t result, uint8_t given) {
  const quern_op_info *info = &builtin->info;
  if (builtin->info.op_class == QUERN_CLASS_DYNAMIC) {
    if (given == result) return QUERN_OK;
    return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[info->n_in + k], k,
                          "dtype %s, expected %s: what is found is stored as it is; cast it with astype", dtype_name(given),
                          dtype_name(result));
  }
  if (dtype_kind(given) >= dtype_kind(result)) return QUERN_OK;
  return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[info->n_in + k], k,
                        "dtype %s cannot take a result of dtype %s; give it dtype %s, and cast that with astype",
                        dtype_name(given), dtype_name(result), dtype_name(result));
}

static void use_variants(const qn_builtin *builtin, uint8_t kernel_dtype, qn_signature *signature) {
  signature->variants = builtin->variants + builtin->first[kernel_dtype];
  signature->n_variants = builtin->first[kernel_dtype + 1] - builtin->first[kernel_dtype];
  qn_assert(signature->n_variants > 0 || !qn_packs.stream);
}

/* astype, saturate_cast and full: T is what the caller gave the output. */
static quern_status resolve_cast(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  const quern_op_info *info = &builtin->info;
  uint8_t to = dtypes[info->n_in];
  for (int32_t k = 0; k < info->n_in + info->n_out; k++) signature->value[k] = dtypes[k];
  signature->param = to;
  for (int32_t i = builtin->first[to]; i < builtin->first[to + 1]; i++) { /* the op's own for these two dtypes */
    if (builtin->variants[i].dtypes[0] != dtypes[0]) continue;
    signature->variants = &builtin->variants[i];
    signature->n_variants = 1;
    return QUERN_OK;
  }
  if (info->n_in == 1 && qn_packs.stream && (dtypes[0] != to || qn_packs.convert[to][to])) {
    signature->variants = qn_packs.convert[dtypes[0]][to];
    signature->n_variants = 1;
    if (!signature->variants)
      return qn_tensor_fail(QUERN_E_DTYPE, info->name, &info->args[0], 0, "there is no cast from %s to %s",
                            dtype_name(dtypes[0]), dtype_name(to));
    return QUERN_OK;
  }
  use_variants(builtin, qn_dtype_infos[to].bits_dtype, signature);
  return QUERN_OK;
}

quern_status qn_resolve_index(const qn_builtin *builtin, uint8_t dtype, qn_signature *signature) {
  const int is_float = dtype_kind(dtype) == QN_KIND_FLOAT;
  if (!(builtin->dtypes >> dtype & 1))
    return qn_tensor_fail(QUERN_E_DTYPE, builtin->info.name, &builtin->info.args[0], 0,
                          "dtype %s, which it does not give (it gives %s); cast the result with astype", dtype_name(dtype),
                          builtin->info.args[0].dtypes);
  signature->heavy = signature->computes = 0;
  signature->program = NULL;
  signature->param = is_float ? QN_F64 : QN_B64;
  signature->value[0] = signature->value[1] = is_float ? QN_F64 : QN_I64;
  use_variants(builtin, signature->value[0], signature);
  return QUERN_OK;
}

quern_status qn_resolve_inputs(const qn_builtin *builtin, const uint8_t *in_dtypes, qn_signature *signature) {
  uint8_t promoted;
  quern_status status = promoted_of(builtin, in_dtypes, &promoted);
  if (status) return status;
  signature->heavy = signature->computes = 0;
  signature->program = NULL;
  signature->param = promoted;
  for (int32_t k = 0; k < builtin->info.n_in; k++) signature->value[k] = k == 0 ? QN_BOOL : promoted;
  use_variants(builtin, builtin->rule == QN_RULE_ITEMS ? qn_dtype_infos[promoted].bits_dtype : QN_BOOL, signature);
  return QUERN_OK;
}

quern_status qn_resolve_output(const qn_builtin *builtin, const qn_signature *signature, uint8_t dtype) {
  return check_output(builtin, 0, result_of(builtin, signature->param, 0), dtype);
}

quern_status qn_resolve(const qn_builtin *builtin, const uint8_t *dtypes, qn_signature *signature) {
  const quern_op_info *info = &builtin->info;
  signature->heavy = builtin->heavy;
  signature->computes = builtin->rule != QN_RULE_MOVE && builtin->rule != QN_RULE_CAST;
  signature->program = NULL;
  if (builtin->rule == QN_RULE_CAST) return resolve_cast(builtin, dtypes, signature);

  uint8_t promoted;
  quern_status status = promoted_of(builtin, dtypes, &promoted);
  if (status) return status;
  /* What is moved keeps its dtype and every bit; what is computed is computed, and passes to the store, unrounded. */
  const int is_kept = builtin->rule == QN_RULE_MOVE || builtin->own >> promoted & 1;
  uint8_t value = is_kept ? promoted : qn_dtype_infos[promoted].compute;
  signature->param = builtin->rule == QN_RULE_MOVE ? promoted : qn_dtype_infos[promoted].compute;
  for (int32_t k = 0; k < info->n_in; k++) signature->value[k] = builtin->bool_in >> k & 1 ? QN_BOOL : value;
  for (int32_t k = 0; k < info->n_out; k++) {
    uint8_t given = dtypes[info->n_in + k];
    status = check_output(builtin, k, result_of(builtin, promoted, k), given);
    if (status) return status;
    signature->value[info->n_in + k] = result_of(builtin, value, k);
  }
  use_variants(builtin, builtin->rule == QN_RULE_MOVE ? qn_dtype_infos[promoted].bits_dtype : value, signature);
  return QUERN_OK;
}
