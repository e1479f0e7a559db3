/* SPDX-License-Identifier: Apache-2.0
 *
 * dispatch.h: from a call to its implementation: the registered one, or the op's kind and the device's backend. On the
 * CPU nothing can fail after the kind has decided; on other devices the launch still may. */
#ifndef QN_DISPATCH_H
#define QN_DISPATCH_H

#include "core/base/status.h"
#include "core/op/registry.h"

/* For these counts are those of the op; `call` is of this library's size, or NULL. */

quern_status qn_dispatch_call(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call);

quern_status qn_dispatch_workspace(const quern_op *op, DLTensor *const *in, DLTensor *const *out, const quern_call *call,
                                   size_t *bytes);

/* Whether a registered implementation that returned `status` declines the call, so that the library's own op runs. kept: the
 * error sentence from before the attempt; restored after success and after a declined call. */
int qn_dispatch_falls_back(const quern_op *op, quern_status status, const qn_sentence *kept);

#endif
