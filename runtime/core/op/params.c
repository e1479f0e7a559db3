/* SPDX-License-Identifier: Apache-2.0
 *
 * params.c: the conversion of parameters to a kernel's dtype; itself to f32 and f64. See params.h. */
#include "core/op/params.h"

#include <string.h>

int32_t qn_dtype_words(uint8_t dtype) { return (qn_dtype_infos[dtype].size + 7) / 8; }

const char *qn_params_f32(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  float value = scalar->kind == QUERN_I64   ? (float)scalar->v.i
                : scalar->kind == QUERN_U64 ? (float)scalar->v.u
                                            : (float)scalar->v.f[0];
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  (void)info;
  *slot = value != value ? 0x7fc00000u : bits;
  return NULL;
}

const char *qn_params_f64(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  double value = scalar->kind == QUERN_I64   ? (double)scalar->v.i
                 : scalar->kind == QUERN_U64 ? (double)scalar->v.u
                                             : scalar->v.f[0];
  memcpy(slot, &value, sizeof value);
  if (value != value) *slot = 0x7ff8000000000000;
  (void)info;
  return NULL;
}

const char *qn_params_number(const quern_scalar *scalar, uint8_t dtype, uint64_t *slot) {
  const qn_dtype_info *info = &qn_dtype_infos[dtype];
  qn_assert(info->from_number);
  return info->from_number(scalar, info, slot);
}

static quern_status check_count(const quern_op_info *info, int32_t n_given) {
  if (n_given >= 0 && n_given <= info->n_params) return QUERN_OK;
  return qn_status_fail(QUERN_E_ARGUMENT, "%s: %d parameters given, it has %d", info->name, n_given, info->n_params);
}

/* The name of a compute dtype in error sentences. */
static const char *computed_in(uint8_t dtype) { return dtype == QN_B64 ? "integers" : qn_dtype_infos[dtype].name; }

/* Converts parameter k, or its default where it is not given, to a dtype. */
static quern_status convert_one(const quern_op_info *info, int32_t k, uint8_t dtype, int32_t n_given, const quern_scalar *given,
                                uint64_t *slot) {
  const quern_scalar *scalar = k < n_given ? &given[k] : &info->params[k].value;
  const char *name = info->params[k].name;
  if (k >= n_given && scalar->kind == QUERN_NONE)
    return qn_status_fail(QUERN_E_ARGUMENT, "%s: parameter %d (%s) is not given, and has no default", info->name, k + 1, name);
  if (scalar->kind == QUERN_C128 && qn_dtype_infos[dtype].kind != QN_KIND_COMPLEX)
    return qn_status_fail(QUERN_E_DTYPE, "%s: parameter %d (%s): a complex number, but the op computes in %s; give its real part",
                          info->name, k + 1, name, computed_in(dtype));
  if (scalar->kind < 0 || scalar->kind > QUERN_C128)
    return qn_status_fail(QUERN_E_ARGUMENT,
                          "%s: parameter %d (%s): kind %d is none of " QN_SPELLED(QUERN_I64) ", U64, F64, C128", info->name,
                          k + 1, name, scalar->kind);
  const char *wrong = qn_params_number(scalar, dtype, slot);
  if (!wrong) return QUERN_OK;
  return qn_status_fail(QUERN_E_DTYPE,
                        "%s: parameter %d (%s): %s, but the op computes in %s here; give a whole number, or %s", info->name, k + 1,
                        name, wrong, computed_in(dtype),
                        info->n_in ? "cast the tensors to a float dtype with astype first" : "the output a float dtype");
}

quern_status qn_params_convert(const quern_op_info *info, uint8_t dtype, int32_t n, const qn_slot *slots, int32_t n_given,
                               const quern_scalar *given, qn_params *params) {
  quern_status status = check_count(info, n_given);
  for (int32_t k = 0, at = 0; k < n && status == QUERN_OK; k++) {
    const qn_slot slot = slots ? slots[k] : (qn_slot){(uint8_t)k, dtype};
    status = convert_one(info, slot.param, slot.dtype, n_given, given, &params->slot[at]);
    at += qn_dtype_words(slot.dtype);
  }
  return status;
}
