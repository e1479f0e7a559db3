/* SPDX-License-Identifier: Apache-2.0
 *
 * protocol.h: the consumer's side of DLPack's Python protocol: __dlpack_device__ and __dlpack__. Called with the GIL. */
#ifndef QUERN_PYTHON_PROTOCOL_H
#define QUERN_PYTHON_PROTOCOL_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* The arguments of __dlpack__. */
typedef struct dlpack_wish {
  const DLDevice *device; /* NULL: the tensor's */
  int copy;               /* QUERN_COPY_* */
  void *stream;           /* CUDA: the consumer's stream, as quern_call.stream; NULL: the legacy default one */
} dlpack_wish;

/* Imports an object's tensor: calls __dlpack_device__, then __dlpack__(stream, max_version, dl_device, copy). If that raises
 * TypeError and neither device nor copy is wished, calls it once more with the stream alone, for producers of DLPack before 1.0.
 * NULL: an exception; TypeError if the object has no __dlpack__. */
struct DLManagedTensorVersioned *dlpack_import(PyObject *object, const dlpack_wish *wish);

/* Whether the object or its type has __dlpack__: 1, 0; -1: an exception. */
int dlpack_has(PyObject *object);

#endif
