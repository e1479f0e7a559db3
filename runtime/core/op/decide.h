/* SPDX-License-Identifier: Apache-2.0
 *
 * decide.h: the steps of deciding a call that kinds of op share. */
#ifndef QN_DECIDE_H
#define QN_DECIDE_H

#include "core/op/backend.h"
#include "core/op/kind.h"

/* Sets the decision's device and its backend (NULL: none serves the device). Fails where the backend cannot run on this machine
 * and where no kernels are built for the CPU. For other devices, qn_decide_check_backend refuses a missing backend later. */
quern_status qn_decide_choose_backend(const quern_op_info *info, DLDevice device, qn_decision *decision);
quern_status qn_decide_check_backend(const quern_op_info *info, const qn_decision *decision);

/* Converts a call's parameters to the dtypes that the decision needs and appends the kind's own (qn_kind.bind). */
quern_status qn_decide_convert(const quern_op_info *info, const qn_decision *decision, const quern_call *call, qn_params *params);

/* Refuses outputs flagged read-only. out_flags: as in quern_call; NULL: no flags. */
quern_status qn_decide_check_flags(const quern_op_info *info, const uint64_t *out_flags);

#endif
