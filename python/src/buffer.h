/* buffer.h: the buffer protocol, both ways. Called with the GIL, but for the deleter of an imported tensor. */
#ifndef QUERN_PYTHON_BUFFER_H
#define QUERN_PYTHON_BUFFER_H

#include <quern/dlpack_exchange.h>

#include "limited.h"

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

#endif
