/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_built.h: the CUDA kernels built ahead with the library, which are optional: fatbins in the folder cuda beside the
 * modules, and their index kernels.txt, written by gen/targets/cuda/fatbin.lua. Knows no tensors and no launches. */
#ifndef QN_CUDA_BUILT_H
#define QN_CUDA_BUILT_H

#include "core/simt/launch.h"
#include "cuda/cuda_image.h"

/* The kernels of a built-in op for operands of these dtypes (inputs, then the output) on devices of this capability (90);
 * static. *n 0: there are none; then *why (may be NULL) is a phrase, static. */
const qn_cuda_variant *qn_cuda_built_find(const qn_builtin *op, const uint8_t *dtypes, int32_t n_operands, int32_t capability,
                                          int32_t *n, const char **why);

/* The kernel that computes over contiguous elements the same as a C kernel, a step of an expression; its dtypes are NULL.
 * NULL: there is none; *why is a phrase. */
const qn_cuda_variant *qn_cuda_built_step(const qn_variant *c_kernel, int32_t capability, const char **why);

/* NULL: out of memory. Opens nothing. */
qn_cuda_image *qn_cuda_built_image(const qn_cuda_variant *variant);

/* Marks the kernel's file as unusable, for the reason in the thread's last error: its kernels are not found any more. */
void qn_cuda_built_refuse(const qn_cuda_variant *variant);

/* "2219 kernels for sm_80, sm_90, sm_100", or why there are none. Reads the index. */
void qn_cuda_built_state(char *text, size_t size);

#endif
