/* exchange.h: tensors in and out of Python objects by DLPack's three ways and the buffer protocol: other objects' C exchange
 * API, capsules (versioned, legacy), and what quern.Array gives itself. Knows no ops. */
#ifndef QUERN_PYTHON_EXCHANGE_H
#define QUERN_PYTHON_EXCHANGE_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

/* ---- capsule.c ---- */

/* Takes a managed tensor over and returns a capsule of it, whose destructor deletes it if nobody has consumed it. */
PyObject *capsule_new(struct DLManagedTensorVersioned *managed);
PyObject *capsule_new_legacy(DLManagedTensor *managed);

/* Consumes a capsule of either form: renames it, imports the tensor (quern_managed_import). NULL: ValueError (consumed
 * already, or no such capsule), BufferError (what is in it). */
struct DLManagedTensorVersioned *capsule_take(PyObject *capsule);

/* What __dlpack__ is asked for. */
typedef struct dlpack_wish {
  const DLDevice *device; /* NULL: wherever it is */
  int copy;               /* QUERN_COPY_* */
  void *stream;           /* CUDA: the consumer's stream, as quern_call.stream; NULL: the legacy default one */
} dlpack_wish;

/* The protocol's consumer: __dlpack_device__, then __dlpack__(stream, max_version, dl_device, copy), with fewer arguments for
 * producers that do not know them (only where device and copy are nobody's wish). TypeError if the object has none of it. */
struct DLManagedTensorVersioned *dlpack_import(PyObject *object, const dlpack_wish *wish);

/* Whether the object's type has __dlpack__. No exception. */
int dlpack_has(PyObject *object);

/* ---- buffer.c ---- */

/* A managed tensor of an object's buffer, held until it is deleted (on any thread; it takes the GIL for that). READ_ONLY is
 * flagged unless the buffer is writable. NULL: BufferError (format, byte order, strides that no item size divides,
 * suboffsets), TypeError (no buffer). */
struct DLManagedTensorVersioned *buffer_import(PyObject *object);
int buffer_has(PyObject *object);

/* ---- exchange_api.c ---- */

/* The C exchange API of major version 1 of a type, NULL where it has none. Looked up anew: callers keep it per type. No
 * exception. */
const DLPackExchangeAPI *exchange_api_of(PyTypeObject *type);

/* quern.Array's own, as the capsule that its type has in __dlpack_c_exchange_api__. */
PyObject *exchange_api_capsule(void);

/* ---- array.c ---- */

/* A new quern.Array that takes the managed tensor over (one that quern_managed_import, _wrap or _alloc made). NULL: the tensor
 * has been deleted. */
PyObject *array_new(struct DLManagedTensorVersioned *managed);
int array_check(PyObject *object); /* quern.Array or a subclass */

/* Its tensor and flags, borrowed as long as the array lives. */
struct DLManagedTensorVersioned *array_managed(PyObject *array);

/* quern.from_dlpack(x, /, *, device=None, copy=None): METH_FASTCALL | METH_KEYWORDS. */
PyObject *array_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);

/* Makes the type and adds it to the module. -1: an exception. */
int array_add(PyObject *module);

#endif
