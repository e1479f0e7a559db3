/* SPDX-License-Identifier: Apache-2.0
 *
 * params_complex.c: the conversion of parameters to complex numbers. See params.h. */
#include "core/op/params.h"

#include "core/base/status.h"

/* Two f64s; a real number's imaginary part is 0. */
const char *qn_params_complex(const quern_scalar *scalar, const qn_dtype_info *info, uint64_t *slot) {
  quern_scalar imaginary = {.kind = QUERN_F64};
  quern_scalar real = *scalar;
  if (scalar->kind == QUERN_C128) {
    real.kind = QUERN_F64;
    imaginary.v.f[0] = scalar->v.f[1];
  }
  qn_assert(info->bits == 128);
  qn_params_f64(&real, info, &slot[0]);
  return qn_params_f64(&imaginary, info, &slot[1]);
}
