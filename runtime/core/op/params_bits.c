/* SPDX-License-Identifier: Apache-2.0
 *
 * params_bits.c: the conversion of parameters to bool, and to the bits of ops that copy. See params.h. */
#include "core/op/params_integer.h"

const char *qn_params_bool(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  (void)info;
  *slot = scalar->kind == QUERN_F64 ? scalar->v.f[0] != 0 : scalar->v.u != 0;
  return NULL;
}

/* The low 64 bits of an integer or of a whole float. Floats beyond [-2^63, 2^64) saturate. */
const char *qn_params_bits(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  (void)info;
  if (scalar->kind == QUERN_F64) {
    const int is_beyond = scalar->v.f[0] >= 0x1p63;
    return qn_params_to_range(scalar, is_beyond ? 0 : INT64_MIN, is_beyond ? UINT64_MAX : INT64_MAX, slot);
  }
  *slot = scalar->v.u;
  return NULL;
}
