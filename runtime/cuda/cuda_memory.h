/* SPDX-License-Identifier: Apache-2.0
 *
 * cuda_memory.h: memory of CUDA devices, and copies from and to it. */
#ifndef QN_CUDA_MEMORY_H
#define QN_CUDA_MEMORY_H

#include "base/memory/device_memory.h"

extern const qn_device_memory qn_cuda_memory;

#endif
