/* SPDX-License-Identifier: Apache-2.0
 *
 * kernel_headers.h: the headers that generated kernels include, as texts for compilers at run time. The table is generated
 * (kernel_headers.c) from templates/. */
#ifndef QN_KERNEL_HEADERS_H
#define QN_KERNEL_HEADERS_H

#include <stdint.h>

typedef struct qn_kernel_header {
  const char *name; /* as in #include "kernel.h" */
  const char *text;
} qn_kernel_header;

/* kernel.h and what it includes where Q_NO_PACK is defined. */
extern const qn_kernel_header qn_kernel_headers[];
extern const int32_t qn_n_kernel_headers;

#endif
