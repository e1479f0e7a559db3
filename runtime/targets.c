/* SPDX-License-Identifier: Apache-2.0
 *
 * targets.c: the list of the library's targets. */
#include "cuda/cuda_target.h"
#include "toolchain/cpu_target.h"

const qn_target *const qn_targets[] = {&qn_cpu_target, &qn_cuda_target};
const int32_t qn_n_targets = sizeof qn_targets / sizeof qn_targets[0];
