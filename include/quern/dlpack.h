/* SPDX-License-Identifier: Apache-2.0
 *
 * dlpack.h: the C ABI of DLPack 1.3 in Quern's own words; no code but declarations, no part of Quern's own API.
 * It has the include guard of the official header: of the two only the one included first takes effect.
 * Quern's assumptions about either are asserted at the end. C99 and C++17 clean. */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stddef.h>
#include <stdint.h>

#define DLPACK_MAJOR_VERSION 1
#define DLPACK_MINOR_VERSION 3

#ifdef __cplusplus
#define DLPACK_EXTERN_C extern "C"
#else
#define DLPACK_EXTERN_C
#endif

/* For the library that exports functions under DLPack's name; not needed here. */
#if !defined(_WIN32)
#define DLPACK_DLL
#elif defined(DLPACK_EXPORTS)
#define DLPACK_DLL __declspec(dllexport)
#else
#define DLPACK_DLL __declspec(dllimport)
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version in every exchanged struct. Another major: only the deleter may be called. Another minor: the layout
 * is the same, but dtype codes may be unknown to the reader. */
typedef struct {
  uint32_t major;
  uint32_t minor;
} DLPackVersion;

/* ---- Devices ---- */

/* The device of the memory. 5 and 6 are unused. Four bytes. */
#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA = 2,
  kDLCUDAHost = 3, /* page-locked for CUDA; the CPU reads it */
  kDLOpenCL = 4,   /* data is a cl_mem */
  kDLVulkan = 7,
  kDLMetal = 8, /* data is an id<MTLBuffer> */
  kDLVPI = 9,
  kDLROCM = 10,
  kDLROCMHost = 11,    /* page-locked for ROCm; the CPU reads it */
  kDLExtDev = 12,      /* for experiments: both sides must mean the same device */
  kDLCUDAManaged = 13, /* unified; the CPU reads it */
  kDLOneAPI = 14,
  kDLWebGPU = 15,
  kDLHexagon = 16,
  kDLMAIA = 17,
  kDLTrn = 18
} DLDeviceType;

/* device_id counts devices of one type; it is 0 for CPU, page-locked and managed memory. */
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;

/* ---- Data types ---- */

/* The meaning of an item's bits. */
typedef enum {
  kDLInt = 0U,
  kDLUInt = 1U,
  kDLFloat = 2U, /* IEEE 754 */
  kDLOpaqueHandle = 3U,
  kDLBfloat = 4U,
  kDLComplex = 5U, /* real, imaginary; bits counts both */
  kDLBool = 6U,    /* a byte each */
  kDLFloat8_e3m4 = 7U,
  kDLFloat8_e4m3 = 8U,
  kDLFloat8_e4m3b11fnuz = 9U,
  kDLFloat8_e4m3fn = 10U,
  kDLFloat8_e4m3fnuz = 11U,
  kDLFloat8_e5m2 = 12U,
  kDLFloat8_e5m2fnuz = 13U,
  kDLFloat8_e8m0fnu = 14U,
  kDLFloat6_e2m3fn = 15U, /* bits is 6 */
  kDLFloat6_e3m2fn = 16U, /* bits is 6 */
  kDLFloat4_e2m1fn = 17U  /* bits is 4 */
} DLDataTypeCode;

/* code: a DLDataTypeCode. lanes: 1, or the length of a short vector. Bytes are in native order; items of less than a
 * byte are packed, the first in the lowest bits, unless a flag says that they are padded. */
typedef struct {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

/* ---- Tensors ---- */

/* A view of memory; owns nothing. The item at index i is at (char *)data + byte_offset + (sum of i[k] * strides[k]) *
 * item size. Strides count items, may be 0 or negative, and mean nothing where the extent is 1 or the tensor is empty.
 * strides NULL: compact, row-major (older producers; since 1.2 only where ndim is 0). ndim 0: one item; shape and
 * strides may be NULL. No alignment can be relied on. An empty tensor's data should be NULL. */
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides;
  uint64_t byte_offset;
} DLTensor;

/* The form exchanged before 1.0. The consumer calls deleter(self) once when it is done, from any thread. The deleter frees the
 * struct, too; it may be NULL. */
typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;

/* Bits of `flags` below. A bare DLTensor has none. */
#define DLPACK_FLAG_BITMASK_READ_ONLY (UINT64_C(1) << 0)
#define DLPACK_FLAG_BITMASK_IS_COPIED (UINT64_C(1) << 1) /* a copy made for this consumer only */
#define DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED (UINT64_C(1) << 2)

/* The form exchanged since 1.0. The fields up to `flags` have the same offsets in all later major versions. */
typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void *manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned *self);
  uint64_t flags;
  DLTensor dl_tensor;
} DLManagedTensorVersioned;

/* ---- Exchange with Python objects by C calls (1.3: a PyCapsule "dlpack_exchange_api" on the type) ----
 * Each returns 0, or -1 with a Python exception set (the allocator: with set_error called), never throws, and does not
 * synchronise any stream. */

