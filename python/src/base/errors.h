/* SPDX-License-Identifier: Apache-2.0
 *
 * errors.h: Quern's status codes as Python's exceptions; the sentence is kept, and the attribute `status` is the code. */
#ifndef QUERN_PYTHON_ERRORS_H
#define QUERN_PYTHON_ERRORS_H

#include <quern/quern.h>

#include "base/limited.h"

/* Sets the exception for this thread's last failure and returns NULL: DTYPE TypeError; SHAPE, ARGUMENT, DEVICE, LAYOUT,
 * ALIGNMENT, OVERLAP, READONLY, EXISTS, LIMIT, WORKSPACE ValueError; VERSION BufferError; MEMORY MemoryError; UNSUPPORTED
 * NotImplementedError; NOTFOUND KeyError (in an expression NameError); IO OSError; COMPILER, DRIVER, CAPTURING RuntimeError;
 * SYNTAX SyntaxError, with filename, lineno, offset and text if the sentence has them. An exception that a callback has
 * set meanwhile is kept. */
PyObject *raise_status(quern_status status);

/* The same for exchange of tensors: DTYPE, LAYOUT, DEVICE, ALIGNMENT, READONLY, VERSION and UNSUPPORTED are a
 * BufferError. */
PyObject *raise_exchange(quern_status status);

/* The same for quern_op_compile: NOTFOUND is a NameError. */
PyObject *raise_compile(quern_status status);

/* The same for quern_spec_load of that path, the filename of a SyntaxError. */
PyObject *raise_spec(quern_status status, const char *path);

/* The OSError (FileNotFoundError, ...) of a number of errno, with the path as its filename and the status IO. */
PyObject *raise_file(int number, const char *path);

/* A set_error for allocators: sets the built-in exception of that name, RuntimeError if there is none. */
void raise_kind(void *unused, const char *kind, const char *message);

#endif
