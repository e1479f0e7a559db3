/* SPDX-License-Identifier: Apache-2.0
 *
 * managed_copy.h: copies a tensor of any layout and whole-byte items to a compact one, on the host, on a device, or between the
 * two. Knows no owners. */
#ifndef QN_MANAGED_COPY_H
#define QN_MANAGED_COPY_H

#include "exchange/descriptor.h"

/* Checks that a copy can be made now: the device, if one of the two is, exists, and the stream is not being captured.
 * Errors: DEVICE, DRIVER, CAPTURING. */
quern_status qn_managed_copy_check(const char *function, DLDevice from, DLDevice to, void *stream);

/* Copies the items in row-major order to `to`, of the same shape and dtype, on the CPU or a device. `from` is on either, or in
 * host memory of the device. Complete on return; from a device to itself: in stream order. Errors: UNSUPPORTED (no op copy),
 * COMPILER, DRIVER, CAPTURING, MEMORY. */
quern_status qn_managed_copy(const char *function, const DLTensor *from, const qn_descriptor *descriptor, const DLTensor *to,
                             void *stream);

/* Waits until the host can read host memory of a device (pinned, managed). */
quern_status qn_managed_copy_wait(const char *function, DLDevice device, void *stream);

#endif
