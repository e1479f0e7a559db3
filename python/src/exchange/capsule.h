/* SPDX-License-Identifier: Apache-2.0
 *
 * capsule.h: managed tensors in DLPack's capsules, versioned and legacy. Called with the GIL. Knows no ops. */
#ifndef QUERN_PYTHON_CAPSULE_H
#define QUERN_PYTHON_CAPSULE_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* Takes over a managed tensor and returns a capsule of it. The capsule's destructor deletes it unless it was consumed. */
PyObject *capsule_new(struct DLManagedTensorVersioned *managed);
PyObject *capsule_new_legacy(DLManagedTensor *managed);

/* Consumes a capsule of either form: renames it, imports the tensor (quern_managed_import). NULL: TypeError (no capsule),
 * ValueError (consumed already, or of another name), BufferError (the tensor). */
struct DLManagedTensorVersioned *capsule_take(PyObject *capsule);

#endif
