/* SPDX-License-Identifier: Apache-2.0
 *
 * descriptors.h: tensors as an op's caller describes them, for t100 and t103: they read them by the functions of
 * runtime/core/tensor. */
#pragma once
#include <stdlib.h>
#include <string.h>

#include "runtime/core/base/status.h"
#include "runtime/core/tensor/device.h"
#include "runtime/core/tensor/tensor.h"
#include "tap.h"

static const quern_arg_info args[] = {{"x", "", 0, 0}, {"y", "", 0, 0}, {"z", "", 0, 0}, {"out", "", 1, 0}, {"out2", "", 1, 0}};
#define OUT 3 /* args of `add`: three inputs, two outputs */

static const DLDataType types[] = {{kDLUInt, 8, 1}, {kDLFloat, 16, 1}, {kDLFloat, 32, 1}, {kDLFloat, 64, 1}};

/* A tensor with room for its arrays. */
typedef struct tensor {
  DLTensor dl;
  int64_t shape[64], strides[64];
} tensor;

static inline void make(tensor *t, void *data, DLDataType type, int ndim, const int64_t *shape, const int64_t *strides) {
  memset(t, 0, sizeof *t);
  t->dl.data = data;
  t->dl.device.device_type = kDLCPU;
  t->dl.dtype = type;
  t->dl.ndim = ndim;
  for (int d = 0; d < ndim; d++) {
    t->shape[d] = shape[d];
    if (strides) t->strides[d] = strides[d];
  }
  t->dl.shape = t->shape;
  t->dl.strides = strides ? t->strides : NULL;
}
