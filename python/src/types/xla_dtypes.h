/* SPDX-License-Identifier: Apache-2.0
 *
 * xla_dtypes.h: XLA's type numbers, those of its foreign function interface (xla/xla_ffi.h). */
#ifndef QUERN_PYTHON_XLA_DTYPES_H
#define QUERN_PYTHON_XLA_DTYPES_H

enum {
  XLA_PRED = 1, XLA_S8 = 2, XLA_S16 = 3, XLA_S32 = 4, XLA_S64 = 5, XLA_U8 = 6, XLA_U16 = 7, XLA_U32 = 8, XLA_U64 = 9, XLA_F16 = 10,
  XLA_F32 = 11, XLA_F64 = 12, XLA_C64 = 15, XLA_BF16 = 16, XLA_C128 = 18, XLA_F8E5M2 = 19, XLA_F8E4M3FN = 20, XLA_F8E4M3B11FNUZ = 23,
  XLA_F8E5M2FNUZ = 24, XLA_F8E4M3FNUZ = 25, XLA_F8E4M3 = 28, XLA_F8E3M4 = 29, XLA_F8E8M0FNU = 33
};

#endif
