/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: runs a job in slices, each over its part of the tensors or over its tiles. Uses no memory beyond the operands but
 * the slice's stack. Knows neither ops nor dtype rules. */
#ifndef QN_ENGINE_H
#define QN_ENGINE_H

#include "core/cpu/job.h"
#include "core/base/slices.h"

/* The number of slices of a run that this thread would start now; where threads are awake it may have more. */
int32_t qn_engine_slices(const qn_job *job, const qn_slices *slices);

/* kernel: job->kernel, or one compiled since for job->variant; not used with a program. ref: the operands' first items in the
 * order of job->nest (flips included), and the first position; job->nest->ref is not read. slices: NULL is allowed where
 * job->most_slices is 1. Needs the default floating point environment. */
quern_status qn_engine_run(const qn_job *job, qn_kernel *kernel, const qn_ref *ref, const void *params, qn_slices *slices);

#endif
