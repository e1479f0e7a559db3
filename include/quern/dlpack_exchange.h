/* SPDX-License-Identifier: Apache-2.0
 *
 * dlpack_exchange.h: DLPack's managed tensors, which have a deleter: calls on them, import and export. The rules of quern.h
 * for tensors, threads and errors hold here too. The library only: a generated tree has no such functions. C99 and C++17
 * clean. */
#ifndef QUERN_DLPACK_EXCHANGE_H
#define QUERN_DLPACK_EXCHANGE_H

#include "quern.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Ownership --------------------------------------------------------------------------------------------------
 * A function that takes over a managed tensor calls its deleter exactly once, then or later, on every path, also on failure;
 * a NULL deleter is not called. A deleter may run on any thread that uses or releases the tensor, and must not rely on any
 * lock of the caller. Of a tensor of a major version other than 1 only the deleter is used: VERSION. The minor version is
 * ignored: unknown dtype codes are refused by name (DTYPE).
 *
 * Memory allocated here (QUERN_COPY_*, quern_managed_alloc) is aligned to 256 bytes and is freed with the last holder of its
 * tensor. No other part of Quern allocates tensors. */

/* ---- Calls on managed tensors ---- */

/* The member of quern_operand.of that is used. */
#define QUERN_OPERAND_TENSOR 0    /* a bare descriptor, borrowed */
#define QUERN_OPERAND_LEGACY 1    /* DLManagedTensor: of DLPack before 1.0 */
#define QUERN_OPERAND_VERSIONED 2 /* DLManagedTensorVersioned: of DLPack 1.x */

typedef struct quern_operand {
  int32_t form;    /* QUERN_OPERAND_* */
  int32_t consume; /* not 0: a managed tensor is taken over; 0: borrowed, and its deleter is not called */
  union {
    DLTensor *tensor;
    DLManagedTensor *legacy;
    struct DLManagedTensorVersioned *versioned;
  } of;
} quern_operand;

/* quern_op_call on operands of any form. Flags are obeyed: a READ_ONLY output is refused (READONLY), and so are sub-byte items
 * that are not padded to bytes (DTYPE). A bool of one bit means one byte if it is legacy or flagged as padded, as old
 * producers write it. Consumed tensors are deleted before the call returns, each once, even if it is several operands. On
 * a device the work is then on its stream, but not done: the producer must reuse the memory in the order of that stream, as
 * is usual, or the operand must be borrowed. Errors: those of quern_op_call; VERSION; ARGUMENT for an invalid form or a
 * NULL. */
QUERN_API quern_status quern_op_call_managed(quern_op *op, int32_t n_in, const quern_operand *in, int32_t n_out,
                                             const quern_operand *out, const quern_call *call);

/* ---- Out: a tensor of the caller's becomes a managed one ---- */

/* Makes a managed tensor of the caller's memory, in one allocation with copies of its shape and strides: strides are not NULL
 * if ndim > 0, those of extents of 1 are unchanged. The deleter calls `release(owner)` once; `release` may be NULL. flags:
 * DLPACK_FLAG_BITMASK_*. The deleter is thread-safe if `release` is. `*managed` is owned by the caller. On errors `release`
 * is not called: ARGUMENT (NULL, ndim, a negative extent), LAYOUT (more than 32 dimensions, items too far apart), DTYPE (0 bits
 * or lanes; other dtypes and devices are not checked), MEMORY. */
QUERN_API quern_status quern_managed_wrap(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                          struct DLManagedTensorVersioned **managed);

/* The same for a consumer of DLPack before 1.0, which sees no flags: READ_ONLY is refused (READONLY), and so are sub-byte items
 * that are flagged as padded to bytes, except bool (DTYPE). */
QUERN_API quern_status quern_managed_wrap_legacy(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner),
                                                 void *owner, DLManagedTensor **managed);

