/* SPDX-License-Identifier: Apache-2.0
 *
 * tvm_ffi_headers.c: Quern's declarations of tvm-ffi's C ABI against its own headers: values, layouts, functions. Compiled only. */
#include "abi/tvm_ffi_abi.h"

#include <stddef.h>
#include <tvm/ffi/c_api.h>
#include <tvm/ffi/extra/c_env_api.h>

#define SAME(ours, theirs) _Static_assert((ours) == (int)(theirs), #ours)
SAME(QN_TVM_NONE, kTVMFFINone);
SAME(QN_TVM_INT, kTVMFFIInt);
SAME(QN_TVM_BOOL, kTVMFFIBool);
SAME(QN_TVM_FLOAT, kTVMFFIFloat);
SAME(QN_TVM_POINTER, kTVMFFIOpaquePtr);
SAME(QN_TVM_DTYPE, kTVMFFIDataType);
SAME(QN_TVM_DEVICE, kTVMFFIDevice);
SAME(QN_TVM_DLTENSOR, kTVMFFIDLTensorPtr);
SAME(QN_TVM_RAW_STRING, kTVMFFIRawStr);
SAME(QN_TVM_BYTE_ARRAY, kTVMFFIByteArrayPtr);
SAME(QN_TVM_RVALUE, kTVMFFIObjectRValueRef);
SAME(QN_TVM_SMALL_STRING, kTVMFFISmallStr);
SAME(QN_TVM_SMALL_BYTES, kTVMFFISmallBytes);
SAME(QN_TVM_OBJECT, kTVMFFIStaticObjectBegin);
SAME(QN_TVM_STRING, kTVMFFIStr);
SAME(QN_TVM_BYTES, kTVMFFIBytes);
SAME(QN_TVM_FUNCTION, kTVMFFIFunction);
SAME(QN_TVM_SHAPE, kTVMFFIShape);
SAME(QN_TVM_TENSOR, kTVMFFITensor);
SAME(QN_TVM_ARRAY, kTVMFFIArray);
SAME(QN_TVM_LIST, kTVMFFIList);

#define LAID_OUT(ours, our_field, theirs, their_field)                                               \
  _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                       \
                     sizeof(((ours *)0)->our_field) == sizeof(((theirs *)0)->their_field),           \
                 #theirs "." #their_field)
_Static_assert(sizeof(qn_tvm_object) == sizeof(TVMFFIObject) && _Alignof(qn_tvm_object) == _Alignof(TVMFFIObject), "an object's head");
LAID_OUT(qn_tvm_object, counts, TVMFFIObject, combined_ref_count);
LAID_OUT(qn_tvm_object, type_index, TVMFFIObject, type_index);
LAID_OUT(qn_tvm_object, u.deleter, TVMFFIObject, deleter);
_Static_assert(sizeof(qn_tvm_any) == sizeof(TVMFFIAny) && _Alignof(qn_tvm_any) == _Alignof(TVMFFIAny), "a value");
LAID_OUT(qn_tvm_any, type_index, TVMFFIAny, type_index);
LAID_OUT(qn_tvm_any, small_length, TVMFFIAny, small_str_len);
LAID_OUT(qn_tvm_any, v.i, TVMFFIAny, v_int64);
LAID_OUT(qn_tvm_any, v.f, TVMFFIAny, v_float64);
LAID_OUT(qn_tvm_any, v.pointer, TVMFFIAny, v_ptr);
LAID_OUT(qn_tvm_any, v.object, TVMFFIAny, v_obj);
LAID_OUT(qn_tvm_any, v.dtype, TVMFFIAny, v_dtype);
LAID_OUT(qn_tvm_any, v.device, TVMFFIAny, v_device);
_Static_assert(sizeof(qn_tvm_bytes) == sizeof(TVMFFIByteArray), "bytes");
LAID_OUT(qn_tvm_bytes, data, TVMFFIByteArray, data);
LAID_OUT(qn_tvm_bytes, size, TVMFFIByteArray, size);

LAID_OUT(qn_tvm_items, data, TVMFFISeqCell, data);
LAID_OUT(qn_tvm_items, n, TVMFFISeqCell, size);
LAID_OUT(qn_tvm_items, data, TVMFFIShapeCell, data);
LAID_OUT(qn_tvm_items, n, TVMFFIShapeCell, size);

/* Functions have the same parameters, but for their structs' names: those by value or without structs are of one type. */
#define ONE_TYPE(ours, theirs) _Static_assert(_Generic(theirs, ours *: 1, default: 0), #theirs)
ONE_TYPE(qn_tvm_error_set_raised, TVMFFIErrorSetRaisedFromCStr);
ONE_TYPE(qn_tvm_env_get_stream, TVMFFIEnvGetStream);
ONE_TYPE(qn_tvm_env_get_allocator, TVMFFIEnvGetDLPackManagedTensorAllocator);
ONE_TYPE(qn_tvm_tensor_from_dlpack, TVMFFITensorFromDLPackVersioned);
ONE_TYPE(qn_tvm_object_release, TVMFFIObjectDecRef);
typedef int string_from_bytes(const TVMFFIByteArray *, TVMFFIAny *);
ONE_TYPE(string_from_bytes, TVMFFIStringFromByteArray);
typedef int function_get_global(const TVMFFIByteArray *, void **);
ONE_TYPE(function_get_global, TVMFFIFunctionGetGlobal);
typedef int function_call(void *, TVMFFIAny *, int32_t, TVMFFIAny *);
ONE_TYPE(function_call, TVMFFIFunctionCall);
typedef int function(void *, const TVMFFIAny *, int32_t, TVMFFIAny *);
ONE_TYPE(function, (TVMFFISafeCallType)0);
