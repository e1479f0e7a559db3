/* exchange.h: tensors in and out of Python objects by DLPack's three ways and the buffer protocol: other objects' C exchange
 * API, capsules (versioned, legacy), and what quern.Array gives itself. Knows no ops. All but what says otherwise is called with
 * the GIL. */
#ifndef QUERN_PYTHON_EXCHANGE_H
#define QUERN_PYTHON_EXCHANGE_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

/* ---- holder.c ---- */

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

/* ---- capsule.c ---- */

/* Takes a managed tensor over and returns a capsule of it, whose destructor deletes it if nobody has consumed it. */
PyObject *capsule_new(struct DLManagedTensorVersioned *managed);
PyObject *capsule_new_legacy(DLManagedTensor *managed);

/* Consumes a capsule of either form: renames it, imports the tensor (quern_managed_import). NULL: TypeError (no capsule),
 * ValueError (consumed already, or of another name), BufferError (what is in it). */
struct DLManagedTensorVersioned *capsule_take(PyObject *capsule);

/* ---- protocol.c ---- */

/* What __dlpack__ is asked for. */
typedef struct dlpack_wish {
  const DLDevice *device; /* NULL: wherever it is */
  int copy;               /* QUERN_COPY_* */
  void *stream;           /* CUDA: the consumer's stream, as quern_call.stream; NULL: the legacy default one */
} dlpack_wish;

/* The protocol's consumer: __dlpack_device__, then __dlpack__(stream, max_version, dl_device, copy), with fewer arguments for
 * producers that do not know them (only where device and copy are nobody's wish). TypeError if the object has none of it. */
struct DLManagedTensorVersioned *dlpack_import(PyObject *object, const dlpack_wish *wish);

/* Whether the object's type has __dlpack__: 1, 0; -1: an exception, with which dlpack_import ends, too. */
int dlpack_has(PyObject *object);

/* ---- buffer.c ---- */

/* A managed tensor of an object's buffer, held until it is deleted (on any thread; it takes the GIL for that). READ_ONLY is
 * flagged unless the buffer is writable. NULL: BufferError (format, byte order, strides that no item size divides,
 * suboffsets), TypeError (no buffer). */
struct DLManagedTensorVersioned *buffer_import(PyObject *object);
int buffer_has(PyObject *object);

/* The buffer of a tensor for an exporter that keeps it as long as the view lives, and the end of such a view. -1:
 * BufferError. */
int buffer_fill(Py_buffer *view, PyObject *exporter, const struct DLManagedTensorVersioned *managed, int flags);
void buffer_clear(Py_buffer *view);

/* Sees to it that buffers can be released until the interpreter ends, and are left alone afterwards. -1: an exception. */
int buffer_start(void);

/* ---- exchange_api.c ---- */

/* The C exchange API of major version 1 of a type, NULL where it has none. Looked up anew: callers keep it per type. May
 * leave an exception that is none of its business (KeyboardInterrupt, of a metaclass). */
const DLPackExchangeAPI *exchange_api_of(PyTypeObject *type);

/* quern.Array's own, as the capsule that its type has in __dlpack_c_exchange_api__. */
PyObject *exchange_api_capsule(void);

/* ---- array_object.c ---- */

/* A new quern.Array that takes the managed tensor over (one that quern_managed_import, _wrap or _alloc made). NULL: the tensor
 * has been deleted. */
PyObject *array_new(struct DLManagedTensorVersioned *managed);
int array_check(PyObject *object); /* quern.Array, which has no subclasses */

/* Its tensor and flags, borrowed as long as the array lives. */
struct DLManagedTensorVersioned *array_managed(PyObject *array);
tensor_holder *array_holder(PyObject *array);

/* Makes the types Array and Device and adds them to the module. -1: an exception. */
int array_add(PyObject *module);

/* ---- array_dlpack.c ---- */

/* Methods of Array: __dlpack__, __dlpack_device__, to_device. */
PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *keywords);
PyObject *array_dlpack_device(PyObject *self, PyObject *unused);
PyObject *array_to_device(PyObject *self, PyObject *args, PyObject *keywords);

/* quern.from_dlpack(x, /, *, device=None, copy=None): METH_FASTCALL | METH_KEYWORDS. */
PyObject *array_from_dlpack(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *names);

/* ---- array_make.c ---- */

/* Array.T: the dimensions in the opposite order. */
PyObject *array_transposed(PyObject *self, void *unused);

/* Adds _empty and _unstack to the module. -1: an exception. */
int array_make_add(PyObject *module);

#endif
