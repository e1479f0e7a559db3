/* SPDX-License-Identifier: Apache-2.0
 *
 * managed.h: managed tensors made by the library: a descriptor with its shape, its strides and an owner. Knows neither the
 * source of the memory nor the consumer. */
#ifndef QN_MANAGED_H
#define QN_MANAGED_H

#include "quern/dlpack_exchange.h"

/* As quern_managed_wrap, for a descriptor that was checked (descriptor.h). Error: MEMORY, recorded as of `function`. */
quern_status qn_managed_make(const char *function, const DLTensor *tensor, uint64_t flags, void (*release)(void *owner),
                             void *owner, struct DLManagedTensorVersioned **managed);

/* Call the deleter, as quern_managed_release does. The thread's last error is kept, whatever the deleter calls. */
void qn_managed_delete(struct DLManagedTensorVersioned *managed);
void qn_managed_delete_legacy(DLManagedTensor *managed);

/* Whether this is a 1-bit dtype that means a bool of one byte: producers older than DLPack's bool write it so. */
int qn_managed_is_old_bool(DLDataType type);

#endif
