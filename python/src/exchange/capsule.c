/* SPDX-License-Identifier: Apache-2.0
 *
 * capsule.c: managed tensors in PyCapsules, both forms, by the rules of the protocol: consuming a capsule changes its name, and
 * transfers the tensor to the consumer. The destructor of a capsule that was not consumed deletes the tensor. The names are
 * static. */
#include "exchange/capsule.h"

#include "base/errors.h"
#include "exchange/holder.h"

static const char versioned_name[] = "dltensor_versioned", versioned_used[] = "used_dltensor_versioned";
static const char legacy_name[] = "dltensor", legacy_used[] = "used_dltensor";

static void destroy_versioned(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, versioned_name)) managed_drop(PyCapsule_GetPointer(capsule, versioned_name));
}

static void delete_legacy(DLManagedTensor *managed) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (managed->deleter) managed->deleter(managed);
  PyErr_Restore(type, value, traceback);
}

static void destroy_legacy(PyObject *capsule) {
  if (PyCapsule_IsValid(capsule, legacy_name)) delete_legacy(PyCapsule_GetPointer(capsule, legacy_name));
}

PyObject *capsule_new(struct DLManagedTensorVersioned *managed) {
  PyObject *capsule = PyCapsule_New(managed, versioned_name, destroy_versioned);
  if (!capsule) managed_drop(managed);
  return capsule;
}

PyObject *capsule_new_legacy(DLManagedTensor *managed) {
  PyObject *capsule = PyCapsule_New(managed, legacy_name, destroy_legacy);
  if (!capsule) delete_legacy(managed);
  return capsule;
}

/* The exception for a capsule that cannot be consumed. */
static struct DLManagedTensorVersioned *refuse(PyObject *capsule) {
  if (!PyCapsule_CheckExact(capsule)) {
    PyErr_Format(PyExc_TypeError, "dlpack: expected a capsule, got %.200R", (PyObject *)Py_TYPE(capsule));
  } else if (PyCapsule_IsValid(capsule, versioned_used) || PyCapsule_IsValid(capsule, legacy_used)) {
    PyErr_SetString(PyExc_ValueError, "dlpack: the capsule has been consumed already; each gives its tensor once");
  } else {
    const char *name = PyCapsule_GetName(capsule);
    PyErr_Clear();
    PyErr_Format(PyExc_ValueError, "dlpack: a capsule named '%.100s', expected '%s' or '%s'", name ? name : "",
                 versioned_name, legacy_name);
  }
  return NULL;
}

/* The GIL is held from the check of the name to its change. */
struct DLManagedTensorVersioned *capsule_take(PyObject *capsule) {
  struct DLManagedTensorVersioned *managed = NULL;
  quern_status status;
  if (PyCapsule_IsValid(capsule, versioned_name)) {
    struct DLManagedTensorVersioned *source = PyCapsule_GetPointer(capsule, versioned_name);
    if (PyCapsule_SetName(capsule, versioned_used)) return NULL;
    status = quern_managed_import(source, 0, &managed);
  } else if (PyCapsule_IsValid(capsule, legacy_name)) {
    DLManagedTensor *source = PyCapsule_GetPointer(capsule, legacy_name);
    if (PyCapsule_SetName(capsule, legacy_used)) return NULL;
    status = quern_managed_import_legacy(source, 0, &managed);
  } else {
    return refuse(capsule);
  }
  if (status) return raise_exchange(status), NULL;
  return managed;
}
