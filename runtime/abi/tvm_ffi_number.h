/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_number.h: numbers in place of input tensors. They are weak, as Python's: the tensors decide on the dtype. */
#ifndef QN_TVM_FFI_NUMBER_H
#define QN_TVM_FFI_NUMBER_H

#include "abi/tvm_ffi_abi.h"

/* A tensor of 0 dimensions, and its item. */
typedef struct qn_tvm_number {
  DLTensor tensor;
  union {
    uint64_t u;
    float f32;
    double f64;
  } item;
} qn_tvm_number;

/* Makes tensors of the inputs that are NULL in `in`: of args[k], int, bool or float. Returns 0, or -1: an error is raised. */
int qn_tvm_numbers(const quern_op_info *info, const qn_tvm_any *args, DLTensor **in, qn_tvm_number *numbers);

#endif