/* A new tensor of the prototype's dtype, ndim, shape and device; the caller owns it. */
typedef int (*DLPackManagedTensorAllocator)(DLTensor *prototype, DLManagedTensorVersioned **out, void *error_ctx,
                                            void (*set_error)(void *error_ctx, const char *kind, const char *message));

/* The object's tensor; the caller owns it. */
typedef int (*DLPackManagedTensorFromPyObjectNoSync)(void *py_object, DLManagedTensorVersioned **out);

/* The object's tensor, borrowed: valid until the caller returns to Python. */
typedef int (*DLPackDLTensorFromPyObjectNoSync)(void *py_object, DLTensor *out);

/* The framework's current stream; NULL for the CPU. */
typedef int (*DLPackCurrentWorkStream)(DLDeviceType device_type, int32_t device_id, void **out_current_stream);

/* A new object that takes over the tensor. */
typedef int (*DLPackManagedTensorToPyObjectNoSync)(DLManagedTensorVersioned *tensor, void **out_py_object);

/* prev_api: the same in an older major version, or NULL. */
typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader *prev_api;
} DLPackExchangeAPIHeader;

/* Valid as long as the process. Only dltensor_from_py_object_no_sync may be NULL. */
typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  DLPackManagedTensorAllocator managed_tensor_allocator;
  DLPackManagedTensorFromPyObjectNoSync managed_tensor_from_py_object_no_sync;
  DLPackManagedTensorToPyObjectNoSync managed_tensor_to_py_object_no_sync;
  DLPackDLTensorFromPyObjectNoSync dltensor_from_py_object_no_sync;
  DLPackCurrentWorkStream current_work_stream;
} DLPackExchangeAPI;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_DLPACK_H_ */

/* ---- Quern's assumptions about this header or the official one ---- */
#ifndef QUERN_DLPACK_CHECKED
#define QUERN_DLPACK_CHECKED

#include <stddef.h>

#if defined(__cplusplus)
#define QUERN_DLPACK_ASSERT(name, condition) static_assert(condition, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define QUERN_DLPACK_ASSERT(name, condition) _Static_assert(condition, #name)
#else
#define QUERN_DLPACK_ASSERT(name, condition) typedef char quern_dlpack_##name[(condition) ? 1 : -1]
#endif

QUERN_DLPACK_ASSERT(device_type_is_32_bits, sizeof(DLDeviceType) == 4);
QUERN_DLPACK_ASSERT(device_layout, offsetof(DLDevice, device_id) == 4 && sizeof(DLDevice) == 8);
QUERN_DLPACK_ASSERT(dtype_layout, offsetof(DLDataType, code) == 0 && offsetof(DLDataType, bits) == 1 &&
                                      offsetof(DLDataType, lanes) == 2 && sizeof(DLDataType) == 4);
QUERN_DLPACK_ASSERT(tensor_data_first, offsetof(DLTensor, data) == 0);
QUERN_DLPACK_ASSERT(tensor_device, offsetof(DLTensor, device) == sizeof(void *));
QUERN_DLPACK_ASSERT(tensor_ndim, offsetof(DLTensor, ndim) == sizeof(void *) + 8);
QUERN_DLPACK_ASSERT(tensor_dtype, offsetof(DLTensor, dtype) == sizeof(void *) + 12);
QUERN_DLPACK_ASSERT(tensor_shape, offsetof(DLTensor, shape) == sizeof(void *) + 16);
QUERN_DLPACK_ASSERT(tensor_strides, offsetof(DLTensor, strides) == 2 * sizeof(void *) + 16);
QUERN_DLPACK_ASSERT(tensor_byte_offset, offsetof(DLTensor, byte_offset) == 3 * sizeof(void *) + 16 ||
                                            sizeof(void *) != 8);
QUERN_DLPACK_ASSERT(tensor_size, sizeof(DLTensor) == 48 || sizeof(void *) != 8);
QUERN_DLPACK_ASSERT(codes, kDLInt == 0 && kDLUInt == 1 && kDLFloat == 2 && kDLBfloat == 4 && kDLCPU == 1);
#if defined(DLPACK_MAJOR_VERSION) /* since 1.0 */
QUERN_DLPACK_ASSERT(major_version, DLPACK_MAJOR_VERSION == 1);
QUERN_DLPACK_ASSERT(version_layout, offsetof(DLPackVersion, minor) == 4 && sizeof(DLPackVersion) == 8);
QUERN_DLPACK_ASSERT(versioned_ctx, offsetof(struct DLManagedTensorVersioned, manager_ctx) == 8);
QUERN_DLPACK_ASSERT(versioned_deleter, offsetof(struct DLManagedTensorVersioned, deleter) == 8 + sizeof(void *));
QUERN_DLPACK_ASSERT(versioned_flags, offsetof(struct DLManagedTensorVersioned, flags) == 8 + 2 * sizeof(void *));
QUERN_DLPACK_ASSERT(versioned_tensor,
                    offsetof(struct DLManagedTensorVersioned, dl_tensor) == 16 + 2 * sizeof(void *));
#endif

#undef QUERN_DLPACK_ASSERT

#endif /* QUERN_DLPACK_CHECKED */
