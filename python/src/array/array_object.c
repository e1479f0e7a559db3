/* SPDX-License-Identifier: Apache-2.0
 *
 * array_object.c: see array_object.h. */
#include "array/array_object.h"

static PyTypeObject *array_type; /* for the life of the process */

void array_set_type(PyTypeObject *type) { array_type = type; }

PyTypeObject *array_get_type(void) { return array_type; }

int array_check(PyObject *object) { return Py_TYPE(object) == array_type; }

tensor_holder *array_holder(PyObject *self) { return ((array *)self)->holder; }

struct DLManagedTensorVersioned *array_managed(PyObject *self) { return holder_managed(array_holder(self)); }

PyObject *array_new(struct DLManagedTensorVersioned *managed) {
  tensor_holder *holder = holder_new(managed);
  array *self = holder ? PyObject_New(array, array_type) : NULL;
  if (self) {
    self->holder = holder;
    self->weak_references = NULL;
  } else if (holder) {
    holder_release(holder);
  }
  return (PyObject *)self;
}
