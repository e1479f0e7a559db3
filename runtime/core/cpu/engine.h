/* SPDX-License-Identifier: Apache-2.0
 *
 * engine.h: runs a job: in slices, each over its part of the tensors or over its tiles. Memory beyond the operands: the
 * slice's stack. Knows neither ops nor dtype rules. */
#ifndef QN_ENGINE_H
#define QN_ENGINE_H

#include "core/cpu/job.h"
#include "core/base/slices.h"

/* In how many slices a run on this thread would be, at this moment. */
int32_t qn_engine_slices(const qn_job *job, const qn_slices *slices);

/* kernel: job->kernel, or what has been compiled for job->variant since; a program has its own. ref: the operands' first items as
 * job->nest has them (flipped strides included), of positions the first one; job->nest->ref is not read. To be
 * called in the default floating point environment. */
void qn_engine_run(const qn_job *job, qn_kernel *kernel, const qn_ref *ref, const void *params, qn_slices *slices);

#endif
