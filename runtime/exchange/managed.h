/* SPDX-License-Identifier: Apache-2.0
 *
 * managed.h: managed tensors of the library's own making: a descriptor that holds its shape, its strides and an owner. Knows
 * neither where memory comes from nor who wants it. */
#ifndef QN_MANAGED_H
#define QN_MANAGED_H

#include "quern/dlpack_exchange.h"

/* As quern_managed_wrap, of a descriptor that was read (descriptor.h). MEMORY, recorded as of `function`. */
quern_status qn_managed_make(const char *function, const DLTensor *tensor, uint64_t flags, void (*release)(void *owner),
                             void *owner, struct DLManagedTensorVersioned **managed);

/* quern_managed_release and its like. The thread's last error stays as it is, whatever the deleter calls. */
void qn_managed_delete(struct DLManagedTensorVersioned *managed);
void qn_managed_delete_legacy(DLManagedTensor *managed);

/* Whether this is a bool of a byte under the name of one bit, as producers from before DLPack had one write it. */
int qn_managed_is_old_bool(DLDataType type);

#endif
