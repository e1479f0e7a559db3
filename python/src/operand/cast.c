/* SPDX-License-Identifier: Apache-2.0
 *
 * cast.c: see cast.h. */
#include "operand/cast.h"

#include "base/errors.h"

static quern_op *astype; /* for the life of the process; NULL until needed */

/* NULL: an exception. */
static struct DLManagedTensorVersioned *allocate(const DLTensor *like, const dtype_row *dtype) {
  struct DLManagedTensorVersioned *managed = NULL;
  DLTensor prototype = {.device = like->device, .ndim = like->ndim, .dtype = dtype_dlpack(dtype), .shape = like->shape};
  if (quern_managed_alloc(&prototype, &managed, NULL, raise_kind) == 0) return managed;
  if (!PyErr_Occurred()) PyErr_NoMemory();
  return NULL;
}

static quern_status run(DLTensor *from, DLTensor *to, void *stream, int is_small) {
  const quern_call how = {.size = sizeof how, .stream = stream};
  PyThreadState *thread = is_small ? NULL : PyEval_SaveThread();
  quern_status status = quern_op_call(astype, 1, &from, 1, &to, &how);
  if (thread) PyEval_RestoreThread(thread);
  return status;
}

int operand_cast(operand *operand, const dtype_row *dtype, void *stream, int is_small) {
  quern_status status = astype ? QUERN_OK : quern_op_find(NULL, "astype", &astype);
  struct DLManagedTensorVersioned *managed = status ? NULL : allocate(operand->tensor, dtype);
  if (!status && !managed) return -1;
  if (!status) status = run(operand->tensor, &managed->dl_tensor, stream, is_small);
  if (status) {
    raise_status(status);
    if (managed) managed_drop(managed);
    return -1;
  }
  operand_release(operand);
  operand->managed = managed;
  operand->tensor = &managed->dl_tensor;
  operand->flags = managed->flags;
  return 0;
}
