/* SPDX-License-Identifier: Apache-2.0
 *
 * cpu_backend.h: the CPU as a backend (qn_backend_cpu): calls on tensors in host-readable memory, by C kernels. */
#ifndef QN_CPU_BACKEND_H
#define QN_CPU_BACKEND_H

#include "core/base/status.h"
#include "core/cpu/job.h"
#include "core/op/backend.h"

extern const qn_backend qn_backend_cpu;

/* Whether any built kernel runs on this machine. */
quern_status qn_cpu_check(const quern_op_info *info);

/* Writes a job's lines of quern_op_explain. job NULL: there are no elements. */
void qn_cpu_explain_job(qn_strbuf *buf, const quern_op_info *info, const qn_job *job, const qn_slices *slices);

#endif
