/* SPDX-License-Identifier: Apache-2.0
 *
 * dtype_name.h: finds a dtype by its name in the dtype table. */
#ifndef QN_DTYPE_NAME_H
#define QN_DTYPE_NAME_H

#include <string.h>

#include "core/base/kernel_abi.h"

/* Bytes of the longest name that is searched for. */
#define QN_DTYPE_MAX_NAME 31

/* The tensor dtype (qn_dtype) with that name of `size` bytes; QN_DTYPE_NONE: there is none. */
static inline uint8_t qn_dtype_of_name(const char *name, size_t size) {
  if (size > QN_DTYPE_MAX_NAME) return QN_DTYPE_NONE;
  for (uint8_t d = 0; d < QN_DTYPE_COUNT; d++) {
    const qn_dtype_info *info = &qn_dtype_infos[d];
    if (info->kind != QN_KIND_BITS && strncmp(info->name, name, size) == 0 && info->name[size] == 0) return d;
  }
  return QN_DTYPE_NONE;
}

#endif
