/* SPDX-License-Identifier: Apache-2.0
 *
 * array_object.h: quern.Array as a C object: its tensor, and its constructor. Its Python type is in array_type.c. */
#ifndef QUERN_PYTHON_ARRAY_OBJECT_H
#define QUERN_PYTHON_ARRAY_OBJECT_H

#include <quern/dlpack_exchange.h>

#include "base/limited.h"
#include "exchange/holder.h"

/* One instance. Its memory belongs to the holder, which other objects may share. */
typedef struct array {
  PyObject_HEAD
  tensor_holder *holder;
  PyObject *weak_references;
} array;

/* A new quern.Array. Takes over the managed tensor, which quern_managed_import, _wrap or _alloc made. NULL: an exception, and
 * the tensor has been deleted. */
PyObject *array_new(struct DLManagedTensorVersioned *managed);
int array_check(PyObject *object); /* quern.Array, which has no subclasses */

/* Its tensor and flags, borrowed as long as the array lives. */
struct DLManagedTensorVersioned *array_managed(PyObject *array);
tensor_holder *array_holder(PyObject *array);

/* Sets the type of array_new's instances: once, for the life of the process. */
void array_set_type(PyTypeObject *type);
PyTypeObject *array_get_type(void);

#endif
