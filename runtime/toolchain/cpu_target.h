/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_target.h: this machine's CPU as a target: C kernels, compiled by a C compiler that the host named, or by Clang in
 * process. */
#ifndef QN_CPU_TARGET_H
#define QN_CPU_TARGET_H

#include "toolchain/target.h"

extern const qn_target qn_cpu_target;

#endif
