/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_library.h: the functions of libtvm_ffi, looked up in the process that has loaded it. Nothing is linked. */
#ifndef QN_TVM_FFI_LIBRARY_H
#define QN_TVM_FFI_LIBRARY_H

#include "abi/tvm_ffi_abi.h"

/* Each is NULL if no libtvm_ffi is loaded. */
qn_tvm_error_set_raised *qn_tvm_find_error_set_raised(void);
qn_tvm_env_get_stream *qn_tvm_find_env_get_stream(void);
qn_tvm_env_get_allocator *qn_tvm_find_env_get_allocator(void);
qn_tvm_tensor_from_dlpack *qn_tvm_find_tensor_from_dlpack(void);
qn_tvm_string_from_bytes *qn_tvm_find_string_from_bytes(void);
qn_tvm_function_get_global *qn_tvm_find_function_get_global(void);
qn_tvm_function_call *qn_tvm_find_function_call(void);
qn_tvm_object_release *qn_tvm_find_object_release(void);

/* Raises the thread's sentence (quern_last_error) as an error of that kind, a Python exception's name. Returns -1. */
int qn_tvm_raise(const char *kind);

/* Sets the thread's sentence, "OP: ...", and raises it. */
int qn_tvm_fail(const char *kind, const quern_op_info *info, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
