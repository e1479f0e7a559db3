/* SPDX-License-Identifier: Apache-2.0
 *
 * buffer.h: the buffer protocol, both ways. Called with the GIL, except the deleter of an imported tensor. */
#ifndef QUERN_PYTHON_BUFFER_H
#define QUERN_PYTHON_BUFFER_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"

/* A managed tensor of an object's buffer. It holds the buffer until it is deleted, on any thread; the deleter takes the GIL.
 * Flagged READ_ONLY unless the buffer is writable. NULL: BufferError (format, byte order, strides that are no multiples of the
 * item size, suboffsets), TypeError (no buffer). */
struct DLManagedTensorVersioned *buffer_import(PyObject *object);
int buffer_has(PyObject *object);

/* Fills in, and releases, a view of a tensor, for an exporter that keeps the tensor as long as the view lives. -1:
 * BufferError. */
int buffer_fill(Py_buffer *view, PyObject *exporter, const struct DLManagedTensorVersioned *managed, int flags);
void buffer_clear(Py_buffer *view);

/* Registers an atexit handler, after which other threads release no buffers. -1: an exception. */
int buffer_start(void);

#endif
