/* SPDX-License-Identifier: Apache-2.0
 *
 * profile.h: ops whose calls are profiled. A profiled op has a kind that stands before its own and times its calls, so that the calls
 * of others take no step more. Knows neither contexts nor expressions. */
#ifndef QN_PROFILE_H
#define QN_PROFILE_H

#include "core/op/kind.h"
#include "run/profile_lines.h"

/* The kind of an op whose calls go to the profile, given its own kind; its own if profile is NULL or there is no memory. */
const qn_kind *qn_profile_kind(qn_profile *profile, const qn_kind *own);

/* As qn_registry_register: of an op whose implementation the profile calls. profile is not NULL. */
quern_status qn_profile_define(qn_profile *profile, quern_ctx *ctx, const quern_op_def *def);

#endif
