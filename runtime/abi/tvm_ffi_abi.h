/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_abi.h: the part of tvm-ffi's C ABI (tvm/ffi/c_api.h, tvm/ffi/extra/c_env_api.h) that ops are offered by. Declared here;
 * tests hold it against the real headers. */
#ifndef QN_TVM_FFI_ABI_H
#define QN_TVM_FFI_ABI_H

#include "quern/quern.h"

/* What a value is. From QN_TVM_OBJECT on it is a pointer to a counted object. */
enum {
  QN_TVM_NONE = 0, QN_TVM_INT = 1, QN_TVM_BOOL = 2, QN_TVM_FLOAT = 3,
  QN_TVM_POINTER = 4, QN_TVM_DTYPE = 5, QN_TVM_DEVICE = 6,
  QN_TVM_DLTENSOR = 7, /* DLTensor *, borrowed */
  QN_TVM_RAW_STRING = 8, QN_TVM_BYTE_ARRAY = 9,
  QN_TVM_RVALUE = 10, /* the address of an object's pointer, which the callee may take over */
  QN_TVM_SMALL_STRING = 11, QN_TVM_SMALL_BYTES = 12,
  QN_TVM_OBJECT = 64, QN_TVM_STRING = 65, QN_TVM_BYTES = 66, QN_TVM_FUNCTION = 68, QN_TVM_SHAPE = 69,
  QN_TVM_TENSOR = 70, /* the object's head, then a DLTensor */
  QN_TVM_ARRAY = 71, QN_TVM_LIST = 75
};

/* The head of an object. */
typedef struct qn_tvm_object {
  uint64_t counts;
  int32_t type_index;
  uint32_t padding;
  union {
    void (*deleter)(void *self, int flags);
    int64_t align;
  } u;
} qn_tvm_object;

typedef struct qn_tvm_any {
  int32_t type_index;
  uint32_t small_length; /* of a small string; else 0 */
  union {
    int64_t i;
    double f;
    void *pointer;
    qn_tvm_object *object;
    DLDataType dtype;
    DLDevice device;
    char bytes[8];
  } v;
} qn_tvm_any;

/* Behind the head of an array, a list or a shape. The items of a shape are int64_t, those of the others values. */
typedef struct qn_tvm_items {
  const void *data;
  int64_t n;
} qn_tvm_items;

typedef struct qn_tvm_bytes {
  const char *data;
  size_t size;
} qn_tvm_bytes;

/* An exported function. Returns 0, or -1 after telling the library what is wrong. */
typedef int qn_tvm_function(void *self, const qn_tvm_any *args, int32_t n, qn_tvm_any *result);

/* The library's functions, by the name behind "TVMFFI". */
typedef void qn_tvm_error_set_raised(const char *kind, const char *message); /* ErrorSetRaisedFromCStr */
typedef void *qn_tvm_env_get_stream(int32_t device_type, int32_t device_id);
typedef quern_allocator qn_tvm_env_get_allocator(void); /* EnvGetDLPackManagedTensorAllocator */
typedef int qn_tvm_tensor_from_dlpack(struct DLManagedTensorVersioned *from, int32_t alignment, int32_t contiguous, void **out);
typedef int qn_tvm_string_from_bytes(const qn_tvm_bytes *bytes, qn_tvm_any *out); /* StringFromByteArray */
typedef int qn_tvm_function_get_global(const qn_tvm_bytes *name, void **out);
typedef int qn_tvm_function_call(void *function, qn_tvm_any *args, int32_t n, qn_tvm_any *result);
typedef int qn_tvm_object_release(void *object); /* ObjectDecRef */

#endif
