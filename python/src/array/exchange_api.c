/* SPDX-License-Identifier: Apache-2.0
 *
 * exchange_api.c: DLPack's C exchange API: looked up for other types, implemented for quern.Array. */
#include "array/exchange_api.h"

#include "array/array_object.h"
#include "base/errors.h"

static const char attribute_name[] = "__dlpack_c_exchange_api__", capsule_name[] = "dlpack_exchange_api";

/* ---- Others' ---- */

const DLPackExchangeAPI *exchange_api_of(PyTypeObject *type) {
  PyObject *capsule = PyObject_GetAttrString((PyObject *)type, attribute_name);
  const DLPackExchangeAPIHeader *header = NULL;
  const DLPackExchangeAPI *api;
  if (capsule && PyCapsule_IsValid(capsule, capsule_name)) header = PyCapsule_GetPointer(capsule, capsule_name);
  Py_XDECREF(capsule); /* the API struct lives as long as the process */
  if (!capsule && !clear_refusal()) return NULL;
  while (header && header->version.major != DLPACK_MAJOR_VERSION) header = header->prev_api;
  api = (const DLPackExchangeAPI *)header;
  if (!api || !api->managed_tensor_allocator || !api->managed_tensor_from_py_object_no_sync ||
      !api->managed_tensor_to_py_object_no_sync || !api->current_work_stream) {
    return NULL;
  }
  return api;
}

/* ---- Ours ---- */

static int check_array(PyObject *object) {
  if (array_check(object)) return 0;
  PyErr_Format(PyExc_TypeError, "quern.Array's exchange API: %.200R is none", (PyObject *)Py_TYPE(object));
  return -1;
}

static int from_object(void *object, DLManagedTensorVersioned **out) {
  const quern_export wish = {.size = sizeof wish, .copy = QUERN_COPY_NEVER};
  if (check_array(object)) return -1;
  *out = holder_export(array_holder(object), &wish);
  return *out ? 0 : -1;
}

/* The tensor may come from any producer, so it is imported with checks. */
static int to_object(DLManagedTensorVersioned *tensor, void **object) {
  struct DLManagedTensorVersioned *managed;
  const quern_status status = quern_managed_import(tensor, 0, &managed);
  *object = status ? raise_exchange(status) : array_new(managed);
  return *object ? 0 : -1;
}

/* A bare tensor has no flags, so read-only arrays are refused. */
static int borrow(void *object, DLTensor *out) {
  if (check_array(object)) return -1;
  if (array_managed(object)->flags & DLPACK_FLAG_BITMASK_READ_ONLY) {
    PyErr_SetString(PyExc_BufferError, "quern.Array: it is read-only, which a bare DLTensor cannot say");
    return -1;
  }
  *out = array_managed(object)->dl_tensor;
  return 0;
}

/* Calls use the stream they are given, by default the legacy one. */
static int current_stream(DLDeviceType device_type, int32_t device_id, void **stream) {
  (void)device_type;
  (void)device_id;
  *stream = NULL;
  return 0;
}

static const DLPackExchangeAPI own = {
    .header = {{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION}, NULL},
    .managed_tensor_allocator = quern_managed_alloc,
    .managed_tensor_from_py_object_no_sync = from_object,
    .managed_tensor_to_py_object_no_sync = to_object,
    .dltensor_from_py_object_no_sync = borrow,
    .current_work_stream = current_stream,
};

PyObject *exchange_api_capsule(void) { return PyCapsule_New((void *)&own, capsule_name, NULL); }
