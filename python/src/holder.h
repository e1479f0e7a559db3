/* holder.h: a managed tensor that several Python objects hold. Called with the GIL, but for counting. Knows no ops. */
#ifndef QUERN_PYTHON_HOLDER_H
#define QUERN_PYTHON_HOLDER_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

/* One managed tensor with as many holders as there are: an array, what was exported from it. The last one calls the deleter.
 * Counting needs no GIL. */
typedef struct tensor_holder tensor_holder;

/* Takes the tensor over; one holder. NULL: MemoryError, and the tensor has been deleted. */
tensor_holder *holder_new(struct DLManagedTensorVersioned *managed);
struct DLManagedTensorVersioned *holder_managed(const tensor_holder *holder);
void holder_release(tensor_holder *holder);

/* quern_managed_export of the held tensor: what comes holds it too, or is a copy. Without the GIL where that may take its
 * time. NULL: an exception. */
struct DLManagedTensorVersioned *holder_export(tensor_holder *holder, const quern_export *wish);

/* Another view of the held tensor's memory, which holds it too. NULL: an exception. */
struct DLManagedTensorVersioned *holder_view(tensor_holder *holder, const DLTensor *tensor);

/* quern_managed_release in the presence of an exception, which stays. */
void managed_drop(struct DLManagedTensorVersioned *managed);

#endif
