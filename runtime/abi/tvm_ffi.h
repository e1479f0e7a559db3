/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi.h: ops as functions of tvm-ffi: op(inputs, parameters, outputs). An input is a tensor or a number; parameters that are
 * left out or None have their defaults. Outputs are tensors to write; where they are left out or None, new ones are returned. For
 * ops with a dtype that the caller chooses, the dtype may be given in place of the output. Work on a device goes to its current stream
 * (TVMFFIEnvGetStream). Errors are raised by TVMFFIErrorSetRaisedFromCStr. */
#ifndef QN_TVM_FFI_H
#define QN_TVM_FFI_H

#include "abi/tvm_ffi_abi.h"

/* Whether a parameter says axes: it takes a sequence of ints, too. */
static inline int qn_tvm_is_axes(const quern_op_info *info, int32_t k) {
  return quern_param_role(info, k) == QUERN_ROLE_AXES || quern_param_role(info, k) == QUERN_ROLE_AXIS;
}

/* Each returns 0, or -1 with an error raised; its sentence is quern_last_error(). op: NULL where there was no memory for it. */
int qn_tvm_call(quern_op *op, const qn_tvm_any *args, int32_t n, qn_tvm_any *result);
int qn_tvm_doc(const quern_op *op, qn_tvm_any *result);
int qn_tvm_metadata(const quern_op *op, qn_tvm_any *result);

/* The exported functions of an op. name: tvm-ffi's; op: the typed function's, behind the prefix */
#define QN_TVM_OP(name, op)                                                                                                      \
  QUERN_API int __tvm_ffi_##name(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result);                             \
  QUERN_API int __tvm_ffi__doc_##name(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result);                        \
  QUERN_API int __tvm_ffi__metadata_##name(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result);                   \
  int __tvm_ffi_##name(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result) {                                      \
    (void)self;                                                                                                                  \
    return qn_tvm_call(quern_builtin_##op(), args, n, result);                                                                   \
  }                                                                                                                              \
  int __tvm_ffi__doc_##name(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result) {                                 \
    (void)self, (void)args, (void)n;                                                                                             \
    return qn_tvm_doc(quern_builtin_##op(), result);                                                                             \
  }                                                                                                                              \
  int __tvm_ffi__metadata_##name(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result) {                            \
    (void)self, (void)args, (void)n;                                                                                             \
    return qn_tvm_metadata(quern_builtin_##op(), result);                                                                        \
  }

#endif
