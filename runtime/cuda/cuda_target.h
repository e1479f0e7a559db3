/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_target.h: CUDA devices as a target of run-time compilation: kernels by NVRTC, for the exact compute capability, loaded by
 * the driver. */
#ifndef QN_CUDA_TARGET_H
#define QN_CUDA_TARGET_H

#include "core/simt/launch.h"
#include "run/fused/layouts.h"
#include "toolchain/target.h"

extern const qn_target qn_cuda_target;

/* The code of a fused op's kernel for devices of that capability (90); valid as long as the op. may_ask 0: only if it was
 * requested before. NULL: it was not, or out of memory. */
qn_code *qn_cuda_code_of(const quern_op *op, const qn_specialised *specialised, const qn_launch_form *form, int32_t capability,
                         int may_ask);

#endif
