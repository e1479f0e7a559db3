/* SPDX-License-Identifier: Apache-2.0
 *
 * holder.h: a managed tensor held by several Python objects. Called with the GIL, except the counting. Knows no ops. */
#ifndef QUERN_PYTHON_HOLDER_H
#define QUERN_PYTHON_HOLDER_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* A reference counted managed tensor: an array and its exports hold it. The last one to release it calls the deleter. The
 * count is atomic and needs no GIL. */
typedef struct tensor_holder tensor_holder;

/* Takes over the tensor; count 1. NULL: MemoryError, and the tensor has been deleted. */
tensor_holder *holder_new(struct DLManagedTensorVersioned *managed);
struct DLManagedTensorVersioned *holder_managed(const tensor_holder *holder);
void holder_release(tensor_holder *holder);

/* quern_managed_export of the held tensor: the result holds it too, or is a copy. Releases the GIL if that may take long. NULL:
 * an exception. */
struct DLManagedTensorVersioned *holder_export(tensor_holder *holder, const quern_export *wish);

/* Another view of the held tensor's memory, which holds it too. NULL: an exception. */
struct DLManagedTensorVersioned *holder_view(tensor_holder *holder, const DLTensor *tensor);

/* quern_managed_release; a pending exception is kept. */
void managed_drop(struct DLManagedTensorVersioned *managed);

#endif
