/* SPDX-License-Identifier: Apache-2.0
 *
 * profile.h: profiled ops. The kind of a profiled op wraps the op's own kind and times its calls. The calls of other ops take no more
 * steps. Knows neither contexts nor expressions. */
#ifndef QN_PROFILE_H
#define QN_PROFILE_H

#include "core/op/kind.h"
#include "run/profile_lines.h"

/* A kind that wraps an op's own kind: its calls go to the profile. The own kind if profile is NULL or there is no memory. */
const qn_kind *qn_profile_kind(qn_profile *profile, const qn_kind *own);

/* As qn_registry_register, of an op with a wrapped implementation: its calls go to the profile. profile is not NULL. */
quern_status qn_profile_define(qn_profile *profile, quern_ctx *ctx, const quern_op_def *def);

#endif