/* When an export makes a copy. */
#define QUERN_COPY_IF_NEEDED 0 /* if the memory is not on the device asked for */
#define QUERN_COPY_NEVER 1     /* DEVICE if a copy would be needed */
#define QUERN_COPY_ALWAYS 2

typedef struct quern_export {
  size_t size;      /* sizeof(quern_export) of the caller */
  int32_t copy;     /* QUERN_COPY_* */
  DLDevice device;  /* the consumer's device; device_type 0: the tensor's */
  void *stream;     /* CUDA: the stream that orders the work on the tensor's memory, as quern_call.stream */
} quern_export;

/* Makes a managed tensor of the caller's tensor for a consumer: of the memory itself, as quern_managed_wrap does, or of a
 * compact, row-major copy, flagged IS_COPIED and not READ_ONLY. `wish` NULL: the memory itself. On success the deleter calls
 * release(owner); for a copy it is called before this returns (on a device: when the copy is on its stream). From a device to
 * the host the stream is synchronised: the result can be read. From the host to a CUDA device, and within one device, the
 * result is ready in the order of wish->stream. kDLCUDAHost and kDLCUDAManaged memory counts as the host's: the stream is
 * synchronised, but nothing is copied. All dtypes of whole bytes are supported, also those that no op takes (complex, fp8). On
 * failure `release` is not called. Errors: those of quern_managed_wrap; VERSION; DEVICE (no such device, or no copies
 * between the two: the sentence says why), UNSUPPORTED (items of less than a byte), COMPILER, DRIVER, CAPTURING,
 * MEMORY. */
QUERN_API quern_status quern_managed_export(const DLTensor *tensor, uint64_t flags, void (*release)(void *owner), void *owner,
                                            const quern_export *wish, struct DLManagedTensorVersioned **managed);

/* The legacy form of a versioned tensor, which is taken over. On errors the source has been deleted: READONLY and DTYPE (its
 * flags, or bools packed to bits, have no legacy form), VERSION, ARGUMENT, LAYOUT, MEMORY. */
QUERN_API quern_status quern_managed_downgrade(struct DLManagedTensorVersioned *source, DLManagedTensor **managed);

/* Allocates a compact tensor of the prototype's dtype, ndim, shape and device, the CPU or a CUDA device. It has the form of a
 * quern_allocator, and is the default one of quern_op_call_alloc. Returns 0, or -1 after calling set_error(error_ctx, kind,
 * sentence) (may be NULL; kind: a Python exception's name). */
QUERN_API int quern_managed_alloc(DLTensor *prototype, struct DLManagedTensorVersioned **managed, void *error_ctx,
                                  void (*set_error)(void *error_ctx, const char *kind, const char *message));

/* ---- In: a producer's managed tensor, of any form, becomes a checked one ---- */

/* For quern_managed_import*. */
#define QUERN_IMPORT_U8_IS_BOOL 1u /* (UInt, 8) means bool: for producers older than DLPack's bool */

/* Takes over the tensor and returns a checked one of version 1.3 in `*managed`: shape and strides are not NULL; rank, extents
 * and address range are within Quern's limits; the dtype has one lane and whole bytes; bool is (Bool, 8). It is the same
 * struct if nothing had to be changed, else a new one that holds the old. The memory is not accessed; alignment and device
 * are not checked. Errors: VERSION, ARGUMENT, DTYPE (lanes, items of less than a byte, and codes that DLPack 1.3 does not
 * have, by name), LAYOUT, MEMORY; the source has then been deleted. */
QUERN_API quern_status quern_managed_import(struct DLManagedTensorVersioned *source, uint32_t options,
                                            struct DLManagedTensorVersioned **managed);
QUERN_API quern_status quern_managed_import_legacy(DLManagedTensor *source, uint32_t options,
                                                   struct DLManagedTensorVersioned **managed);

/* Calls the deleter, if there is one. NULL is allowed. */
QUERN_API void quern_managed_release(struct DLManagedTensorVersioned *managed);

#ifdef __cplusplus
}
#endif

#endif /* QUERN_DLPACK_EXCHANGE_H */
