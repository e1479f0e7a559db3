/* SPDX-License-Identifier: Apache-2.0
 *
 * cast.c: see cast.h. */
#include "operand/cast.h"

#include <string.h>

#include "base/errors.h"

static quern_op *astype; /* for the life of the process; NULL until needed */

static quern_status find_astype(void) { return astype ? QUERN_OK : quern_op_find(NULL, "astype", &astype); }

int operand_cast(operand *operand, const dtype_row *dtype, void *stream, int is_small) {
  const quern_call how = {.size = sizeof how, .stream = stream};
  quern_shape shape = {.size = sizeof shape, .dtype = dtype_dlpack(dtype)};
  struct DLManagedTensorVersioned *managed = NULL;
  quern_status status = find_astype();
  if (!status) {
    PyThreadState *thread = is_small ? NULL : PyEval_SaveThread();
    status = quern_op_call_alloc(astype, 1, &operand->tensor, 1, &shape, &managed, NULL, &how);
    if (thread) PyEval_RestoreThread(thread);
  }
  if (status) {
    raise_status(status);
    return -1;
  }
  operand_release(operand);
  operand->managed = managed;
  operand->tensor = &managed->dl_tensor;
  operand->flags = managed->flags;
  return 0;
}

int operand_imagine_cast(operand *operand, const dtype_row *dtype) {
  quern_shape shape = {.size = sizeof shape, .dtype = dtype_dlpack(dtype)};
  quern_status status = find_astype();
  if (!status) status = quern_op_infer(astype, 1, &operand->tensor, 1, &shape);
  if (status) {
    raise_status(status);
    return -1;
  }
  memcpy(operand->shape, shape.shape, sizeof shape.shape);
  memcpy(operand->strides, shape.strides, sizeof shape.strides);
  operand->own = (DLTensor){.device = shape.device, .ndim = shape.ndim, .dtype = shape.dtype, .shape = operand->shape,
                            .strides = operand->strides};
  operand->tensor = &operand->own;
  return 0;
}
