/* SPDX-License-Identifier: Apache-2.0
 *
 * decide.h: the steps of deciding a call that kinds of op share. */
#ifndef QN_DECIDE_H
#define QN_DECIDE_H

#include "core/op/backend.h"
#include "core/op/kind.h"

/* Who computes on a device: sets both. An error where the backend cannot run on this machine, and where there are no kernels for
 * the CPU at all. That no backend serves another device is an error of qn_decide_check_backend, later. */
quern_status qn_decide_choose_backend(const quern_op_info *info, DLDevice device, qn_decision *decision);
quern_status qn_decide_check_backend(const quern_op_info *info, const qn_decision *decision);

/* A call's parameters as the decision needs them, with what its kind puts behind them. */
quern_status qn_decide_convert(const quern_op_info *info, const qn_decision *decision, const quern_call *call,
                                 qn_params *params);

/* An output that its owner calls read-only: flags as in quern_call.out_flags, NULL = none. */
quern_status qn_decide_check_flags(const quern_op_info *info, const uint64_t *out_flags);

#endif
