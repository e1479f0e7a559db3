/* capsule.h: managed tensors in DLPack's capsules, versioned and legacy. Called with the GIL. Knows no ops. */
#ifndef QUERN_PYTHON_CAPSULE_H
#define QUERN_PYTHON_CAPSULE_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

/* Takes a managed tensor over and returns a capsule of it, whose destructor deletes it if nobody has consumed it. */
PyObject *capsule_new(struct DLManagedTensorVersioned *managed);
PyObject *capsule_new_legacy(DLManagedTensor *managed);

/* Consumes a capsule of either form: renames it, imports the tensor (quern_managed_import). NULL: TypeError (no capsule),
 * ValueError (consumed already, or of another name), BufferError (what is in it). */
struct DLManagedTensorVersioned *capsule_take(PyObject *capsule);

#endif
