/* SPDX-License-Identifier: Apache-2.0
 *
 * fused_cpu.h: the backend that runs expressions on the CPU: their compiled code, or, until that is made, the interpreter. */
#ifndef QN_FUSED_CPU_H
#define QN_FUSED_CPU_H

#include "core/op/backend.h"

extern const qn_backend qn_fused_cpu;

#endif
