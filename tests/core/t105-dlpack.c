/* SPDX-License-Identifier: Apache-2.0
 *
 * t105: our DLPack header is DLPack's ABI: sizes and offsets (on 64 bits the numbers of the standard), codes, flags. */
#include <string.h>

#include "../include/quern/dlpack.h"
#include "../include/quern/dlpack.h" /* twice is once */
#include "tap.h"

#define at(type, field, offset) is_int(offsetof(type, field), offset, #type "." #field)

int main(void) {
  is_int(DLPACK_MAJOR_VERSION, 1, "major version");
  ok(DLPACK_MINOR_VERSION >= 0, "minor version");
  is_int(sizeof(DLDeviceType), 4, "a device type is 4 bytes");
  is_int(sizeof(DLDevice), 8, "size of DLDevice");
  is_int(sizeof(DLDataType), 4, "size of DLDataType");
  is_int(sizeof(DLPackVersion), 8, "size of DLPackVersion");
  if (sizeof(void *) == 8) {
    is_int(sizeof(DLTensor), 48, "size of DLTensor");
    at(DLTensor, data, 0);
    at(DLTensor, device, 8);
    at(DLTensor, ndim, 16);
    at(DLTensor, dtype, 20);
    at(DLTensor, shape, 24);
    at(DLTensor, strides, 32);
    at(DLTensor, byte_offset, 40);
    is_int(sizeof(DLManagedTensor), 64, "size of DLManagedTensor");
    at(DLManagedTensor, dl_tensor, 0);
    at(DLManagedTensor, manager_ctx, 48);
    at(DLManagedTensor, deleter, 56);
    is_int(sizeof(struct DLManagedTensorVersioned), 80, "size of DLManagedTensorVersioned");
    at(struct DLManagedTensorVersioned, version, 0);
    at(struct DLManagedTensorVersioned, manager_ctx, 8);
    at(struct DLManagedTensorVersioned, deleter, 16);
    at(struct DLManagedTensorVersioned, flags, 24);
    at(struct DLManagedTensorVersioned, dl_tensor, 32);
    is_int(sizeof(DLPackExchangeAPIHeader), 16, "size of DLPackExchangeAPIHeader");
    at(DLPackExchangeAPIHeader, prev_api, 8);
    is_int(sizeof(DLPackExchangeAPI), 56, "size of DLPackExchangeAPI");
    at(DLPackExchangeAPI, managed_tensor_allocator, 16);
    at(DLPackExchangeAPI, managed_tensor_from_py_object_no_sync, 24);
    at(DLPackExchangeAPI, managed_tensor_to_py_object_no_sync, 32);
    at(DLPackExchangeAPI, dltensor_from_py_object_no_sync, 40);
    at(DLPackExchangeAPI, current_work_stream, 48);
  } else {
    skip(1, "the numbers are those of 64-bit targets");
  }

  static const int devices[] = {kDLCPU,  kDLCUDA,     kDLCUDAHost, kDLOpenCL, kDLVulkan,      kDLMetal,
                                kDLVPI,  kDLROCM,     kDLROCMHost, kDLExtDev, kDLCUDAManaged, kDLOneAPI,
                                kDLWebGPU, kDLHexagon, kDLMAIA,    kDLTrn};
  static const int device_numbers[] = {1, 2, 3, 4, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
  ok(memcmp(devices, device_numbers, sizeof devices) == 0, "device types");
  static const int codes[] = {kDLInt,           kDLUInt,          kDLFloat,           kDLOpaqueHandle,
                              kDLBfloat,        kDLComplex,       kDLBool,            kDLFloat8_e3m4,
                              kDLFloat8_e4m3,   kDLFloat8_e4m3b11fnuz, kDLFloat8_e4m3fn, kDLFloat8_e4m3fnuz,
                              kDLFloat8_e5m2,   kDLFloat8_e5m2fnuz, kDLFloat8_e8m0fnu, kDLFloat6_e2m3fn,
                              kDLFloat6_e3m2fn, kDLFloat4_e2m1fn};
  for (int i = 0; i < (int)(sizeof codes / sizeof codes[0]); i++) is_int(codes[i], i, "dtype code %d", i);
  ok(DLPACK_FLAG_BITMASK_READ_ONLY == 1 && DLPACK_FLAG_BITMASK_IS_COPIED == 2 &&
         DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED == 4,
     "flags");
  is_int(sizeof DLPACK_FLAG_BITMASK_READ_ONLY, 8, "flags are 64 bits wide");
  return done_testing();
}
