/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_copy.h: from a tensor of any layout, of items of whole bytes, to a compact one, on the host or a device, or from one to
 * the other. Knows no owners. */
#ifndef QN_MANAGED_COPY_H
#define QN_MANAGED_COPY_H

#include "exchange/descriptor.h"

/* Whether a copy can be made now: the device, if there is one among the two, is there and does not capture this stream.
 * DEVICE, DRIVER, CAPTURING. */
quern_status qn_managed_copy_check(const char *function, DLDevice from, DLDevice to, void *stream);

/* Copies the items in row-major order to `to`, of the same shape and dtype and on the cpu or a device; `from`: there, on the other,
 * or in memory of the device's that the host reads. Done when it returns, but from a device to itself: then in the order of the
 * stream. Errors: UNSUPPORTED (no op copy), COMPILER, DRIVER, CAPTURING, MEMORY. */
quern_status qn_managed_copy(const char *function, const DLTensor *from, const qn_descriptor *descriptor, const DLTensor *to,
                             void *stream);

/* Until the host can read memory of a device's that is the host's, too. */
quern_status qn_managed_copy_wait(const char *function, DLDevice device, void *stream);

#endif
