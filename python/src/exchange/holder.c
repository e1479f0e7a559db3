/* SPDX-License-Identifier: Apache-2.0
 *
 * holder.c: a reference counted managed tensor; see holder.h. */
#include "exchange/holder.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/errors.h"

struct tensor_holder {
  atomic_size_t count;
  struct DLManagedTensorVersioned *managed;
};

/* Keeps a pending exception: the deleter may run Python code. */
void managed_drop(struct DLManagedTensorVersioned *managed) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  quern_managed_release(managed);
  PyErr_Restore(type, value, traceback);
}

tensor_holder *holder_new(struct DLManagedTensorVersioned *managed) {
  tensor_holder *holder = malloc(sizeof *holder);
  if (!holder) {
    managed_drop(managed);
    PyErr_NoMemory();
    return NULL;
  }
  atomic_init(&holder->count, 1);
  holder->managed = managed;
  return holder;
}

struct DLManagedTensorVersioned *holder_managed(const tensor_holder *holder) { return holder->managed; }

/* Drops a reference, on any thread. Accesses of other holders to the memory happen before the deleter. */
static void let_go(void *holder_of) {
  tensor_holder *holder = holder_of;
  if (atomic_fetch_sub_explicit(&holder->count, 1, memory_order_acq_rel) == 1) {
    quern_managed_release(holder->managed);
    free(holder);
  }
}

void holder_release(tensor_holder *holder) {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  let_go(holder);
  PyErr_Restore(type, value, traceback);
}

struct DLManagedTensorVersioned *holder_export(tensor_holder *holder, const quern_export *wish) {
  const DLTensor *tensor = &holder->managed->dl_tensor;
  const uint64_t flags = holder->managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY; /* shared memory is not flagged IS_COPIED */
  struct DLManagedTensorVersioned *managed = NULL;
  quern_status status;
  atomic_fetch_add_explicit(&holder->count, 1, memory_order_relaxed);
  if (wish->copy == QUERN_COPY_ALWAYS || tensor->device.device_type != kDLCPU ||
      (wish->device.device_type != 0 && wish->device.device_type != kDLCPU)) {
    PyThreadState *thread = PyEval_SaveThread();
    status = quern_managed_export(tensor, flags, let_go, holder, wish, &managed);
    PyEval_RestoreThread(thread);
  } else {
    status = quern_managed_export(tensor, flags, let_go, holder, wish, &managed);
  }
  if (status == QUERN_OK) return managed;
  raise_exchange(status);
  let_go(holder); /* not the last reference: the caller has one */
  return NULL;
}

struct DLManagedTensorVersioned *holder_view(tensor_holder *holder, const DLTensor *tensor) {
  const uint64_t flags = holder->managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY;
  struct DLManagedTensorVersioned *managed = NULL;
  quern_status status;
  atomic_fetch_add_explicit(&holder->count, 1, memory_order_relaxed);
  status = quern_managed_wrap(tensor, flags, let_go, holder, &managed);
  if (status == QUERN_OK) return managed;
  raise_exchange(status);
  let_go(holder); /* not the last, as above */
  return NULL;
}
